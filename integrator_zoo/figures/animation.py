"""Moving pictures: a figure whose artists are made once and are given new data frame by frame."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image, features

from ..errors import unwritable

Update = Callable[[float], None]
"""Shows one moment."""
DPI = 100
FRAMES = 84
PACE, FIRST, LAST = 70, 1000, 2500
"""Milliseconds a frame is shown, and the first and the last."""
MOST = 5_000_000
"""Bytes of a file; a larger one loses every second frame until it fits."""


@dataclass(frozen=True)
class Growing:
    """A line that grows with time, and the mark at its head."""

    line: Line2D
    times: np.ndarray
    """Of its points."""
    head: Line2D | None = None
    data: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", np.array(self.line.get_data(), float))

    def until(self, time: float) -> None:
        """Show what was there at a time; the first point at least."""
        count = max(1, int(np.searchsorted(self.times, time, side="right")))
        self.line.set_data(self.data[:, :count])
        if self.head is not None:
            self.head.set_data(self.data[:, count - 1 : count])


class Moving:
    """Artists that move, and what moves them; all else in a figure is drawn only once."""

    def __init__(self) -> None:
        self.artists: list[Artist] = []
        self.updates: list[Update] = []

    def add(self, update: Update, *artists: Artist) -> None:
        """What shows the artists at a moment."""
        self.updates.append(update)
        self.artists += artists

    def grow(self, line: Growing) -> None:
        self.add(line.until, line.line, *([line.head] if line.head else []))

    def to(self, moment: float) -> None:
        """Show a moment."""
        for update in self.updates:
            update(moment)


@dataclass(frozen=True)
class Scene:
    """A figure that moves."""

    fig: Figure
    update: Update
    """Shows the moment of a share from 0, the beginning, to 1, the end."""
    artists: Sequence[Artist]
    """What moves, drawn over all else in this order."""
    frames: int = FRAMES


def blend(moments: np.ndarray, at: np.ndarray, where: float) -> np.ndarray:
    """The moment at `where`, linear between the two recorded ones about it."""
    place = float(np.interp(where, at, np.arange(len(at))))
    low = min(int(place), len(at) - 1)
    high, share = min(low + 1, len(at) - 1), place - low
    return (1 - share) * moments[low] + share * moments[high]


def draw(scene: Scene) -> Iterator[Image.Image]:
    """The frames of a scene: what does not move is drawn once."""
    scene.fig.set_dpi(DPI)
    canvas = FigureCanvasAgg(scene.fig)
    for artist in scene.artists:
        artist.set_animated(True)
    canvas.draw()
    ground = canvas.copy_from_bbox(scene.fig.bbox)
    for i in range(scene.frames):
        scene.update(i / max(1, scene.frames - 1))
        canvas.restore_region(ground)
        for artist in scene.artists:
            artist.draw(canvas.get_renderer())
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())


def write(
    scene: Scene,
    folder: Path,
    stem: str,
    progress: Callable[[float], None] = lambda share: None,
    most: int = MOST,
) -> list[Path]:
    """Write a scene as GIF and, where Pillow can, as WebP; the paths written.

    No other program is needed. Each file is smaller than `most` bytes.

    Raises:
        ZooError: the folder cannot be written.
    """
    frames = []
    for frame in draw(scene):
        progress(len(frames) / scene.frames)
        frames.append(frame)
    writers = {"gif": _gif, **({"webp": _webp} if features.check("webp") else {})}
    paths = [Path(folder) / f"{stem}.{suffix}" for suffix in writers]
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{stem}-", dir=folder) as made:
            for path, writer in zip(paths, writers.values(), strict=True):
                _fitting(frames, Path(made) / path.name, writer, most)
                (Path(made) / path.name).replace(path)
    except OSError as error:
        raise unwritable(paths[0], error) from None
    return paths


def _fitting(frames: Sequence[Image.Image], path: Path, writer: Any, most: int) -> None:
    """Write frames; of a file that is too large every second one, so that it plays as long."""
    pace = PACE
    while True:
        durations = [FIRST, *[pace] * (len(frames) - 2), LAST][: len(frames)]
        writer(frames, path, durations)
        if path.stat().st_size < most or len(frames) <= 2:
            return
        frames, pace = [*frames[:-1:2], frames[-1]], 2 * pace


def _gif(frames: Sequence[Image.Image], path: Path, durations: Sequence[int]) -> None:
    """One palette for all frames: a palette of each its own would flicker, and be larger."""
    width, height = frames[0].size
    few = [frames[round(share * (len(frames) - 1))] for share in (0, 0.2, 0.5, 1)]
    sample = Image.new("RGB", (width, len(few) * height))
    for i, frame in enumerate(few):
        sample.paste(frame, (0, i * height))
    palette = sample.quantize(128)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=durations, loop=0)


def _webp(frames: Sequence[Image.Image], path: Path, durations: Sequence[int]) -> None:
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=list(durations), loop=0,
        quality=82, method=2,
    )  # fmt: skip
