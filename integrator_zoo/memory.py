"""What the backward pass through depth keeps: the memory modes, named by spec strings."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .contract import Integrator, Invertible
from .errors import ZooError, unknown
from .options import Options, declare, from_spec, option

REMEDY = "Use memory='remat', which recomputes forward and undoes nothing."


class Store(Options):
    """Keep what every sub-update needs. Fastest; memory grows with depth."""


class Remat(Options):
    """Keep every layer's input and recompute the inside of the layer. Memory grows with depth."""


class Reversible(Options):
    """Keep the final state only, and undo layer after layer in floating point.

    A rounding error of the final state grows by the rule's `amplification()` a sub-update. What
    that will come to is known before anything is run.
    """

    trust: float = option(0.01, "largest relative error of the undone state", above=0.0)
    unsafe: str = option(
        "refuse", "what to do where the error will be larger", choices=("refuse", "warn", "allow")
    )


class Exact(Options):
    """Keep the final state and the digits that friction lost, and undo every layer bit for bit."""

    fraction: int = option(
        0, "binary digits after the point; 0 chooses 22 of 32 or 48 of 64", low=0, high=60
    )


Memory = Store | Remat | Reversible | Exact
_MODES: dict[str, Any] = {
    name: declare(cls, name)()
    for name, cls in {
        "store": Store,
        "remat": Remat,
        "reversible": Reversible,
        "exact": Exact,
    }.items()
}
MEMORY = tuple(_MODES)
UNDOING = ("reversible", "exact")
"""Modes that undo layers: they are laid out for one number each, so rules share no program."""


def read_memory(spec: str) -> Memory:
    """The memory mode that a spec string names, as in 'store' or 'reversible:unsafe=warn'.

    Raises:
        ZooError: an unknown mode, or an unknown or ill-typed option of one.
    """

    def default_of(name: str) -> Memory:
        if name not in _MODES:
            raise unknown("memory mode", name, MEMORY)
        return _MODES[name]

    return from_spec(spec, default_of)


def safe_depth(rule: Invertible, eps: float, error: float = 1.0) -> float:
    """Sub-updates after which undoing them has grown a relative error `eps` to `error`.

    ln(error / eps) / ln(amplification); infinite for a rule that amplifies nothing.
    """
    factor = rule.amplification()
    return math.inf if factor <= 1 else math.log(error / eps) / math.log(factor)


def require_inverse(rule: Integrator) -> Invertible:
    """The rule, if its step can be undone at all.

    Raises:
        ZooError: it has no inverse, or it has none with these options.
    """
    if not isinstance(rule, Invertible):
        raise ZooError(f"integrator {rule.spec!r} has no inverse: it cannot be undone.", REMEDY)
    factor = rule.amplification()
    if isinstance(factor, float) and math.isinf(factor):
        raise ZooError(
            f"integrator {rule.spec!r} forgets a part of its state at every step: undoing it would "
            "divide by zero.",
            REMEDY,
        )
    return rule


def check_trust(rule: Integrator, mode: Reversible, count: int, eps: float) -> None:
    """Refuse, or warn of, an undoing whose error will be too large.

    Args:
        rule: with static options.
        mode: how much error is trusted, and what to do beyond it.
        count: number of sub-updates.
        eps: relative rounding error of the dtype.

    Raises:
        ZooError: the rule cannot be undone; or not this often, and the mode says refuse.
    """
    invertible = require_inverse(rule)
    if mode.unsafe != "allow" and not isinstance(invertible.amplification(), (int, float)):
        raise ZooError(
            f"integrator {rule.name!r}: the error of undoing cannot be told from traced options.",
            "Give plain numbers, or 'reversible:unsafe=allow'.",
        )
    if mode.unsafe == "allow":
        return
    limit = safe_depth(invertible, eps, mode.trust)
    if count <= limit:
        return
    digits = math.log10(eps) + count * math.log10(invertible.amplification())
    message = (
        f"integrator {rule.spec!r}: undoing {count} sub-updates will leave a relative error of "
        f"1e{digits:+.0f} (eps {eps:.1e}, times {invertible.amplification():.3g} each), above "
        f"trust={mode.trust:g}. Safe depth: {int(limit)}; no digit is left at "
        f"{int(safe_depth(invertible, eps))}."
    )
    if mode.unsafe == "refuse":
        raise ZooError(message, "Use memory='exact' or 'remat', or 'reversible:unsafe=warn'.")
    warnings.warn(message, stacklevel=4)
