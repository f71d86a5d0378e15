"""Pictures of the plane: decision regions, paths, depth as time, and the velocity a rule keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from . import alive, array, number, style, why
from .panels import Panels, one_scale, panels, square

if TYPE_CHECKING:
    from ..runs.store import Record

Runs = Mapping[str, Sequence["Record"]]
Looks = Mapping[str, style.Look]

CERTAIN = 6.0
"""Logit difference at which the decision's colours end: a probability of 99.75 %."""
FAR = 3.0
"""A view shows at most so many times the extent that nine tenths of the points keep within."""
FIRST = "first feature of the {} (data units)"
SECOND = "second feature (data units)"
STATIONS = 5
"""Depths at which `layers` shows the points, from the input to the output."""
ARROWS, EVERY = 6, 8
"""Points of each class whose velocity is drawn, at about so many depths."""


def decision(runs: Runs, looks: Looks) -> Figure:
    """What each trained network says over the plane, with the recorded test points."""
    sheet = panels(list(runs), FIRST.format("input"), SECOND, bar=True)
    image, usual = None, min(run.seed for of in runs.values() for run in of)
    for ax, (spec, of) in zip(sheet.axes, runs.items(), strict=True):
        run, reason = _first_sound(of, "decision", 2)
        drawn = _decision(ax, run) if run is not None else None
        if drawn is None:
            sheet.blank(ax, reason or "no decision axis was recorded")
        image = drawn or image
        sheet.headline(ax, spec, looks[spec], _told(run, ("test_accuracy", "accuracy {:.2%}")))
        _other_seed(sheet, ax, run, usual)
    if image is not None:
        sheet.color_bar(image, "logit difference, second class minus first")
    line = {"color": style.ink(), "linestyle": "-", "linewidth": 1.2}
    sheet.legend({**class_marks(), "decision boundary": line}, f"seed {usual}")
    return sheet.fig


def _decision(ax: Axes, run: Record) -> Any:
    """One decision region; the image, or None where the record holds none."""
    field, axis = array(run, "decision", 2), array(run, "decision_axis", 1)
    if field is None or axis is None or field.shape != (len(axis), len(axis)):
        return None
    box = (axis[0], axis[-1], axis[0], axis[-1])
    if alive(axis, 1e12) < len(axis) or box[0] >= box[1]:
        return None
    image = field_image(ax, field, box)
    if np.nanmin(field) < 0 < np.nanmax(field):
        ax.contour(axis, axis, field, levels=[0], colors=[style.ink()], linewidths=1.2)
    points, labels = _test_points(run)
    for label, color in enumerate(style.CLASSES):
        ax.scatter(
            *points[labels == label].T, s=7, color=color, linewidths=0.4,
            edgecolors=ax.get_facecolor(), zorder=3,
        )  # fmt: skip
    return image


def field_image(ax: Axes, field: np.ndarray, box: tuple[float, float, float, float]) -> AxesImage:
    """A decision [side, side] over a box of the plane, in the colours of the classes."""
    ax.grid(False)
    ax.set(xlim=box[:2], ylim=box[2:])
    return ax.imshow(
        np.clip(field, -1e6, 1e6), origin="lower", extent=box, cmap=style.diverging(),
        vmin=-CERTAIN, vmax=CERTAIN, interpolation="bilinear", alpha=0.75,
    )  # fmt: skip


