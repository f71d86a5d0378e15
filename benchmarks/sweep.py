"""The published grid of 54 planar runs in one command, against loops written by hand.

    python benchmarks/sweep.py [--json FILE]

Our side is `zoo sweep` from nothing, as a user starts it, in a fresh process: its whole wall time
with start, compilation, measurements, records and pictures. The other side is the Flax NNX loop of
benchmarks/planar.py, whose time for the grid is extrapolated: milliseconds a step measured at each
depth, times 4,000 steps, times the 18 runs of that depth, one after another. See
benchmarks/README.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import planar
from harness import finish, machine, options, seconds, serve_side, spreads, table, take_turns

REQUIRED = 20
"""How many times faster than the hand-written loop we have to be."""
RUNS_A_DEPTH, STEPS, DEPTHS = 18, 4000, (8, 32, 128)


def ours() -> dict[str, Any]:
    """`zoo sweep` in an empty folder; of its core-seconds, the share spent compiling."""
    from integrator_zoo.runs.store import read

    command = [sys.executable, "-c", "from integrator_zoo.cli import main; main()", "sweep"]
    with tempfile.TemporaryDirectory() as folder:
        run = [*command, "--out", folder]
        whole = seconds(lambda: subprocess.run(run, check=True, capture_output=True))
        records = [read(file.parent) for file in Path(folder).glob("*/*/record.json")]
    spent = [record.data["seconds"] for record in records]
    training = sum(one["run_seconds"] for one in spent)
    # a run that found its program compiled took only what starting a call takes
    compiling = sum(one["compile_seconds"] for one in spent)
    return {
        "whole_seconds": whole,
        "runs": len(records),
        "runs_a_minute": 60 * len(records) / whole,
        "compiling_share": compiling / (compiling + training),
        "core_seconds": os.times().children_user + os.times().children_system,
    }


SIDES = {"ours": ours, "by_hand": planar.by_hand}


def main() -> int:
    chosen = options(__doc__ or "", repeats=1).parse_args()
    print(machine(), flush=True)
    mine = spreads(take_turns(__file__, {"ours": sys.executable}, chosen)["ours"])
    report: dict[str, Any] = {"ours": mine, "by_hand": {}}
    total = 0.0
    for depth in DEPTHS:
        found = take_turns(__file__, {"by_hand": sys.executable}, chosen, depth=depth)
        report["by_hand"][depth] = spreads(found["by_hand"])
        total += report["by_hand"][depth]["milliseconds"]["median"] / 1e3 * STEPS * RUNS_A_DEPTH
    whole = mine["whole_seconds"]["median"]
    report["ratio"] = total / whole
    rows = [
        ["ours, zoo sweep", f"{whole:,.0f}", f"{mine['runs_a_minute']['median']:.1f}",
         f"{mine['compiling_share']['median']:.0%}", ""],
        ["by hand, extrapolated", f"{total:,.0f}",
         f"{60 * RUNS_A_DEPTH * len(DEPTHS) / total:.2f}", "", f"{total / whole:.1f}"],
    ]  # fmt: skip
    print(table(["side", "grid, s", "runs a minute", "compiling", "side / ours"], rows))
    short = [] if total / whole >= REQUIRED else [f"{total / whole:.1f} times, {REQUIRED} wanted"]
    return finish(report, chosen.json, short)


if __name__ == "__main__":
    sys.exit(0 if serve_side(SIDES) else main())
