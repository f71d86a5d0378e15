"""Problems with known solutions, and the two lifts that let every integrator run on each.

Positions are laid out [features] or [features, batch]: features on axis 0, so that a batch of
orbits is contiguous. A problem is a frozen dataclass of its constants and its start. Everything
here is computed in 64-bit inside a local context; the caller's configuration stays as it is.
"""

from .catalogue import (
    DampedOscillator,
    Kepler,
    Oscillator,
    Pendulum,
    Problem,
    Rotation,
    problem,
)
from .ensembles import RigidBodies, Toda, fitting
from .order import OrderFit, observed_order
from .solve import Lifted, Solution, evaluations_per_step, final_position, solve

PROBLEMS: tuple[type[Problem], ...] = (
    Kepler,
    Oscillator,
    DampedOscillator,
    Pendulum,
    Rotation,
    RigidBodies,
    Toda,
)

__all__ = [
    "PROBLEMS",
    "DampedOscillator",
    "Kepler",
    "Lifted",
    "OrderFit",
    "Oscillator",
    "Pendulum",
    "Problem",
    "RigidBodies",
    "Rotation",
    "Solution",
    "Toda",
    "evaluations_per_step",
    "final_position",
    "fitting",
    "observed_order",
    "problem",
    "solve",
]
