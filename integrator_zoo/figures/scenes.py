"""The animations: what each needs of the records, and how it moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..errors import ZooError
from ..trajectory import shadow
from . import alive, array, by_integrator, style, why
from .animation import Growing, Moving, Scene, blend
from .flights import depth, rewind, training
from .orbit import orbits_growing
from .panels import Panels, panels, square
from .shakespeare import STREAM

if TYPE_CHECKING:
    from ..runs.store import Record

Runs = Mapping[str, "Record"]
Looks = Mapping[str, style.Look]


@dataclass(frozen=True)
class Animation:
    """One of the animations of `zoo animate`."""

    experiment: str
    """Whose runs it shows where none are given."""
    summary: str
    needs: tuple[str, ...]
    """Arrays without which a record cannot be shown."""
    make: Callable[[Any, Any], Scene]


def scene(animation: Animation, records: Sequence[Record], *, dark: bool | None = None) -> Scene:
    """The scene of some records: the lowest seed that holds what is needed of each integrator.

    Raises:
        ZooError: runs of another experiment, or none that can be shown.
    """
    runs: dict[str, Record] = {}
    for spec, of in by_integrator(records).items():
        able = [run for run in of if _holds(run, animation.needs)]
        runs[spec] = able[0] if able else of[0]
        if not able and of[0].status != "failed":
            raise ZooError(
                f"{str(of[0].folder)!r} (a run of {of[0].config['experiment']}) holds no "
                f"{' and no '.join(animation.needs)}.",
                f"Give new runs of an experiment like {animation.experiment}.",
            )
    if not any(_holds(run, animation.needs) for run in runs.values()):
        raise ZooError("none of the runs can be shown: all failed.", "Give runs that are ok.")
    with style.theme(dark):
        return animation.make(runs, style.looks(runs, dark=dark))


def _holds(run: Record, names: Sequence[str]) -> bool:
    try:
        return all(name in run.arrays for name in names)
    except OSError:
        return False


def orbits(runs: Runs, looks: Looks) -> Scene:
    """The planet on its way, slowly at first; the energy beside it."""
    sheet, remark, grown = orbits_growing(dict(runs), dict(looks))
    end, moving = max(line.times[-1] for line in grown), Moving()
    for line in grown:
        moving.grow(line)
    moving.add(lambda time: remark.set_text(f"t = {time:.1f}"), remark)
    return Scene(sheet.fig, lambda share: moving.to(end * share**1.7), moving.artists, 120)


def path(runs: Runs, looks: Looks) -> Scene:
    """The shadow of the stream's path over training; the validation loss below."""
    sheet = panels(list(runs), STREAM, "", foot=list(runs))
    assert sheet.foot is not None
    moving, lines, end = Moving(), dict[str, Any](), 0.0
    for ax, (spec, run) in zip(sheet.axes, runs.items(), strict=True):
        sheet.headline(ax, spec, looks[spec])
        at, losses = array(run, "validation_steps", 1), array(run, "validation_loss", 1)
        if at is not None and losses is not None and (lived := alive(losses)):
            drawn = {"color": looks[spec].color, "ls": looks[spec].dashes, "lw": 1.3}
            (line,) = sheet.foot.plot(at[:lived], losses[:lived], **drawn)
            lines[spec] = Line2D([], [], **drawn)
            moving.grow(Growing(line, at[:lived]))
            end = max(end, at[lived - 1])
        _shadow(sheet, ax, run, looks[spec], moving)
    sheet.foot.set(xlabel="optimiser step", ylabel="loss (nats/character)")
    sheet.names(lines)
    remark = sheet.legend({"first sub-update": {"color": style.ink(), "marker": "o", "ms": 4}})
    moving.add(lambda step: remark.set_text(f"step {step:,.0f}"), remark)
    return Scene(sheet.fig, lambda share: moving.to(share * end), moving.artists)


def _shadow(sheet: Panels, ax: Axes, run: Record, look: style.Look, moving: Moving) -> None:
    """One path that forms; between two measured steps lengths and bends are blended."""
    steps = array(run, "telemetry_steps", 1)
    lengths = array(run, "step_length_by_sub_update", 2)
    bends = array(run, "turning_angle_degrees_by_sub_update", 2)
    if steps is None or lengths is None or bends is None or not alive(lengths):
        sheet.blank(ax, why(run) if run.status != "ok" else "no path was recorded")
        return
    lived = min(alive(lengths), alive(bends))
    steps, lengths, bends = steps[:lived], lengths[:lived], bends[:lived]
    (line,) = ax.plot([], [], color=look.color, lw=1.6, marker="o", ms=3)
    ax.plot(0, 0, "o", color=style.ink(), ms=4, zorder=4)
    moments = [shadow(*pair) for pair in zip(lengths, bends, strict=True)]
    square(ax, np.concatenate(moments), np.inf, (0, 0))

    def update(step: float) -> None:
        now = shadow(blend(lengths, steps, step), blend(bends, steps, step))
        line.set_data(*now.T)

    moving.add(update, line)


ANIMATIONS: Mapping[str, Animation] = {
    "orbits": Animation(
        "kepler", "the planet of each integrator, and its energy", ("x", "exact", "times"), orbits
    ),
    "training": Animation(
        "rings", "decision, paths and loss as a network is trained", ("film_decision",), training
    ),
    "depth": Animation(
        "rings", "test points carried layer by layer", ("nodes", "test_labels"), depth
    ),
    "rewind": Animation(
        "rewind", "depth forward, then undone, and the error", ("nodes", "nodes_back"), rewind
    ),
    "path": Animation(
        "shakespeare",
        "the path of a language model's stream as it is trained",
        ("step_length_by_sub_update", "turning_angle_degrees_by_sub_update", "telemetry_steps"),
        path,
    ),
}
