"""The path of a run that the page scrubs through, as plain JSON values.

It goes by the names of recorded arrays, so that a new experiment that keeps to them is shown too:

- `film_nodes` [steps, nodes, points, 2], `film_steps` and `film_labels` [points]: points of the
  plane at several training steps, at some nodes evenly over those of `norm_by_node`;
- `nodes` [sub-updates + 1, points, features] and `test_labels` [points]: the same, once trained;
- `x` [samples, 2], `exact` and `times`: a planet;
- `step_length_by_sub_update`, `turning_angle_degrees_by_sub_update` [steps, sub-updates] and
  `telemetry_steps`: the plane shadow of a path in many dimensions, at several training steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures import alive, array
from ..trajectory import shadow

if TYPE_CHECKING:
    from ..runs.store import Record

POINTS = 72
"""At most so many points of a run are followed."""
SAMPLES = 500
"""At most so many samples of a curve or an orbit are kept."""
FAR = 1e12
"""What is farther away than that is lost: the path ends there."""
FRAME = 3.0
"""A view shows at most so many times the extent that nine tenths of the points keep within."""
DIGITS = 5
"""Of recorded numbers, so many significant digits are kept."""
FILM_DIGITS = 4
"""A film is recorded in 16 bits, which hold no more."""


def path(run: Record, most: int) -> dict[str, Any] | None:
    """The path of a run in at most about so many numbers, or None where none was recorded.

    Returns:
        `frames`: for each of `steps` (training steps; none: only the end was recorded) the
        positions [node][point][2]; `at`: what the slider says at each node, in units of `across`;
        `classes`: the class of each point; `box`: the view; `axes`: what they show; `exact`, where
        it is known: the path to compare with.
    """
    return _film(run, most) or _points(run, most) or _orbit(run) or _shadows(run)


def _film(run: Record, most: int) -> dict[str, Any] | None:
    nodes, steps = array(run, "film_nodes", 4), array(run, "film_steps", 1)
    labels, norms = array(run, "film_labels", 1), array(run, "norm_by_node", 1)
    if nodes is None or steps is None or labels is None or norms is None:
        return None
    frames = nodes[: alive(nodes, FAR), :, :, :2]
    if not len(frames) or len(labels) != frames.shape[2]:
        return None
    kept = thinned(len(frames), max(2, most // frames[0].size))
    return {
        "across": "sub-update",
        "at": np.linspace(0, len(norms) - 1, frames.shape[1]).astype(int).tolist(),
        "steps": steps[kept].astype(int).tolist(),
        "frames": [rounded(frames[at], FILM_DIGITS) for at in kept],
        "classes": labels.astype(int).tolist(),
        "box": _box(frames[-1]),
        "axes": "first and second feature (data units)",
    }


def _points(run: Record, most: int) -> dict[str, Any] | None:
    nodes, labels = array(run, "nodes", 3), array(run, "test_labels", 1)
    if nodes is None or nodes.shape[2] < 2 or not (lived := alive(nodes, FAR)):
        return None
    if labels is None or len(labels) != nodes.shape[1]:
        labels = np.zeros(nodes.shape[1])
    kept = thinned(nodes.shape[1], min(POINTS, max(2, most // (2 * lived))))
    ways = nodes[:lived, kept, :2]
    return {
        "across": "sub-update",
        "at": list(range(lived)),
        "steps": [],
        "frames": [rounded(ways)],
        "classes": labels[kept].astype(int).tolist(),
        "box": _box(ways),
        "axes": "first and second feature (data units)",
    }


def _orbit(run: Record) -> dict[str, Any] | None:
    x, exact, times = array(run, "x", 2), array(run, "exact", 2), array(run, "times", 1)
    if x is None or exact is None or times is None or not (lived := alive(x, FAR)):
        return None
    kept, reach = thinned(lived, SAMPLES), FRAME * np.abs(exact).max()
    return {
        "across": "time",
        "at": rounded(times[kept]),
        "steps": [],
        "frames": [rounded(x[kept, None])],
        "exact": rounded(exact[thinned(len(exact), SAMPLES)]),
        "classes": [0],
        "box": _box(np.concatenate([exact, np.clip(x[kept], -reach, reach)])),
        "axes": "x and y (length units)",
    }


def _shadows(run: Record) -> dict[str, Any] | None:
    lengths = array(run, "step_length_by_sub_update", 2)
    angles = array(run, "turning_angle_degrees_by_sub_update", 2)
    steps = array(run, "telemetry_steps", 1)
    if lengths is None or angles is None or steps is None:
        return None
    lived = min(alive(lengths, FAR), alive(angles))
    ways = [shadow(lengths[at], angles[at]) for at in range(lived)]
    if not ways:
        return None
    return {
        "across": "sub-update",
        "at": list(range(len(ways[0]))),
        "steps": steps[:lived].astype(int).tolist(),
        "frames": [rounded(way[:, None]) for way in ways],
        "classes": [0],
        "box": _box(np.concatenate(ways)),
        "axes": "plane shadow of the path (units of the stream)",
    }


def _box(points: np.ndarray) -> list[list[float]]:
    """The square view [[left, right], [bottom, top]] of points [..., 2]."""
    flat = points.reshape(-1, 2)
    low, high = flat.min(0), flat.max(0)
    near = np.quantile(flat, [0.05, 0.95], axis=0)
    most, half = FRAME * (near[1] - near[0]).max() / 2, (high - low).max() / 2
    middle, half = (near.mean(0), most) if half > most > 0 else ((low + high) / 2, half or 1.0)
    return rounded(np.stack([middle - 1.08 * half, middle + 1.08 * half], 1))


def thinned(count: int, most: int) -> np.ndarray:
    """Indices of at most `most` of so many things, evenly, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(int))


def rounded(values: np.ndarray, digits: int = DIGITS) -> Any:
    """Nested lists of numbers to so many digits; what is not finite is None."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.abs(values)))
        places = 10.0 ** np.where(np.isfinite(size), digits - 1 - size, 0.0)
        short = np.rint(values * places) / places
    if np.isfinite(short).all():
        return short.tolist()
    return np.where(np.isfinite(short), short, None).tolist()  # type: ignore[arg-type]
