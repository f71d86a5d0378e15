"""The picture of `zoo check`: order, energy, stability and round trip of one integrator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..conformance.portrait import TRIPS, Portrait, plane, portrait
from ..contract import Integrator
from . import style
from .panels import panels

TINY = 1e-17
"""Below rounding: where an error of zero is drawn."""


def draw_all(rules: Sequence[Integrator], folder: Path, *, dark: bool | None = None) -> list[Path]:
    """Measure integrators, draw `SPEC` of each and `stability` of several; the paths written."""
    seen = {rule.spec: portrait(rule) for rule in rules}
    with style.theme(dark):
        looks = style.looks(seen, dark=dark)
        drawings = {spec: _portrait(part, looks[spec]) for spec, part in seen.items()}
        if len(seen) > 1:
            drawings["stability"] = stability(seen, looks)
        made = [
            style.save(fig, folder, re.sub(r"[^\w.=-]+", "_", name))
            for name, fig in drawings.items()
        ]
    return [path for paths in made for path in paths]


def _portrait(seen: Portrait, look: style.Look) -> Figure:
    """All that was measured of one integrator."""
    fig = Figure(figsize=(style.WIDTH, 5.6), layout="constrained")
    parts: tuple[Callable[[Axes, Portrait, style.Look], None], ...]
    parts = (_order, _energy, _stability, _trips)
    for ax, part in zip(fig.subplots(2, 2).ravel(), parts, strict=True):
        part(ax, seen, look)
    title = f"{seen.spec}: {seen.equation}"
    fig.suptitle(style.plain(title, 100), fontsize=9)
    return fig


def stability(seen: Mapping[str, Portrait], looks: Mapping[str, style.Look]) -> Figure:
    """The stability regions of several integrators, a panel each."""
    sheet = panels(list(seen), "Re z, h = 1", "Im z")
    for ax, (spec, part) in zip(sheet.axes, seen.items(), strict=True):
        _region(ax, part, looks[spec])
        if part.stability is not None:
            real, _ = plane()
            ax.set_ylim(-np.ptp(real) / 2, np.ptp(real) / 2)  # both axes at one scale
        sheet.headline(ax, spec, looks[spec], f"F(x) = z x, {part.dynamics}")
    sheet.legend({"|eigenvalues| at most 1": {"marker": "s", "ms": 6, "color": style.ink(0.35)}})
    return sheet.fig


def _order(ax: Axes, seen: Portrait, look: style.Look) -> None:
    """Error against step, with the declared slope."""
    fit = seen.order
    known = np.isfinite(fit.errors) & (fit.errors > 0)
    h, errors = fit.steps[known], fit.errors[known]
    ax.loglog(h, errors, color=look.color, marker=look.marker, markersize=3.5, label="measured")
    title = "order"
    if fit.order is not None and seen.declared_order is not None:
        at = np.flatnonzero(fit.used)[-1]
        line = fit.errors[at] * (h / fit.steps[at]) ** seen.declared_order
        drawn = line >= 1e-15
        ax.loglog(h[drawn], line[drawn], color=style.ink(0.6), ls=":", label="declared slope")
        title = f"order {fit.order:.2f}, declared {seen.declared_order}"
    ax.set(title=title, xlabel="step size h (time units)", ylabel="relative error")
    ax.legend()


def _energy(ax: Axes, seen: Portrait, look: style.Look) -> None:
    """Energy on a Kepler orbit."""
    good = np.isfinite(seen.energy)
    ax.semilogy(
        seen.orbits[good], 100 * np.maximum(seen.energy[good], TINY), color=look.color, lw=0.7
    )
    ax.set_ylim(bottom=max(1e-13, 100 * float(np.nanquantile(seen.energy, 0.02)) / 10))
    ax.set(title="energy on Kepler, 200 steps an orbit", xlabel="time (orbits)")
    ax.set_ylabel("deviation (%)")


def _stability(ax: Axes, seen: Portrait, look: style.Look) -> None:
    ax.set(title="stability on F(x) = z x", xlabel="Re z, h = 1", ylabel="Im z")
    _region(ax, seen, look)


def _region(ax: Axes, seen: Portrait, look: style.Look) -> None:
    """Where a linear field is damped or kept: |eigenvalues| at most 1."""
    if seen.stability is None:
        ax.set(xticks=[], yticks=[])
        style.note(ax, "not linear: the stream stays on a manifold", 0.5, 24)
        return
    real, imaginary = plane()
    stable = np.where(seen.stability <= 1 + 1e-9, 1.0, 0.0)
    ax.contourf(real, imaginary, stable, levels=[0.5, 1.5], colors=[look.color], alpha=0.35)
    radius = np.minimum(seen.stability, 1e3)
    ax.contour(real, imaginary, radius, levels=[1.0], colors=[look.color], linewidths=1)
    ax.axhline(0, color=style.ink(0.4), lw=0.5)
    ax.axvline(0, color=style.ink(0.4), lw=0.5)
    if stable.sum() <= len(real):  # a line at most: undamped oscillations of x'' = z x
        on = stable > 0
        ax.plot(real[on], imaginary[on], ".", color=look.color, markersize=3)


def _trips(ax: Axes, seen: Portrait, look: style.Look) -> None:
    """Round-trip error against depth, beside the prediction."""
    ax.set(title="round trip, float64", xlabel="depth (steps)", ylabel="largest error")
    if seen.trips is None or seen.trips_predicted is None:
        style.note(ax, "declares no inverse", 0.5)
        return
    ax.loglog(TRIPS, np.maximum(seen.trips, TINY), color=look.color, marker=look.marker,
              markersize=3.5, label="measured")  # fmt: skip
    finite = np.isfinite(seen.trips_predicted)
    ax.loglog(np.array(TRIPS)[finite], seen.trips_predicted[finite], color=style.ink(0.6), ls=":",
              label="predicted bound")  # fmt: skip
    ax.legend()
