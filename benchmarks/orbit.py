"""Orbit steps a second: leapfrog through the library, in NumPy, and in REBOUND's C.

    python benchmarks/orbit.py [--rebound-python PYTHON] [--json FILE]

A planet about a fixed sun, GM = 1, 64-bit, for one orbit and for 1,024 orbits at once (positions
[2, 1024]). See benchmarks/README.md.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from harness import (
    Spread,
    finish,
    machine,
    options,
    seconds,
    serve_side,
    spreads,
    table,
    take_turns,
)

REQUIRED = {"one orbit": 150, "1,024 orbits": 1000}
"""How many times more orbit steps a second than the NumPy loop of one orbit."""
MANY = 1024
STEP = 0.001
CHECKED = 1000
"""Steps after which the sides are compared."""
AGREE = 1e-9


def starts(orbits: int) -> tuple[Any, Any]:
    """Positions and velocities: [2] for one orbit, [2, orbits] for more, no two alike."""
    import numpy as np

    if orbits == 1:
        return np.array([1.0, 0.0]), np.array([0.0, 0.9])
    speed = np.linspace(0.9, 1.1, orbits)
    return np.stack([np.ones(orbits), np.zeros(orbits)]), np.stack([np.zeros(orbits), speed])


def ours(orbits: int) -> dict[str, Any]:
    """`final_position`, and for one orbit also `solve`, which keeps and compares all nodes."""
    import integrator_zoo as zoo
    from integrator_zoo.problems import Kepler, final_position, solve

    rule, planet, start = zoo.get("leapfrog"), Kepler(), starts(orbits)
    other = zoo.get("leapfrog-dkd")
    steps = 10_000_000 if orbits == 1 else 200_000
    compile_seconds = seconds(lambda: final_position(rule, planet, STEP, 1, start))
    spent = seconds(lambda: final_position(rule, planet, STEP, steps, start))
    found = {
        "rate": orbits * steps / spent,
        "compile_seconds": compile_seconds,
        "end": _end(final_position(rule, planet, STEP, CHECKED, start)),
        "end_dkd": _end(final_position(other, planet, STEP, CHECKED, start)),
    }
    if orbits == 1:
        steps = 500_000
        solve(rule, planet, STEP, steps)  # compiles
        found["solve_rate"] = steps / seconds(lambda: solve(rule, planet, STEP, steps))
    return found


def numpy_loop(orbits: int) -> dict[str, Any]:
    """Kick-drift-kick as one writes it; the arrays hold all orbits at once."""
    import numpy as np

    def force(x: Any) -> Any:
        return -x / np.sum(x * x, axis=0) ** 1.5

    def leapfrog(x: Any, v: Any, h: float, steps: int) -> Any:
        a = force(x)
        for _ in range(steps):
            w = v + h / 2 * a
            x = x + h * w
            a = force(x)
            v = w + h / 2 * a
        return x

    start = starts(orbits)
    steps = 100_000 if orbits == 1 else 20_000
    end = leapfrog(*start, STEP, CHECKED)  # warms up
    spent = seconds(lambda: leapfrog(*start, STEP, steps))
    return {"rate": orbits * steps / spent, "end": _end(end)}


def rebound(orbits: int) -> dict[str, Any]:
    """REBOUND's leapfrog (drift-kick-drift): test particles about a sun of unit mass."""
    import rebound as package

    def simulation() -> Any:
        sim = package.Simulation()
        sim.integrator, sim.dt = "leapfrog", STEP
        sim.add(m=1.0)
        x, v = (part.reshape(2, -1) for part in starts(orbits))
        for i in range(orbits):
            sim.add(x=x[0, i], y=x[1, i], vx=v[0, i], vy=v[1, i])
        sim.N_active = 1  # only the sun attracts
        return sim

    sim = simulation()
    sim.steps(CHECKED)  # warms up
    end = [sim.particles[1].x, sim.particles[1].y]
    sim, steps = simulation(), 5_000_000 if orbits == 1 else 20_000
    return {"rate": orbits * steps / seconds(lambda: sim.steps(steps)), "end_dkd": end}


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}"


def _end(x: Any) -> list[float]:
    """The position of the first orbit."""
    return x.reshape(2, -1)[:, 0].tolist()


SIDES = {"ours": ours, "numpy": numpy_loop, "rebound": rebound}


def check(found: dict[str, list[dict[str, Any]]]) -> None:
    """Refuse sides that do not find the same place."""
    mine = found["ours"][0]
    for side, every in found.items():
        for key in {"end", "end_dkd"} & every[0].keys():
            gap = math.dist(every[0][key], mine[key])
            if gap > AGREE:
                raise SystemExit(f"{side} ends {gap:g} away from ours: not the same method.")


def main() -> int:
    parser = options(__doc__ or "", repeats=5)
    parser.add_argument(
        "--rebound-python",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has rebound",
    )
    chosen = parser.parse_args()
    report: dict[str, Any] = {"machine": machine(), "sides": {}, "ratios": {}}
    print(report["machine"], flush=True)
    interpreters = {**dict.fromkeys(SIDES, sys.executable), "rebound": chosen.rebound_python}
    for name, orbits in zip(REQUIRED, (1, MANY), strict=True):
        found = take_turns(__file__, interpreters, chosen, orbits=orbits)
        check(found)
        report["sides"][name] = {side: spreads(every) for side, every in found.items()}
    one, many = report["sides"].values()
    by_one = [
        ("ours, final_position", one["ours"]["rate"]),
        ("ours, solve (keeps and checks every node)", one["ours"]["solve_rate"]),
        ("NumPy loop", one["numpy"]["rate"]),
    ]
    by_many = [
        ("ours, final_position", many["ours"]["rate"]),
        ("NumPy loop, orbit by orbit", one["numpy"]["rate"]),
        ("NumPy loop, all orbits in one array", many["numpy"]["rate"]),
    ]
    for lines, sides in ((by_one, one), (by_many, many)):
        if "rebound" in sides:
            lines.append(("REBOUND", sides["rebound"]["rate"]))
    rows, short = [], []
    for (name, wanted), lines in zip(REQUIRED.items(), (by_one, by_many), strict=True):
        best = lines[0][1]["median"]
        ratio = report["ratios"][name] = best / one["numpy"]["rate"]["median"]
        if ratio < wanted:
            short.append(f"{name}: {ratio:.0f} times, {wanted:,} wanted")
        for what, rate in lines:
            bar = f"{wanted:,}" if rate is one["numpy"]["rate"] else ""
            times = _times(best / rate["median"]) if rate is not lines[0][1] else ""
            rows.append([name, what, Spread(**rate).show(1e-6), times, bar])
    print("\nMillion orbit steps a second: median (least to most)\n")
    print(table(("", "side", "million steps a second", "ours / side", "required"), rows))
    compiling = [Spread(**sides["ours"]["compile_seconds"]).show() for sides in (one, many)]
    others = max(side["others"]["high"] for sides in (one, many) for side in sides.values())
    print(f"\nours compiles in {compiling[0]} s and {compiling[1]} s, not counted above")
    print(f"cores used by other processes meanwhile: at most {others:.1f}")
    return finish(report, chosen.json, short)


if __name__ == "__main__":
    sys.exit(0 if serve_side(SIDES) else main())
