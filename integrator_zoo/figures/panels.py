"""Small multiples: a square panel for each integrator, placed by inches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from .style import WIDTH, Look, ink, note, plain, shielded

LEFT, TOP, BOTTOM, BETWEEN, TICKS, BAR = 0.66, 0.4, 0.5, 0.44, 0.3, 0.8
"""Inches around panels: outer margins, between columns, for tick labels, for a colour bar."""
FOOT, NAMES = 1.7, 2.0
"""Inches of the axes below the panels: their height, and the room for names at their right."""


def panels(
    specs: Sequence[str],
    across: str,
    up: str,
    *,
    bar: bool = False,
    foot: Sequence[str] = (),
    columns: int = 0,
) -> Panels:
    """Square panels, one a spec, at most four a row, placed by inches so that nothing collides.

    Args:
        specs: the titles; long ones get two lines.
        across, up: the axis labels of all panels.
        bar: leave room for a colour bar at the right.
        foot: leave room for wide axes below the panels, and for so many names beside them.
        columns: panels in a row; chosen by their number where 0.
    """
    columns = columns or {1: 1, 2: 2, 3: 3, 4: 2, 5: 3, 6: 3}.get(len(specs), 4)
    rows = math.ceil(len(specs) / columns)
    right = BAR if bar else 0.12
    width = WIDTH if columns > 1 else 4.4 + right
    side = (width - LEFT - right - (columns - 1) * BETWEEN) / columns
    title = 0.34 + 0.15 * max(_title(spec, side).count("\n") for spec in specs)
    tall = max(FOOT, 0.16 * len(foot))
    below = BOTTOM + (tall + BOTTOM if foot else 0)
    height = TOP + rows * (side + title) + (rows - 1) * TICKS + below
    fig = Figure(figsize=(width, height))
    axes = []
    for i in range(len(specs)):
        row, column = divmod(i, columns)
        x = LEFT + column * (side + BETWEEN)
        y = height - TOP - (row + 1) * (side + title) - row * TICKS
        axes.append(fig.add_axes((x / width, y / height, side / width, side / height)))
        for axis in (axes[-1].xaxis, axes[-1].yaxis):
            axis.set_major_locator(MaxNLocator(4 if columns < 3 else 3))
            axis.set_major_formatter(_short)
    low = below - BOTTOM + 0.08
    fig.supxlabel(across, x=(LEFT + width - right) / 2 / width, y=low / height, fontsize=8.5)
    fig.supylabel(up, y=(below + height - TOP) / 2 / height, fontsize=8.5)
    if not foot:
        return Panels(fig, axes, side)
    wide = width - LEFT - (NAMES if len(foot) > 1 else 0.12)
    place = (LEFT / width, BOTTOM / height, wide / width, tall / height)
    below_all = fig.add_axes(place)
    sns.despine(ax=below_all)
    return Panels(fig, axes, side, below_all)


def _short(value: float, _: Any = None) -> str:
    """A tick's number in few characters, and never with an offset, which would hit the title."""
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Panels:
    """Small multiples."""

    fig: Figure
    axes: list[Axes]
    side: float
    """Of a panel, inches."""
    foot: Axes | None = None
    """The wide axes below the panels."""

    def headline(self, ax: Axes, spec: str, look: Look, detail: str = "") -> None:
        """A title: the spec over one line of detail, and the frame in the spec's colour."""
        ax.set_title(_title(spec, self.side), fontweight="bold", pad=14 if detail else 4)
        offset: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        ax.annotate(detail, (0, 1), (0, 3.5), fontsize=7.5, color=ink(0.8), **offset)
        for spine in ax.spines.values():
            spine.set(edgecolor=look.color, linewidth=1.2)

    def note(self, ax: Axes, text: str, *, head: bool = False) -> None:
        """A remark at the foot of a panel, or at its head."""
        note(ax, text, 0.97 if head else 0.03, int(self.side * 15))

    def blank(self, ax: Axes, text: str) -> None:
        """Leave a panel without a picture, and say why."""
        ax.set(xticks=[], yticks=[])
        note(ax, text, 0.5, int(self.side * 13))

    def names(self, entries: Mapping[str, Any]) -> None:
        """Which line at the foot is whose; where there is one panel, its title tells."""
        if self.foot is not None and len(self.axes) > 1:
            texts = [plain(name, 24, 2) for name in entries]
            self.foot.legend(
                list(entries.values()), [shielded(text) for text in texts],
                loc="upper left", bbox_to_anchor=(1.01, 1.04), borderaxespad=0,
            )  # fmt: skip

    def color_bar(self, image: Any, text: str) -> None:
        """A colour bar for all panels, at the right."""
        width, height = self.fig.get_size_inches()
        tall = min(max(self.side, 2.6), height - 1.3)
        place = (1 - (BAR - 0.1) / width, 1 - (0.74 + tall) / height, 0.1 / width, tall / height)
        bar = self.fig.colorbar(image, cax=self.fig.add_axes(place), extend="both")
        bar.set_label(text, fontsize=7.5)

    def legend(self, entries: Mapping[str, Mapping[str, Any]], remark: str = "") -> Text:
        """A line of marks at the top, and a remark at its end, which is given back."""
        handles = [Line2D([], [], **{"linestyle": "", **drawn}) for drawn in entries.values()]
        self.fig.legend(
            handles, list(entries), loc="upper left", ncols=len(entries), borderaxespad=0.3,
            columnspacing=1.4, handletextpad=0.5, handlelength=1.9,
        )  # fmt: skip
        height = self.fig.get_figheight()
        return self.fig.text(
            0.985, 1 - 0.115 / height, remark, ha="right", va="center", fontsize=7.5
        )


def _title(spec: str, side: float) -> str:
    return plain(spec, int(12 * (side + 0.25)))


def square(ax: Axes, points: np.ndarray, most: float, centre: Any) -> bool:
    """Show all points in a square, or only `most` to each side of a centre; whether it clips."""
    low, high = points.min(0), points.max(0)
    half = float((high - low).max()) / 2
    clips = half > most > 0
    middle, half = (centre, most) if clips else ((low + high) / 2, 1.08 * (half or 1.0))
    for bounds, at in zip((ax.set_xlim, ax.set_ylim), middle, strict=True):
        bounds(at - half, at + half)
    return clips


def one_scale(axes: Sequence[Axes], most: float = 4.0) -> None:
    """Show square panels at the largest one's scale, where none would shrink `most` times."""
    drawn = [ax for ax in axes if ax.has_data()]
    halves = [(high - low) / 2 for low, high in (ax.get_xlim() for ax in drawn)]
    if not halves or max(halves) > most * min(halves):
        return
    for ax in drawn:
        for bounds, (low, high) in (
            (ax.set_xlim, ax.get_xlim()),
            (ax.set_ylim, ax.get_ylim()),
        ):
            bounds((low + high) / 2 - max(halves), (low + high) / 2 + max(halves))