def _test_points(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Recorded test points and their labels; none where the arrays do not fit together.

    A rule that keeps the stream on a manifold moves the points before its first node, so that
    `test_points`, where recorded, is what the network was given.
    """
    points, labels = array(run, "test_points", 2), array(run, "test_labels", 1)
    nodes = array(run, "nodes", 3)
    points = nodes[0] if points is None and nodes is not None else points
    if points is None or labels is None or points.shape != (len(labels), 2):
        return np.zeros((0, 2)), np.zeros(0)
    return points, labels


def trajectories(runs: Runs, looks: Looks) -> Figure:
    """The way of some test points through the layers."""
    sheet = panels(list(runs), FIRST.format("stream"), SECOND)
    each, usual = 24 if len(runs) <= 3 else 14, min(run.seed for of in runs.values() for run in of)
    for ax, (spec, of) in zip(sheet.axes, runs.items(), strict=True):
        run, reason = _first_sound(of, "nodes", 3)
        if run is None:
            sheet.blank(ax, reason)
        else:
            _trajectories(sheet, ax, run, each)
        told = ("path_length", "path {:.1f}"), ("turning_angle_degrees", "turn {:.0f}°/layer")
        sheet.headline(ax, spec, looks[spec], _told(run, *told))
        _other_seed(sheet, ax, run, usual)
    one_scale(sheet.axes)
    ends = {"color": style.ink(), "marker": "o", "ms": 4}
    sheet.legend(
        {**class_marks(), "input": {**ends, "mfc": "none"}, "output": ends}, f"seed {usual}"
    )
    return sheet.fig


def _trajectories(sheet: Panels, ax: Axes, run: Record, each: int) -> None:
    nodes, labels = ways(run)
    for label, color in enumerate(style.CLASSES):
        mine = np.flatnonzero(labels == label)
        picked = mine[:: max(1, len(mine) // each)]
        lines = nodes[:, picked].swapaxes(0, 1)
        ax.add_collection(LineCollection(list(lines), colors=color, linewidths=0.7, alpha=0.55))
        ax.scatter(
            *lines[:, 0].T, s=8, facecolors="none", edgecolors=color, linewidths=0.7, zorder=3
        )
        ax.scatter(*lines[:, -1].T, s=9, color=color, linewidths=0, zorder=4)
    if frame(ax, nodes):
        sheet.note(ax, f"leaves the view, goes out to {np.abs(nodes).max():.3g}")


def _first_sound(of: Sequence[Record], name: str, rank: int) -> tuple[Record | None, str]:
    """The lowest seed that is ok and holds an array; or None, and why."""
    for run in of:
        found = array(run, name, rank) if run.status == "ok" else None
        if found is not None and alive(found, 1e12):
            return run, ""
    lost = [run for run in of if run.status != "ok"]
    return None, why(lost[0]) if lost else f"no {name} was recorded"


def _told(run: Record | None, *wanted: tuple[str, str]) -> str:
    """A line of figures about one run."""
    values = ((number(run, name), text) for name, text in wanted if run is not None)
    return ", ".join(text.format(value) for value, text in values if value is not None)


def _other_seed(sheet: Panels, ax: Axes, run: Record | None, usual: int) -> None:
    if run is not None and run.seed != usual:
        sheet.note(ax, f"seed {run.seed}", head=True)


def class_marks() -> dict[str, dict[str, Any]]:
    dots = [{"color": color, "marker": "o", "ms": 4} for color in style.CLASSES]
    return dict(zip(("first class", "second class"), dots, strict=True))


def layers(runs: Runs, looks: Looks) -> Figure:
    """Depth as time: the same test points at five depths, one row an integrator."""
    found = {spec: _first_sound(of, "nodes", 3) for spec, of in runs.items()}
    side, left, title = (style.WIDTH - 0.2) / STATIONS, 0.1, 0.34
    height = 0.4 + len(runs) * (side + title) + 0.1
    fig = Figure(figsize=(style.WIDTH, height))
    for row, (spec, (run, reason)) in enumerate(found.items()):
        y = height - 0.4 - (row + 1) * (side + title)
        axes = [
            fig.add_axes(
                ((left + i * side) / style.WIDTH, y / height, 0.95 * side / style.WIDTH,
                 0.95 * side / height)
            )
            for i in range(STATIONS)
        ]  # fmt: skip
        for ax in axes:
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(edgecolor=looks[spec].color, linewidth=1.2)
        axes[0].set_title(style.plain(spec, 90, 1), fontweight="bold", pad=13)
        if run is None:
            style.note(axes[STATIONS // 2], reason, 0.5, 22)
        else:
            _stations(axes, run)
    drawn = {"linestyle": "", "marker": "o", "ms": 4}
    marks = [Line2D([], [], color=color, **drawn) for color in style.CLASSES]
    fig.legend(
        marks, ["first class", "second class"], loc="upper left", ncols=2, borderaxespad=0.3,
        columnspacing=1.4, handletextpad=0.2,
    )  # fmt: skip
    seeds = sorted({run.seed for run, _ in found.values() if run is not None})
    remark = f"seed {', '.join(map(str, seeds))}; each row has one scale" if seeds else ""
    fig.text(0.985, 1 - 0.115 / height, remark, ha="right", va="center", fontsize=7.5)
    return fig


def _stations(axes: Sequence[Axes], run: Record) -> None:
    nodes, labels = ways(run)
    depth = len(nodes) - 1
    for ax, at in zip(axes, np.linspace(0, depth, len(axes)).round().astype(int), strict=True):
        for label, color in enumerate(style.CLASSES):
            ax.scatter(*nodes[at, labels == label].T, s=3.5, color=color, linewidths=0)
        name = "input" if at == 0 else f"layer {at}"
        ax.annotate(
            name, (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points",
            fontsize=7.5, color=style.ink(0.8),
        )  # fmt: skip
        frame(ax, nodes)


def ways(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """The recorded nodes before any that is not finite, in the plane, and the points' labels."""
    nodes, labels = array(run, "nodes", 3), array(run, "test_labels", 1)
    assert nodes is not None
    nodes = nodes[: alive(nodes, 1e12), :, :2]
    if labels is None or len(labels) != nodes.shape[1]:
        labels = np.zeros(nodes.shape[1])
    return nodes, labels


def frame(ax: Axes, nodes: np.ndarray) -> bool:
    """Show nearly all points of a path in a square; whether some leave it."""
    points = nodes.reshape(-1, 2)
    low, high = np.quantile(points, [0.05, 0.95], axis=0)
    return square(ax, points, FAR * float((high - low).max()) / 2, (low + high) / 2)


def ledger(runs: Runs, looks: Looks) -> Figure:
    """The velocity that rules keep, as arrows on the way of a few points; its energy below."""
    keep = [spec for spec, of in runs.items() if keeps_velocity(of)]
    sheet = panels(keep, FIRST.format("stream"), SECOND, foot=keep)
    assert sheet.foot is not None
    lines: dict[str, Line2D] = {}
    for ax, spec in zip(sheet.axes, keep, strict=True):
        run, reason = _first_sound(runs[spec], "velocity", 3)
        if run is None:
            sheet.blank(ax, reason)
        else:
            _arrows(ax, run)
        end = ("kinetic_energy_end", "energy at the end {:.3g}")
        sheet.headline(ax, spec, looks[spec], _told(run, end))
        energy = None if run is None else array(run, "kinetic_energy_by_node", 1)
        if energy is not None:
            drawn = {"color": looks[spec].color, "linestyle": looks[spec].dashes}
            sheet.foot.plot(energy, **drawn)
            lines[spec] = Line2D([], [], **drawn)
    sheet.foot.set(xlabel="layer", ylabel=r"kinetic energy $|v|^2 / 2$", ylim=(0, None))
    sheet.names(lines)
    arrow = {"color": style.ink(), "marker": r"$\rightarrow$", "ms": 9}
    sheet.legend({**class_marks(), "velocity": arrow})
    return sheet.fig


def keeps_velocity(of: Sequence[Record]) -> bool:
    """Whether a rule's runs have a velocity to show."""
    return any(array(run, "velocity", 3) is not None for run in of)


def _arrows(ax: Axes, run: Record) -> None:
    velocity = array(run, "velocity", 3)
    nodes, labels = ways(run)
    assert velocity is not None
    stops = np.unique(np.linspace(0, len(nodes) - 1, EVERY + 1).astype(int)[1:])
    for label, color in enumerate(style.CLASSES):
        mine = np.flatnonzero(labels == label)
        picked = mine[:: max(1, len(mine) // ARROWS)]
        lines = list(nodes[:, picked].swapaxes(0, 1))
        ax.add_collection(LineCollection(lines, colors=color, linewidths=0.6, alpha=0.5))
        at = nodes[stops][:, picked].reshape(-1, 2)
        arrows = velocity[stops][:, picked, :2].reshape(-1, 2)
        ax.quiver(  # ends in the node: a ledger's velocity is the step that led there
            *at.T, *arrows.T, color=color, angles="xy", pivot="tip", width=0.006, headwidth=4,
            zorder=3,
        )  # fmt: skip
    frame(ax, nodes)
