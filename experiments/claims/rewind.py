"""A trained network run backward: the error that rounding leaves."""

from __future__ import annotations

from integrator_zoo.claims import Claim, Mean, Request, within_factor

WAYS = {"float32": "32-bit", "float64": "64-bit", "mixed": "32-bit forward, 64-bit backward"}
PUBLISHED = {
    # (memory mu, how): largest |x0 recovered - x0| over 64 points, 32 layers
    (0.9, "float32"): 3.3e-4,
    (0.6, "float32"): 170.0,
    (0.3, "float32"): 9.7e9,
    (0.9, "float64"): 5.8e-13,
    (0.9, "mixed"): 3.657846e-4,
    (0.6, "mixed"): 54.49848,
    (0.3, "mixed"): 3.663377e10,
}
WHY = (
    "a factor of ten, since the error is rounding magnified up to 1e17 times, through weights that "
    "were trained anew"
)
DISAGREE = (
    "The published law, (1/mu) a layer, gives 1e-7 times 1.3e7 = 1.3 at mu = 0.6, a hundredth of "
    "the published 170: the trained field adds to the growth. `zoo compare rewind` prints the "
    "growth before training, which follows the law, beside that after."
)


def _error(mu: float, way: str, published: float) -> Claim:
    return Claim(
        f"rewind/error-{way}-{mu:g}",
        f"mu {mu:g}, {WAYS[way]}: error after 32 layers undone",
        published,
        *within_factor(published, 10),
        WHY,
        (Request("rewind", f"ledger:mu={mu:g}"),),
        Mean(f"rewind_error_{way}"),
        ".2g",
        remark=DISAGREE if (mu, way) == (0.6, "float32") else "",
    )


CLAIMS = tuple(_error(*key, published) for key, published in PUBLISHED.items())
