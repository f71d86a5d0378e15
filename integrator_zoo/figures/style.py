"""What all pictures share: theme, one look an integrator, panels, text that is safe, saving.

No pyplot: a figure belongs to whoever draws it, and a user's own plotting state stays as it is.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..errors import ZooError

DPI = 150
WIDTH = 7.2
"""Inches: the text width of a page, and about what a column of a web page shows."""
LEFT, TOP, BOTTOM, BETWEEN, TICKS, BAR = 0.66, 0.4, 0.5, 0.44, 0.3, 0.8
"""Inches around panels: outer margins, between columns, for tick labels, for a colour bar."""

_COLORS = (
    "#6969e1 #ff8700 #872d00 #ff69c3 #4b4b78 #b4780f #780096 #00b4e1 #c33cb4 #5a9669 "
    "#003cc3 #a5b478 #0078a5 #b478ff #5a692d #ff4b5a #c38796 #c32d0f #965a69 #a5005a"
)
PALETTE = tuple(_COLORS.split())
"""Twenty colours that stay apart to protanopes and deuteranopes: farthest points under both."""
MARKERS = "osD^vP"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.2)), (0, (1.4, 1.0)), (0, (5, 1.2, 1.4, 1.2)))
"""Marker and dashes tell apart again what the colour alone might not."""
SOLID = 5
"""Up to so many integrators in a picture, all lines are solid: they are plain to tell apart."""
CLASSES = ("#2a6fbb", "#d1495b")
"""Colours of the two classes of a data set; also the ends of the decision's colour map."""
_SALT = 6362128
"""Any number would do. With this one no two of the zoo's own integrators want the same colour, so
none has to give way to another, and their colours are the same in every picture."""


@dataclass(frozen=True)
class Look:
    """How one integrator is drawn."""

    color: str
    marker: str
    dashes: Any


def looks(specs: Iterable[str], *, dark: bool = False) -> dict[str, Look]:
    """A look for each spec, distinct within the picture and the same in the next one.

    Every spec ranks the palette by hashes of its own text and takes the first colour that is free;
    shorter specs choose first, so that a variant with options yields to the plain integrator.
    """
    specs = list(dict.fromkeys(specs))
    chosen: dict[str, Look] = {}
    free: set[int] = set()
    for spec in sorted(specs, key=lambda spec: (len(spec), spec)):
        free = free or set(range(len(PALETTE)))
        index = min(free, key=lambda i: hashlib.sha256(f"{_SALT} {spec} {i}".encode()).digest())
        free.remove(index)
        dashes = DASHES if len(specs) > SOLID else DASHES[:1]
        turn = len(chosen) // len(PALETTE)  # more specs than colours: other dashes
        color = _lifted(PALETTE[index]) if dark else PALETTE[index]
        chosen[spec] = Look(
            color, MARKERS[index % len(MARKERS)], dashes[(index + turn) % len(dashes)]
        )
    return {spec: chosen[spec] for spec in specs}


def _lifted(color: str) -> str:
    """The same hue, light enough for a dark ground."""
    rgb = np.array(to_rgb(color))
    while rgb @ (0.2126, 0.7152, 0.0722) < 0.36:
        rgb = rgb + 0.1 * (1 - rgb)
    return to_hex((rgb[0], rgb[1], rgb[2]))


@contextmanager
def theme(dark: bool = False) -> Iterator[None]:
    """The zoo's rc parameters, inside a context; figures are made and saved in it."""
    colors = ("#16181d", "#e4e6eb", "#3a3f4a") if dark else ("white", "#22252b", "#dcdfe5")
    ground, ink, faint = colors
    ours = {
        "figure.facecolor": ground,
        "savefig.facecolor": ground,
        "axes.facecolor": ground,
        "axes.edgecolor": "#6b7280" if dark else "#9aa0ab",
        "axes.labelcolor": ink,
        "axes.titlelocation": "left",
        "axes.linewidth": 0.7,
        "grid.color": faint,
        "grid.linewidth": 0.5,
        "text.color": ink,
        **dict.fromkeys(("xtick.color", "ytick.color"), ink),
        "legend.frameon": False,
        "legend.handlelength": 2.6,
        "lines.solid_capstyle": "round",
        "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same look everywhere
        "text.usetex": False,
        **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 8.5),
        **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 7.5),
    }
    rc: dict[Any, Any] = {**sns.axes_style("whitegrid"), **sns.plotting_context("paper"), **ours}
    with mpl.rc_context(rc):
        yield


def ink(alpha: float = 1.0) -> Any:
    """The colour of text and marks, fainter with a smaller alpha."""
    return (*to_rgb(mpl.rcParams["text.color"]), alpha)


def diverging() -> LinearSegmentedColormap:
    """From the first class through the ground to the second class."""
    ends = (CLASSES[0], mpl.rcParams["axes.facecolor"], CLASSES[1])
    return LinearSegmentedColormap.from_list("classes", ends)


class _Wrapper(textwrap.TextWrapper):
    """Breaks specs where they may be read on: after a comma, a colon or a dash."""

    wordsep_re = re.compile(r"(\s+|(?<=[,:;/_-])(?=\S))")


