"""Geometry of a path through depth: pure functions of its nodes.

`nodes` is the array [sub-updates + 1, ..., features] of all positions of the residual stream (or a
`Trajectory` that holds it). Lengths are in the units of the stream, angles in degrees. Each
function gives one number per point; the caller takes the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jax import Array
else:
    Array = Any


class Trajectory(NamedTuple):
    """All nodes of a path, and what the integrator let us observe after each sub-update."""

    nodes: Array
    """[sub-updates + 1, ..., features]; node 0 is the position before the first sub-update."""
    observed: dict[str, Array]
    """Extras such as the velocity: [sub-updates + 1, ..., features], index 0 at the start."""


def displacements(path: Any) -> Array:
    """Node to node: [sub-updates, ..., features]."""
    nodes = _nodes(path)
    return nodes[1:] - nodes[:-1]


def norms(path: Any) -> Array:
    """Length of the stream at each node: [sub-updates + 1, ...]."""
    return _norm(_nodes(path))


def step_lengths(path: Any) -> Array:
    """Length of each displacement: [sub-updates, ...]."""
    return _norm(displacements(path))


def path_length(path: Any) -> Array:
    """Sum of the displacements' lengths: [...]."""
    return step_lengths(path).sum(0)


def end_to_end(path: Any) -> Array:
    """Distance between the first and the last node: [...]."""
    nodes = _nodes(path)
    return _norm(nodes[-1] - nodes[0])


def straightness(path: Any) -> Array:
    """End-to-end distance over path length, from 0 to 1; 1 for a path that does not move: [...]."""
    import jax.numpy as jnp

    length = path_length(path)
    return jnp.where(length > 0, end_to_end(path) / jnp.where(length > 0, length, 1), 1.0)


def turning_angles(path: Any) -> Array:
    """Angle between consecutive displacements, in degrees: [sub-updates - 1, ...].

    Computed as 2 atan2(|a - b|, |a + b|) of the unit displacements, exact also where the
    angle is small. Where a displacement is zero there is no angle; 0 is given.
    """
    import jax.numpy as jnp

    moves = displacements(path)
    lengths = _norm(moves)
    units = moves / jnp.where(lengths > 0, lengths, 1)[..., None]
    a, b = units[:-1], units[1:]
    angle = 2 * jnp.arctan2(_norm(a - b), _norm(a + b))
    moved = (lengths[:-1] > 0) & (lengths[1:] > 0)
    return jnp.where(moved, jnp.degrees(angle), 0.0)


def _nodes(path: Any) -> Array:
    return path.nodes if isinstance(path, Trajectory) else path


def _norm(x: Any) -> Array:
    import jax.numpy as jnp

    return jnp.sqrt(jnp.sum(jnp.square(x), axis=-1))


def profile(path: Trajectory) -> dict[str, Array]:
    """The geometry of a path, averaged over its points; needs at least one sub-update.

    By sub-update: `step_length` [n], `turning_angle_degrees` [n - 1], `norm` [n + 1], and
    `<extra>_norm` [n] for each observed extra (velocity, raw step before retraction). As a whole:
    `path_length`, `end_to_end`, `straightness`, and the mean `mean_turning_angle_degrees`.
    """
    import jax.numpy as jnp

    def over_points(values: Array) -> Array:
        return values.reshape(len(values), -1).mean(1)

    angles = turning_angles(path)
    by_sub_update = {
        "step_length": over_points(step_lengths(path)),
        "turning_angle_degrees": over_points(angles),
        "norm": over_points(norms(path)),
    }
    for name, extra in path.observed.items():
        by_sub_update[f"{name}_norm"] = over_points(_norm(extra[1:]))
    return by_sub_update | {
        "path_length": path_length(path).mean(),
        "end_to_end": end_to_end(path).mean(),
        "straightness": straightness(path).mean(),
        "mean_turning_angle_degrees": angles.mean() if angles.size else jnp.zeros(()),
    }


def shadow(lengths: Any, angles: Any) -> Any:
    """A plane polyline with given segment lengths [n] and bends [n - 1] in degrees: [n + 1, 2].

    The faithful two-dimensional shadow of a path: every segment has its measured length and every
    bend its measured angle. Bends alternate left and right, since the plane has only these two
    ways to turn; the first segment points along x. Numpy, for drawing.
    """
    import numpy as np

    lengths, bends = np.asarray(lengths, float), np.radians(np.asarray(angles, float))
    turns = np.where(np.arange(len(bends)) % 2 == 0, bends, -bends)
    heading = np.concatenate([[0.0], np.cumsum(turns)])
    moves = lengths[:, None] * np.stack([np.cos(heading), np.sin(heading)], 1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(moves, 0)])
