"""What all pictures share: theme, one look an integrator, text that is safe, saving.

No pyplot: a figure belongs to whoever draws it, and a user's own plotting state stays as it is.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from ..errors import unwritable

DPI = 150
WIDTH = 7.2
"""Inches: the text width of a page, and about what a column of a web page shows."""

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


@dataclass(frozen=True)
class Manner:
    """How pictures are made."""

    dark: bool = False
    formats: tuple[str, ...] = ("png",)
    """Suffixes of the files: png, svg, pdf."""


_MANNER = ContextVar("manner", default=Manner())  # noqa: B039 (frozen)


@contextmanager
def manner(*, dark: bool = False, formats: Sequence[str] = ("png",)) -> Iterator[None]:
    """The manner of all pictures drawn inside this context where nothing else is said."""
    token = _MANNER.set(Manner(dark, tuple(formats)))
    try:
        yield
    finally:
        _MANNER.reset(token)


def is_dark(said: bool | None) -> bool:
    """What was said, or else what the manner is."""
    return _MANNER.get().dark if said is None else said


def looks(specs: Iterable[str], *, dark: bool | None = None) -> dict[str, Look]:
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
        color = _lifted(PALETTE[index]) if is_dark(dark) else PALETTE[index]
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
def theme(dark: bool | None = None) -> Iterator[None]:
    """The zoo's rc parameters, inside a context; figures are made and saved in it."""
    dark = is_dark(dark)
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


def ground() -> dict[str, Any]:
    """The box behind text that stands over a drawing."""
    color = mpl.rcParams["axes.facecolor"]
    return {"facecolor": color, "edgecolor": "none", "alpha": 0.85, "boxstyle": "round,pad=0.15"}


def shielded(text: str) -> str:
    """A legend leaves out what starts with an underscore."""
    return " " + text if text.startswith("_") else text


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


def legend(
    fig: Figure, entries: Mapping[str, Any], title: str | None = None, *, above: bool = False
) -> None:
    """A legend outside the axes: above them for a few entries or if said, else at the right."""
    if not entries:
        return
    above = above or (len(entries) <= 4 and sum(map(len, entries)) < 75)
    texts = [plain(name, 60 if above else 26, 3) for name in entries]
    fig.legend(
        list(entries.values()),
        [shielded(text) for text in texts],
        loc="outside upper left" if above else "outside right upper",
        ncols=len(texts) if above else 1, title=title, title_fontsize=7.5, alignment="left",
    )  # fmt: skip


NEAREST = 0.02
"""Percent: how far from 100 the axis still tells apart."""


def near_hundred(ax: Axes, least: float) -> None:
    """Make y an axis of percents that is widest just below 100, from `least` up.

    Every factor in what is missing to 100 takes the same room: 50, 90, 99, 99.9.
    """

    top = -np.log10(NEAREST)

    def up(percent: Any) -> Any:
        missing = 100 - np.asarray(percent, float)
        return np.where(missing < 0, top - missing, -np.log10(np.maximum(missing, 0) + NEAREST))

    def down(place: Any) -> Any:
        place = np.asarray(place, float)
        return np.where(place > top, 100 + place - top, 100 + NEAREST - 10.0**-place)

    ax.set_yscale("function", functions=(up, down))
    ticks = [0, 50, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 100]
    shown = [tick for tick in ticks if tick >= least]
    if len(shown) > 7:
        shown = [tick for tick in shown if tick not in (80, 95, 98, 99.5, 99.8)]
    ax.yaxis.set_major_locator(FixedLocator(shown))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_ylim(least, 100.06)  # room for a line at 100


def save(fig: Figure, folder: Path, stem: str) -> list[Path]:
    """Write a picture in every format of the manner, each in one rename: no half one is found.

    Raises:
        ZooError: the folder cannot be written.
    """
    paths = [Path(folder) / f"{stem}.{suffix}" for suffix in _MANNER.get().formats]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{stem}-", dir=folder) as made:
            for path in paths:
                with warnings.catch_warnings():  # a letter no font has is drawn as a box
                    warnings.filterwarnings("ignore", "Glyph .* missing from")
                    fig.savefig(Path(made) / path.name, dpi=DPI, **_SAVING.get(path.suffix, {}))
                (Path(made) / path.name).replace(path)
    except OSError as error:
        raise unwritable(paths[0], error) from None
    return paths


_SAVING: Mapping[str, Any] = {
    ".png": {"pil_kwargs": {"compress_level": 4}},
    ".svg": {"metadata": {"Date": None}},
}


def draw_each(
    drawings: Sequence[Callable[[Any, Any], Figure]],
    runs: Mapping[str, Any],
    folder: Path,
    dark: bool | None = None,
) -> list[Path]:
    """Save drawing(runs, looks) of each under its own name; nothing without runs."""
    if not runs:
        return []
    with theme(dark):
        chosen = looks(runs, dark=dark)
        made = [save(draw(runs, chosen), folder, draw.__name__) for draw in drawings]
    return [path for paths in made for path in paths]