def plain(text: str, width: int = 30, lines: int = 2) -> str:
    """Text as it is to be read: no mathematics, no control characters, wrapped and cut to size."""
    text = "".join(c if c.isprintable() else " " for c in text).strip()
    wrapped = _Wrapper(max(width, 4)).wrap(text) or [""]
    if len(wrapped) > lines:
        wrapped = [*wrapped[: lines - 1], wrapped[lines - 1][: width - 1] + "…"]
    return "\n".join(wrapped).replace("$", r"\$")


def panels(specs: Sequence[str], across: str, up: str, *, bar: bool = False) -> Panels:
    """Square panels, one a spec, at most four a row, placed by inches so that nothing collides.

    Args:
        specs: the titles; long ones get two lines.
        across, up: the axis labels of all panels.
        bar: leave room for a colour bar at the right.
    """
    columns = {1: 1, 2: 2, 3: 3, 4: 2, 5: 3, 6: 3}.get(len(specs), 4)
    rows = math.ceil(len(specs) / columns)
    right = BAR if bar else 0.12
    width = WIDTH if columns > 1 else 4.4 + right
    side = (width - LEFT - right - (columns - 1) * BETWEEN) / columns
    title = 0.34 + 0.15 * max(_title(spec, side).count("\n") for spec in specs)
    height = TOP + rows * (side + title) + (rows - 1) * TICKS + BOTTOM
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
    fig.supxlabel(across, x=(LEFT + width - right) / 2 / width, fontsize=8.5)
    fig.supylabel(up, y=(BOTTOM + height - TOP) / 2 / height, fontsize=8.5)
    return Panels(fig, axes, side)


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

    def color_bar(self, image: Any, text: str) -> None:
        """A colour bar for all panels, at the right."""
        width, height = self.fig.get_size_inches()
        tall = min(max(self.side, 2.6), height - 1.3)
        place = (1 - (BAR - 0.1) / width, 1 - (0.74 + tall) / height, 0.1 / width, tall / height)
        bar = self.fig.colorbar(image, cax=self.fig.add_axes(place), extend="both")
        bar.set_label(text, fontsize=7.5)

    def legend(self, entries: Mapping[str, Mapping[str, Any]], remark: str = "") -> None:
        """A line of marks at the top, and a remark at its end."""
        handles = [Line2D([], [], **{"linestyle": "", **drawn}) for drawn in entries.values()]
        self.fig.legend(
            handles, list(entries), loc="upper left", ncols=len(entries), borderaxespad=0.3,
            columnspacing=1.4, handletextpad=0.5, handlelength=1.9,
        )  # fmt: skip
        height = self.fig.get_figheight()
        self.fig.text(0.985, 1 - 0.115 / height, remark, ha="right", va="center", fontsize=7.5)


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


def ground() -> dict[str, Any]:
    """The box behind text that stands over a drawing."""
    color = mpl.rcParams["axes.facecolor"]
    return {"facecolor": color, "edgecolor": "none", "alpha": 0.85, "boxstyle": "round,pad=0.15"}


def note(ax: Axes, text: str, y: float, width: int = 60) -> None:
    """A remark inside axes, such as why something is not drawn."""
    side = "bottom" if y < 0.3 else "top" if y > 0.7 else "center"
    words = ax.text(0.5, y, plain(text, width, 6), transform=ax.transAxes, fontsize=7.5, zorder=9)
    words.set(ha="center", va=side, bbox=ground())


def note_missing(ax: Axes, specs: Sequence[str], *, alone: bool) -> None:
    """Say which runs could not be drawn; in the middle where there is nothing else."""
    if specs:
        text = f"not drawn, nothing was recorded: {', '.join(specs)}"
        note(ax, text, 0.5 if alone else 0.03)


def legend(fig: Figure, entries: Mapping[str, Any], title: str | None = None) -> None:
    """A legend outside the axes: above them for a few entries, at the right for many."""
    if not entries:
        return
    above = len(entries) <= 4 and sum(map(len, entries)) < 75
    texts = [plain(name, 60 if above else 26, 3) for name in entries]
    fig.legend(
        list(entries.values()),
        [" " + text if text.startswith("_") else text for text in texts],  # or it is left out
        loc="outside upper left" if above else "outside right upper",
        ncols=len(texts) if above else 1, title=title, title_fontsize=7.5, alignment="left",
    )  # fmt: skip


def save(fig: Figure, folder: Path, name: str) -> Path:
    """Write a PNG in one rename, so that no half picture is ever found.

    Raises:
        ZooError: the folder cannot be written.
    """
    path = Path(folder) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as made:
            drawn = Path(made) / name
            with warnings.catch_warnings():  # a letter no font has is drawn as a box: enough said
                warnings.filterwarnings("ignore", "Glyph .* missing from")
                fig.savefig(drawn, dpi=DPI, pil_kwargs={"compress_level": 4})
            drawn.replace(path)
    except OSError as error:
        raise ZooError(
            f"cannot write {str(path)!r}: {error.strerror or error}.",
            "Free some space, or give another folder: --out DIR.",
        ) from None
    return path


def draw_each(
    drawings: Sequence[Callable[[Any, Any], Figure]],
    runs: Mapping[str, Any],
    folder: Path,
    dark: bool = False,
) -> list[Path]:
    """Save drawing(runs, looks) of each as a PNG that bears its name; nothing without runs."""
    if not runs:
        return []
    with theme(dark):
        chosen = looks(runs, dark=dark)
        return [save(draw(runs, chosen), folder, f"{draw.__name__}.png") for draw in drawings]
