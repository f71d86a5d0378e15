"""Three planar classification problems: rings, moons, spirals.

Two classes of equal size, in [points, 2] float32 with int32 labels. The annulus of `rings` encloses
the disk, so no continuous flow of the plane can separate them by a line: only a rule that takes
coarse steps, or carries a velocity, can.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import ZooError, unknown

Draw = Callable[[np.random.Generator, int], np.ndarray]


class PlanarData(NamedTuple):
    """Training and test points of one seed."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def digest(self) -> str:
        """SHA-256 of all bytes, shortened to 16 hexadecimal digits."""
        return hashlib.sha256(b"".join(part.tobytes() for part in self)).hexdigest()[:16]


def planar_data(
    name: str, seed: int, train_points: int = 1024, test_points: int = 2048
) -> PlanarData:
    """The data of a seed: generator 1000 + seed, training points drawn first, then test points.

    Raises:
        ZooError: an unknown set, or an odd number of points.
    """
    if name not in PLANAR_SETS:
        raise unknown("planar data set", name, PLANAR_SETS)
    for points in (train_points, test_points):
        if points < 2 or points % 2:
            raise ZooError(
                f"{points} points cannot make two equal classes.", "Give an even number."
            )
    rng = np.random.default_rng(1000 + seed)
    train = PLANAR_SETS[name](rng, train_points // 2)
    test = PLANAR_SETS[name](rng, test_points // 2)
    return PlanarData(train, _labels(train), test, _labels(test))


def _labels(x: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(2, dtype=np.int32), len(x) // 2)


def rings(rng: np.random.Generator, half: int) -> np.ndarray:
    """A disk of radius 0.6 (uniform) inside an annulus 1.3 to 1.8; noise 0.04."""
    radius = np.concatenate([0.6 * np.sqrt(rng.random(half)), rng.uniform(1.3, 1.8, half)])
    angle = rng.uniform(0, 2 * np.pi, 2 * half)
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return (x + rng.normal(0, 0.04, x.shape)).astype(np.float32)


def moons(rng: np.random.Generator, half: int) -> np.ndarray:
    """Two half circles, the second flipped and shifted by (1, 0.5); noise 0.08; standardised."""
    angle = rng.uniform(0, np.pi, 2 * half)
    circle = np.stack([np.cos(angle), np.sin(angle)], 1)
    circle[half:] = [1.0, 0.5] - circle[half:]
    x = circle + rng.normal(0, 0.08, circle.shape)
    return ((x - x.mean(0)) / x.std(0).mean()).astype(np.float32)


def spirals(rng: np.random.Generator, half: int) -> np.ndarray:
    """Two arms of 1.75 turns, the second turned by pi; noise 0.05; scaled to deviation 0.9."""
    turns = 1.75 * 2 * np.pi
    t = np.sqrt(rng.uniform(0.05, 1, 2 * half)) * turns
    radius = 0.15 + 0.85 * t / turns
    x = radius[:, None] * np.stack([np.cos(t), np.sin(t)], 1)
    x[half:] *= -1
    x += rng.normal(0, 0.05, x.shape)
    return (x * (0.9 / x.std(0).mean())).astype(np.float32)


PLANAR_SETS: dict[str, Draw] = {"rings": rings, "moons": moons, "spirals": spirals}
