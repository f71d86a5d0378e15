"""Scenes of the plane: a training, points in flight through depth, and their way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from . import alive, array, number, style, why
from .animation import Growing, Moving, Scene, blend
from .panels import Panels, panels
from .planar import loss_curve
from .plane import FIRST, SECOND, class_marks, field_image, frame
from .reversal import DRAWN, error_axis, errors_undone

if TYPE_CHECKING:
    from ..runs.store import Record

Runs = Mapping[str, "Record"]
Looks = Mapping[str, style.Look]

TAIL = 3.0
"""Layers that a point in flight drags behind it."""
TURN = 0.4
"""The share of the rewind's time in which points go forward."""
FAINT = {"linewidths": 0.7, "alpha": 0.55}


def training(runs: Runs, looks: Looks) -> Scene:
    """Decision, paths of test points and loss, all of the same step."""
    pairs = [spec for spec in runs for _ in range(2)]
    sheet = panels(
        pairs,
        "first feature (data units)",
        SECOND,
        foot=list(runs),
        columns=2 if len(runs) < 3 else 4,
    )
    assert sheet.foot is not None
    moving, lines = Moving(), dict[str, Any]()
    steps = next(
        found for run in runs.values() if (found := array(run, "film_steps", 1)) is not None
    )
    for i, (spec, run) in enumerate(runs.items()):
        left, right = sheet.axes[2 * i : 2 * i + 2]
        sheet.headline(left, spec, looks[spec], "decision")
        sheet.headline(right, spec, looks[spec], "ways of test points")
        _film(sheet, left, right, run, moving)
        at, loss = loss_curve(run)
        lived = alive(loss)
        drawn = {"color": looks[spec].color, "ls": looks[spec].dashes, "lw": 1.3}
        (line,) = sheet.foot.plot(at[:lived], loss[:lived], **drawn)
        lines[spec] = Line2D([], [], **drawn)
        if lived:
            moving.grow(Growing(line, at[:lived]))
    sheet.foot.set(yscale="log", xlabel="optimiser steps", ylabel="training loss (nats)")
    sheet.foot.set_xlim(0, steps[-1])
    sheet.names(lines)
    remark = sheet.legend(class_marks())
    moving.add(lambda step: remark.set_text(f"step {step:,.0f}"), remark)
    moments = np.linspace(0, 1, len(steps))
    return Scene(
        sheet.fig,
        lambda share: moving.to(float(np.interp(share, moments, steps))),
        moving.artists,
    )


def _film(sheet: Panels, left: Axes, right: Axes, run: Record, moving: Moving) -> None:
    """The decision and the paths of one run; between two recorded moments they are blended."""
    steps, axis = array(run, "film_steps", 1), array(run, "decision_axis", 1)
    fields, nodes = array(run, "film_decision", 3), array(run, "film_nodes", 4)
    labels = array(run, "film_labels", 1)
    if steps is None or fields is None or nodes is None or labels is None or axis is None:
        for ax in (left, right):
            sheet.blank(ax, why(run))
        return
    lived = min(alive(fields), alive(nodes))
    if not lived or alive(axis) < len(axis):
        for ax in (left, right):
            sheet.blank(ax, why(run))
        return
    steps, fields, nodes = steps[:lived], fields[:lived], nodes[:lived]
    image = field_image(left, fields[0], (axis[0], axis[-1], axis[0], axis[-1]))
    colors = [style.CLASSES[int(label)] for label in labels]
    dots = left.scatter(
        *nodes[0, 0].T, s=9, c=colors, linewidths=0.4, edgecolors=[style.ink()], zorder=3
    )
    ways = LineCollection(list(nodes[0].swapaxes(0, 1)), colors=colors, **FAINT)
    right.add_collection(ways)
    ends = right.scatter(*nodes[0, -1].T, s=11, c=colors, linewidths=0, zorder=4)
    frame(right, nodes[-1])
    if run.status != "ok":
        sheet.note(left, why(run))

    def update(step: float) -> None:
        image.set_data(np.clip(blend(fields, steps, step), -1e6, 1e6))
        now = blend(nodes, steps, step)
        ways.set_segments(list(now.swapaxes(0, 1)))
        ends.set_offsets(now[-1])

    moving.add(update, image, dots, *left.spines.values(), ways, ends)


