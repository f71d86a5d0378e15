"""Geometry of paths, on paths whose geometry is known."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrator_zoo import trajectory


def polyline(angle_degrees, lengths):
    heading = np.radians(angle_degrees) * np.arange(len(lengths))
    steps = np.stack([np.cos(heading), np.sin(heading)], -1) * np.asarray(lengths)[:, None]
    return jnp.asarray(np.concatenate([[[0, 0]], steps.cumsum(0)])[:, None], jnp.float32)


@settings(deadline=None, max_examples=30)
@given(angle=st.floats(0.1, 179.9), lengths=st.lists(st.floats(0.1, 10), min_size=2, max_size=6))
def test_angles_and_lengths_of_a_polyline(angle, lengths):
    path = polyline(angle, lengths)
    np.testing.assert_allclose(trajectory.step_lengths(path)[:, 0], lengths, rtol=1e-4)
    np.testing.assert_allclose(trajectory.turning_angles(path), angle, atol=0.05)
    np.testing.assert_allclose(trajectory.path_length(path)[0], sum(lengths), rtol=1e-4)
    assert 0 <= float(trajectory.straightness(path)[0]) <= 1 + 1e-5


def test_small_angles_are_exact_where_arccos_is_not():
    path = polyline(0.01, [1, 1, 1])
    assert trajectory.turning_angles(path)[0, 0] == pytest.approx(0.01, rel=1e-2)


def test_a_straight_path_and_one_that_rests():
    assert float(trajectory.straightness(polyline(0, [1, 2, 3]))[0]) == pytest.approx(1)
    rest = jnp.zeros((4, 2, 3))
    assert np.all(np.asarray(trajectory.turning_angles(rest)) == 0)
    assert np.all(np.asarray(trajectory.straightness(rest)) == 1)


def test_a_trajectory_serves_as_its_nodes():
    path = polyline(30, [1, 2])
    held = trajectory.Trajectory(path, {})
    np.testing.assert_array_equal(trajectory.norms(held), trajectory.norms(path))
