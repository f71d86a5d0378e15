"""A plugin-based zoo of integrators for residual networks. Depth is time.

Names are imported when first used, so that `import integrator_zoo` loads neither jax nor Flax.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import problems, trajectory
    from .backbones import GPT, ResidualStack, ResNet, from_blocks
    from .conformance import check_integrator, parametrize_with_checks
    from .contract import (
        Field,
        Integrator,
        Invertible,
        Moving,
        MovingIntegrator,
        Step,
        Traits,
        exactly,
        integrator,
        option,
    )
    from .depth import integrate, rewind
    from .errors import PluginError, ZooError
    from .hookspecs import hookimpl
    from .lab import Experiment, experiment
    from .registry import get, register
    from .training import fit, parameter_count

_HOMES = {
    "backbones": ("GPT", "ResNet", "ResidualStack", "from_blocks"),
    "conformance": ("check_integrator", "parametrize_with_checks"),
    "contract": (
        "Field",
        "Integrator",
        "Invertible",
        "Moving",
        "MovingIntegrator",
        "Step",
        "Traits",
        "exactly",
        "integrator",
        "option",
    ),
    "depth": ("integrate", "rewind"),
    "errors": ("PluginError", "ZooError"),
    "lab": ("Experiment", "experiment"),
    "hookspecs": ("hookimpl",),
    "registry": ("get", "register"),
    "training": ("fit", "parameter_count"),
}
_MODULES = ("problems", "trajectory")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "GPT",
    "Experiment",
    "Field",
    "Integrator",
    "Invertible",
    "Moving",
    "MovingIntegrator",
    "PluginError",
    "ResNet",
    "ResidualStack",
    "Step",
    "Traits",
    "ZooError",
    "check_integrator",
    "exactly",
    "experiment",
    "fit",
    "from_blocks",
    "get",
    "hookimpl",
    "integrate",
    "integrator",
    "option",
    "parameter_count",
    "parametrize_with_checks",
    "problems",
    "register",
    "rewind",
    "trajectory",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value  # a submodule of the same name must not take its place
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
