"""What is measured of a planar network: the geometry of its paths, its decision, its training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from integrator_zoo.contract import Integrator

DRAWN_POINTS = 256
"""Test points whose trajectories are recorded, half of each class."""
GRID = 100
"""Points a side of the grid on which the decision is recorded."""
FILM_GRID, FILM_POINTS, FILM_NODES = 40, 24, 33
"""The film of a training: points a side of the grid, test points, most nodes of a path."""


class Measures:
    """A base of the planar experiments, so that its source counts in a run's config."""

    def measure(self: Any, net: Any, rule: Integrator, test_x: Any, test_y: Any) -> Any:
        """Metrics and arrays of one trained network."""
        import jax.numpy as jnp

        from integrator_zoo import trajectory

        logits, path = net(test_x, collect=True, integrator=rule)
        axis, grid = grid_over(test_x, GRID)
        field = net(grid, integrator=rule)
        norms = trajectory.norms(path)
        arrays = {
            "nodes": path.nodes[:, picks(self.test_points)],
            "norm_by_node": norms.mean(1),
            "step_length_by_sub_update": trajectory.step_lengths(path).mean(1),
            "turning_angle_degrees_by_sub_update": trajectory.turning_angles(path).mean(1),
            "decision": (field[:, 1] - field[:, 0]).reshape(GRID, GRID),
            "decision_axis": axis,
        }
        metrics = {
            "test_accuracy": (logits.argmax(-1) == test_y).mean(),
            "path_length": trajectory.path_length(path).mean(),
            "end_to_end": trajectory.end_to_end(path).mean(),
            "turning_angle_degrees": trajectory.turning_angles(path).mean(),
            "straightness": trajectory.straightness(path).mean(),
            "norm_end": norms[-1].mean(),
            "norm_max": norms.mean(1).max(),
        }
        if "velocity" in path.observed:
            kinetic = (path.observed["velocity"] ** 2).sum(-1).mean(1) / 2
            arrays["kinetic_energy_by_node"] = kinetic
            velocity = path.observed["velocity"][:, picks(self.test_points)]
            arrays["velocity"] = velocity.astype(jnp.float16)
            metrics["kinetic_energy_end"] = kinetic[-1]
        return metrics, arrays

    def film(self: Any, net: Any, rule: Integrator, test_x: Any) -> dict[str, Any]:
        """What one sees of the training at one moment: decision [grid, grid], nodes of some points.

        Coarse and in 16 bits: they are to be looked at.
        """
        import jax.numpy as jnp

        nodes = np.unique(np.linspace(0, self.depth, FILM_NODES).astype(int))
        picked = test_x[picks(self.test_points, FILM_POINTS)]
        seen = jnp.concatenate([grid_over(test_x, FILM_GRID)[1], picked])
        logits, path = net(seen, collect=True, integrator=rule)
        field = (logits[:, 1] - logits[:, 0])[: -len(picked)]
        return {
            "decision": field.reshape(FILM_GRID, FILM_GRID).astype(jnp.float16),
            "nodes": path.nodes[nodes, -len(picked) :].astype(jnp.float16),
        }


def picks(points: int, most: int = DRAWN_POINTS) -> np.ndarray:
    """Indices of the recorded test points, evenly over both classes."""
    return np.linspace(0, points - 1, min(most, points)).astype(int)


def thin(values: np.ndarray, most: int = DRAWN_POINTS) -> np.ndarray:
    return values[picks(len(values), most)]


def grid_over(points: Any, side: int) -> tuple[Any, Any]:
    """An axis [side] a little wider than the points, and the grid over it [side^2, 2]."""
    import jax.numpy as jnp

    reach = jnp.abs(points).max() * 1.1
    axis = jnp.linspace(-reach, reach, side)
    return axis, jnp.stack(jnp.meshgrid(axis, axis), -1).reshape(-1, 2)
