"""What the benchmarks share: fresh processes, medians, a table. Standard library only.

Each side of a comparison is a function of a benchmark script that runs alone in a fresh process,
so that no side sees another's devices, threads or caches, and each may have its own interpreter.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Side = Callable[..., dict[str, Any]]


class Spread(NamedTuple):
    """The repeats of one figure."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def show(self, scale: float = 1.0, digits: int = 3) -> str:
        def number(value: float) -> str:
            value *= scale
            return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"

        return f"{number(self.median)} ({number(self.low)} to {number(self.high)})"


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def options(about: str, repeats: int) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=repeats, help="fresh processes a side")
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="for a quiet machine, at most",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    return parser


def in_fresh_process(
    script: str,
    side: str,
    python: str = sys.executable,
    wait: float = 0.0,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> dict[str, Any] | None:
    """Run one side of `script` alone; None where a package it needs is not installed.

    `wait` is for how many seconds at most to wait for a quiet machine, `environment` what is set
    beside what is there. Beside what the side found
    the answer has `others`: how many cores other processes used while it ran.
    """
    _until_quiet(wait)
    command = [python, script, "--side", side, json.dumps(settings)]
    clock, busy, own = time.perf_counter(), _busy_seconds(), _child_seconds()
    environ = {**os.environ, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    busy, own = _busy_seconds() - busy, _child_seconds() - own
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    if "missing" in found:
        return None
    return {**found, "others": max(0.0, busy - own) / (time.perf_counter() - clock)}


def take_turns(
    script: str,
    sides: Mapping[str, str],
    chosen: argparse.Namespace,
    environments: Mapping[str, Mapping[str, str]] | None = None,
    **settings: Any,
) -> dict[str, list[dict[str, Any]]]:
    """What each side found in each repeat; {side: interpreter}, those not installed left out.

    `environments` holds the environment variables of the sides that are started with some.
    """
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for _ in range(chosen.repeats):
        for side, python in sides.items():
            one = in_fresh_process(
                script, side, python, chosen.wait, (environments or {}).get(side), **settings
            )
            if one is not None:
                found[side].append(one)
    return {side: every for side, every in found.items() if every}


def spreads(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The repeats of one side, figure by figure; what is not a number is left out."""
    return {
        key: Spread.of([one[key] for one in every])._asdict()
        for key, value in every[0].items()
        if isinstance(value, int | float)
    }


QUIET = 0.1
"""Cores used by others, below which the machine is quiet."""


def _until_quiet(most: float) -> None:
    while most > 0:
        before = _busy_seconds()
        time.sleep(2)
        if (_busy_seconds() - before) / 2 < QUIET:
            return
        most -= 2


def _busy_seconds() -> float:
    """Core-seconds used on the whole machine; 0 where the system does not tell."""
    try:
        ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, *rest = map(int, ticks[:8])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _child_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def serve_side(sides: Mapping[str, Side]) -> bool:
    """In the fresh process: run the side that was asked for and print what it found."""
    if sys.argv[1:2] != ["--side"]:
        return False
    try:
        found = sides[sys.argv[2]](**json.loads(sys.argv[3]))
    except ModuleNotFoundError as error:
        found = {"missing": error.name}
    print(json.dumps(found))
    return True


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of one call; `work` must wait for its own result."""
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def machine() -> str:
    """One line: cores, load of others when the benchmark starts, versions."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    version = importlib.metadata.version
    versions = ", ".join(f"{name} {version(name)}" for name in ("jax", "flax", "numpy"))
    return (
        f"{cores()} {platform.machine()} cores (CPU), load before the start {load}, "
        f"Python {platform.python_version()}, {versions}"
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, aligned."""
    lines = [headings, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    text = [
        " | ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
    ]
    text.insert(1, " | ".join("-" * (w - 1) + ":" for w in widths))
    return "\n".join(f"| {line} |" for line in text)


def finish(report: dict[str, Any], target: Path | None, short: Sequence[str]) -> int:
    """Write the report where asked, name what fell short, and give the exit status."""
    if target is not None:
        target.write_text(json.dumps(report, indent=2) + "\n")
    for line in short:
        print(f"below what is required: {line}")
    return 1 if short else 0
