"""The check of memory modes: what is recomputed or undone must be what was computed."""

from __future__ import annotations

from typing import Any

import jax

from ..depth import MEMORY
from ..errors import PluginError, ZooError
from . import probe
from .base import Measured, Subject, check
from .transforms import case_64, slopes

MODES_AGREE = 1e-6
"""Bound of the gradients of two memory modes, relative to the largest entry."""


@check(
    "memory-modes",
    "recomputation must see the same step, dropout masks included",
    needs=("grad", "inverse-declared", "inverse-algebraic", "inverse-exact"),
)
def memory_modes(subject: Subject) -> Measured:
    """Gradients with dropout 0 and 0.5 in the field, every memory mode against `store`."""
    worst, modes, refused = 0.0, [], []
    with jax.enable_x64(True):
        case = case_64()

        def gradients(mode: str) -> Any:
            return [slopes(subject, mode)(*case, keep)[1] for keep in (1.0, 0.5)]

        for mode in MEMORY:
            try:
                worst = max(worst, probe.distance(gradients(mode), gradients("store")))
                modes.append(mode)
            except PluginError:
                raise
            except ZooError:  # the mode says why it does not serve this rule
                refused.append(mode)
    said = f"{worst:.1e} apart: {', '.join(modes)}"
    said += f"; refused: {', '.join(refused)}" if refused else ""
    return Measured(
        worst <= MODES_AGREE and len(modes) > 1, said, f"{MODES_AGREE:.0e}", value=worst
    )