def depth(runs: Runs, looks: Looks) -> Scene:
    """Depth as time: the same test points carried through the layers by each network."""
    sheet = panels(list(runs), FIRST.format("stream"), SECOND)
    moving, layers = Moving(), 0
    for ax, (spec, run) in zip(sheet.axes, runs.items(), strict=True):
        sheet.headline(ax, spec, looks[spec])
        nodes, labels = array(run, "nodes", 3), array(run, "test_labels", 1)
        if nodes is None or labels is None or len(labels) != nodes.shape[1] or not alive(nodes):
            sheet.blank(ax, why(run))
            continue
        if run.status != "ok":
            sheet.note(ax, why(run))
        nodes = nodes[: alive(nodes, 1e12), :, :2]
        layers = max(layers, len(nodes) - 1)
        _flight(ax, nodes, [style.CLASSES[int(label)] for label in labels], moving)
    remark = sheet.legend(class_marks())
    moving.add(lambda layer: remark.set_text(f"layer {layer:.0f} of {layers}"), remark)
    return Scene(sheet.fig, lambda share: moving.to(share * layers), moving.artists)


def _flight(ax: Axes, nodes: np.ndarray, colors: Any, moving: Moving) -> None:
    """Points that fly along their nodes, each with a tail."""
    tails = LineCollection([], colors=colors, **FAINT)
    ax.add_collection(tails)
    dots = ax.scatter(*nodes[0].T, s=6, c=colors, linewidths=0)
    frame(ax, nodes)
    layers = np.arange(len(nodes))

    def update(layer: float) -> None:
        back = np.linspace(max(0.0, layer - TAIL), layer, 5)
        now = np.stack([blend(nodes, layers, at) for at in back])
        tails.set_segments(list(now.swapaxes(0, 1)))
        dots.set_offsets(now[-1])

    moving.add(update, tails, dots)


def rewind(runs: Runs, looks: Looks) -> Scene:
    """Points carried forward through depth and then back, and how far off they come."""
    sheet = panels(list(runs), FIRST.format("stream"), SECOND, foot=list(runs))
    assert sheet.foot is not None
    forward, backward, lines, layers = Moving(), Moving(), dict[str, Any](), 0
    for ax, (spec, run) in zip(sheet.axes, runs.items(), strict=True):
        look = looks[spec]
        error = number(run, "rewind_error_float32")
        sheet.headline(ax, spec, look, "" if error is None else f"off the input by {error:.2g}")
        there, back = array(run, "nodes", 3), array(run, "nodes_back", 3)
        if there is None or back is None:
            sheet.blank(ax, why(run))
            continue
        picked = np.linspace(0, there.shape[1] - 1, min(2 * DRAWN, there.shape[1])).astype(int)
        there, back = there[:, picked, :2], back[::-1][:, picked, :2]
        back = np.nan_to_num(np.clip(back, -1e6, 1e6), nan=1e6)
        layers = max(layers, len(there) - 1)
        ring = {"s": 26, "facecolors": "none", "edgecolors": [style.ink(0.6)], "linewidths": 0.8}
        ax.scatter(*there[0].T, zorder=2, **ring)
        ways = LineCollection(list(there.swapaxes(0, 1)), colors=[style.ink(0.2)], linewidths=1.2)
        ax.add_collection(ways)
        _flight(ax, there, [style.ink(0.7)] * len(picked), forward)
        _flight(ax, back, [look.color] * len(picked), backward)
        frame(ax, there)
        undone, errors = errors_undone(run, "float32")
        if len(undone):
            drawn = {"color": look.color, "ls": look.dashes, "lw": 1.3}
            (line,) = sheet.foot.plot(undone, errors, **drawn)
            lines[spec] = Line2D([], [], **drawn)
            backward.grow(Growing(line, undone))
    error_axis(sheet.foot)
    sheet.foot.set_xlim(0, layers)
    sheet.names(lines)
    ring = {"color": style.ink(0.6), "marker": "o", "ms": 5, "mfc": "none"}
    dot = {"color": style.ink(0.7), "marker": "o", "ms": 3}
    own = {**dot, "color": looks[next(iter(lines or runs))].color}
    remark = sheet.legend({"input": ring, "forward": dot, "back, in float32": own})

    def update(share: float) -> None:
        done, undone = layers * share / TURN, layers * (share - TURN) / (1 - TURN)
        forward.to(min(done, layers))
        backward.to(max(undone, 0.0))
        for artist in backward.artists:
            artist.set_visible(undone >= 0)
        remark.set_text(f"layer {done:.0f}" if share < TURN else f"{undone:.0f} layers undone")

    return Scene(sheet.fig, update, [*forward.artists, *backward.artists, remark], 100)
