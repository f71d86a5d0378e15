"""Pictures of language models are drawn from whatever a record holds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from integrator_zoo import trajectory
from integrator_zoo.figures import shakespeare


def record(spec, seed=0, status="ok", **missing):
    rng = np.random.default_rng(seed)
    arrays = {
        "validation_steps": np.arange(10, 50, 10),
        "validation_loss": 3 - rng.random(4),
        "telemetry_steps": np.array([0, 20, 40]),
        "path_length": 20 + rng.random(3),
        "step_length_by_sub_update": 1 + rng.random((3, 6)),
        "turning_angle_degrees_by_sub_update": 60 * rng.random((3, 5)),
        "velocity_norm_by_sub_update": 1 + rng.random((3, 6)),
    }
    metrics = {"best_val_loss": 2.0, "path_length": 20.0, "turning_angle_degrees": 33.0}
    return SimpleNamespace(
        integrator=spec,
        seed=seed,
        status=status,
        reason=None if status == "ok" else "the loss blew up at step 3",
        arrays={k: v for k, v in arrays.items() if missing.get(k, True)},
        metrics=metrics if status == "ok" else {},
        facts={},
    )


@pytest.mark.parametrize(
    "records",
    [
        [record("a-rule"), record("b-rule:mu=0.5")],
        [record("a-rule", seed) for seed in range(3)],
        [record("a-rule"), record("b-rule", status="diverged", step_length_by_sub_update=False)],
        [record("a-rule", velocity_norm_by_sub_update=False)],
    ],
)
def test_every_picture_is_drawn(records, tmp_path):
    drawn = shakespeare.draw_all(records, tmp_path)
    assert [path.name for path in drawn] == [
        "best_loss.png",
        "validation.png",
        "geometry.png",
        "sub_updates.png",
        "shadows.png",
        "path_length.png",
    ]
    assert all(path.stat().st_size > 2000 for path in drawn)
    assert shakespeare.draw_all([], tmp_path) == []


def test_the_shadow_has_the_measured_lengths_and_bends():
    lengths, angles = np.array([2.0, 1.0, 3.0, 0.5]), np.array([30.0, 95.0, 170.0])
    drawn = trajectory.shadow(lengths, angles)
    np.testing.assert_allclose(trajectory.step_lengths(drawn), lengths, rtol=1e-5)
    np.testing.assert_allclose(trajectory.turning_angles(drawn), angles, rtol=1e-5)
    straight = trajectory.shadow(lengths, np.zeros(3))  # the control: no bend, a straight line
    np.testing.assert_allclose(straight[-1], [6.5, 0])
