"""Memory and gradients against depth, weights shared by all layers."""

from __future__ import annotations

import math

from integrator_zoo.claims import Claim, Entry, Growth, Request

COSINES = {
    # (memory mu, depth): cosine of the reversible gradient in 32-bit with the stored one
    (0.9, 8): 1.0,
    (0.9, 32): 0.9999896,
    (0.9, 128): 0.02551947,
    (0.6, 8): 1.0,
    (0.6, 32): 0.3005386,
    (0.6, 128): 0.001064691,
}
DEPTHS = (8, 32, 128, 512)


def _cosine(mu: float, depth: int, published: float) -> Claim:
    kept = published > 0.99
    said = "kept" if kept else "spoilt"
    return Claim(
        f"memory/cosine-{mu:g}-{depth}",
        f"mu {mu:g}, depth {depth}: the reversible gradient is {said}, cosine",
        published,
        0.999 if kept else -math.inf,
        1.0 if kept else 0.9,
        "gradients: kept is a cosine of at least 0.999, spoilt one of at most 0.9; how far beyond "
        "is chance, rounding being magnified up to 1e28 times",
        (Request("memory", f"ledger:mu={mu:g}"),),
        Entry("cosine_reversible", DEPTHS.index(depth)),
        ".4f",
    )


def _growth(mode: str, published: float, low: float, high: float, said: str) -> Claim:
    return Claim(
        f"memory/growth-{mode}",
        f"temporary memory from depth 8 to 512, mode {mode}: {said}",
        published,
        low,
        high,
        "memory: constant is within 5 %; linear is 40 to 70 times for 64 times the depth",
        (Request("memory", "ledger"),),
        Growth(f"temp_mb_{mode}"),
        ".3g",
    )


CLAIMS = (
    _growth("store", 673.9872 / 13.38429, 40, 70, "grows with depth"),
    _growth("reversible", 1.0, 0.95, 1.05, "does not depend on it"),
    *(_cosine(*key, published) for key, published in COSINES.items()),
)
