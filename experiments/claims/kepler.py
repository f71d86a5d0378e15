"""The orbit: twenty revolutions at four step sizes, and leapfrog's second order."""

from __future__ import annotations

from integrator_zoo.claims import Claim, Mean, Ratio, Request, Separation, near

ROWS = (
    # dt, Euler's drift, leapfrog's largest deviation, Euler's reach, leapfrog's reach, separation
    (0.05, 0.7615661, 0.001005462, 5.165722, 1.0, 2.980207),
    (0.02, 0.6831306, 0.0001624144, 3.368737, 1.0, 2.574578),
    (0.01, 0.5884022, 4.065905e-05, 2.562096, 1.0, 1.971496),
    (0.005, 0.4755364, 1.016823e-05, 2.073854, 1.0, 1.133586),
)
DIGITS = 1e-4
WHY = "deterministic in 64-bit, so 0.01 % about the published digits"
LAST_SAMPLE = (
    "The published separation at step 0.005 is that of its last sample, one step before the end: "
    "energy and reach were sampled every `steps // 4000` steps. At the end itself it is 0.2 % less."
)


def request(integrator: str, dt: float) -> Request:
    return Request("kepler", integrator, settings={"dt": dt})


def _orbit(dt: float, drift: float, deviation: float, reach: float, calm: float, apart: float):
    euler, leapfrog = request("euler", dt), request("leapfrog", dt)
    rows = (
        ("euler-drift", "Euler's energy drift, %", drift, (euler,), Mean("energy_drift"), 100),
        ("leapfrog-deviation", "leapfrog's largest energy deviation, %", deviation, (leapfrog,),
         Mean("max_energy_deviation"), 100),
        ("euler-reach", "Euler's farthest reach", reach, (euler,), Mean("farthest_reach"), 1),
        ("leapfrog-reach", "leapfrog's farthest reach", calm, (leapfrog,),
         Mean("farthest_reach"), 1),
        ("separation", "distance between the two ends", apart, (euler, leapfrog),
         Separation(("final_x", "final_y")), 1),
    )  # fmt: skip
    for name, what, published, requests, measure, scale in rows:
        yield Claim(
            f"orbit/{name}-{dt:g}",
            f"dt {dt:g}: {what}",
            published,
            *near(published, DIGITS),
            WHY,
            requests,
            measure,
            ".5g",
            scale,
            remark=LAST_SAMPLE if (name, dt) == ("separation", 0.005) else "",
        )


def _halving(coarse: float, fine: float, factor: float) -> Claim:
    return Claim(
        f"orbit/leapfrog-order-{coarse:g}-{fine:g}",
        f"leapfrog's deviation falls by the square, dt {coarse:g} to {fine:g}",
        factor,
        *near(factor, 0.02),
        "2 % about the square of the ratio of the steps",
        (request("leapfrog", coarse), request("leapfrog", fine)),
        Ratio("max_energy_deviation"),
        ".4f",
    )


CLAIMS = (
    *(claim for row in ROWS for claim in _orbit(*row)),
    _halving(0.05, 0.02, 6.25),
    _halving(0.02, 0.01, 4.0),
    _halving(0.01, 0.005, 4.0),
)
