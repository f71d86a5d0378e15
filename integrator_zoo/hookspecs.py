"""The hooks a plugin may implement. Both are called once, when the zoo first looks for plugins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from .contract import Integrator
    from .lab import Experiment

PROJECT = "integrator_zoo"
"""Name of the pluggy project and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def zoo_integrators() -> Iterable[type[Integrator]]:  # type: ignore[empty-body]
    """Classes made with `@integrator(...)`. Real user: every file in `plugins/`."""


@hookspec
def zoo_experiments() -> Iterable[type[Experiment]]:  # type: ignore[empty-body]
    """Classes made with `@experiment(...)`. Real user: every file in `experiments/`."""
