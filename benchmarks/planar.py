"""Milliseconds per run and training step: the planar experiment against loops written by hand.

    python benchmarks/planar.py [--torch-python PYTHON] [--json FILE]

Three sides train the same residual network (2 features, 16 hidden units, total time 8, Adam, full
batch of 1,024 points): the experiment `rings` as `zoo compare` runs it, six runs in one go; the
Flax NNX loop one would write by hand, one run; and `momentumnet` in PyTorch, one run. See
benchmarks/README.md.
"""

from __future__ import annotations

import sys
from typing import Any

from harness import (
    Spread,
    cores,
    finish,
    machine,
    options,
    seconds,
    serve_side,
    spreads,
    table,
    take_turns,
)

REQUIRED = {8: 10, 32: 20, 128: 10}
"""Depth: how many times faster than the hand-written loop we have to be."""
OUR_STEPS, HAND_STEPS, TORCH_STEPS = 4000, {8: 100, 32: 100, 128: 30}, {8: 100, 32: 50, 128: 20}
POINTS, WIDTH, HIDDEN, TOTAL_TIME, LR, MU = 1024, 2, 16, 8.0, 3e-3, 0.9
SPECS, SEEDS = ("euler", f"ledger:mu={MU}"), 3


def ours(depth: int) -> dict[str, Any]:
    """Euler and ledger, three seeds each, through the experiment, one device a core."""
    import jax

    jax.config.update("jax_num_cpu_devices", cores())
    import integrator_zoo as zoo
    from integrator_zoo.lab import Job
    from integrator_zoo.training import share_out
    from integrator_zoo_experiments.planar import Rings

    experiment = Rings(depth=depth, steps=OUR_STEPS)  # otherwise as in the study
    jobs = [Job(zoo.get(spec), seed) for spec in SPECS for seed in range(SEEDS)]
    results = {}
    whole = seconds(
        lambda: results.update(
            (result.job, result) for result in experiment.run(jobs, lambda *_: None)
        )
    )
    failed = [result.reason for result in results.values() if result.status != "ok"]
    if failed:
        raise RuntimeError(failed[0])
    # A device trains its loads one after another, all devices side by side.
    train_seconds = max(
        sum(results[job].run_seconds for load in share for job in load.jobs)
        for share in share_out(jobs, jax.local_device_count())
    )
    return {
        "milliseconds": 1e3 * train_seconds / (len(jobs) * OUR_STEPS),
        "compile_seconds": max(result.compile_seconds for result in results.values()),
        "whole_seconds": whole,
        "parameters": results[jobs[0]].metrics["parameters"],
    }


def by_hand(depth: int) -> dict[str, Any]:
    """Euler, one seed, a jitted training step called from a Python loop; JAX as it comes."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    from integrator_zoo import parameter_count
    from integrator_zoo.data import planar_data

    class Block(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.inner = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
            self.outer = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.outer(jnp.tanh(self.inner(x)))

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.blocks = nnx.List([Block(rngs) for _ in range(depth)])
            self.readout = nnx.Linear(WIDTH, 2, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            for block in self.blocks:
                x = x + TOTAL_TIME / depth * block(x)
            return self.readout(x)

    @nnx.jit
    def train_step(model: Net, optimizer: nnx.Optimizer, x: jax.Array, y: jax.Array) -> jax.Array:
        def loss_of(model: Net) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        loss, grads = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, grads)
        return loss

    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(LR), wrt=nnx.Param)
    data = planar_data("rings", 0, POINTS)
    x, y = jnp.asarray(data.train_x), jnp.asarray(data.train_y)
    steps = HAND_STEPS[depth]

    def loop(step: Any) -> float:
        """Milliseconds a step, after one call that compiles and two that warm up."""
        for _ in range(2):
            step().block_until_ready()

        def run() -> None:
            for _ in range(steps - 1):
                step()
            step().block_until_ready()

        return 1e3 * seconds(run) / steps

    compile_seconds = seconds(lambda: train_step(model, optimizer, x, y).block_until_ready())
    plain = loop(lambda: train_step(model, optimizer, x, y))
    cached_step = nnx.cached_partial(train_step, model, optimizer)
    return {
        "milliseconds": plain,
        "cached_milliseconds": loop(lambda: cached_step(x, y)),
        "compile_seconds": compile_seconds,
        "parameters": parameter_count(model),
    }


def momentumnet(depth: int) -> dict[str, Any]:
    """The ledger in PyTorch, one seed: h F in place of F makes their update ours."""
    import torch
    from momentumnet import MomentumNet
    from torch import nn

    class Branch(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return TOTAL_TIME / depth * super().forward(x)

    branches = [
        Branch(nn.Linear(WIDTH, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, WIDTH)) for _ in range(depth)
    ]
    model = nn.Sequential(MomentumNet(branches, gamma=MU), nn.Linear(WIDTH, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    x, y = torch.randn(POINTS, WIDTH), torch.arange(POINTS) % 2

    def train(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

    train(3)
    steps = TORCH_STEPS[depth]
    return {
        "milliseconds": 1e3 * seconds(lambda: train(steps)) / steps,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


SIDES = {"ours": ours, "by_hand": by_hand, "momentumnet": momentumnet}


def main() -> int:
    parser = options(__doc__ or "", repeats=3)
    parser.add_argument("--depths", type=int, nargs="+", default=list(REQUIRED), choices=REQUIRED)
    parser.add_argument(
        "--torch-python",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has torch and momentumnet",
    )
    chosen = parser.parse_args()
    report: dict[str, Any] = {"machine": machine(), "depths": {}}
    print(report["machine"], flush=True)
    interpreters = {**dict.fromkeys(SIDES, sys.executable), "momentumnet": chosen.torch_python}
    rows, short = [], []
    for depth in chosen.depths:
        found = take_turns(__file__, interpreters, chosen, depth=depth)
        sides = {side: spreads(every) for side, every in found.items()}
        ratio = sides["by_hand"]["milliseconds"]["median"] / sides["ours"]["milliseconds"]["median"]
        report["depths"][depth] = {**sides, "ratio": ratio}
        rows += _rows(depth, sides)
        if ratio < REQUIRED[depth]:
            short.append(f"depth {depth}: {ratio:.1f} times, {REQUIRED[depth]} wanted")
    print("\nMilliseconds per run and training step: median (least to most)\n")
    print(table(HEADINGS, rows))
    return finish(report, chosen.json, short)


HEADINGS = (
    "depth",
    "side",
    "milliseconds",
    "side / ours",
    "required",
    "parameters",
    "compiling, s",
    "cores used by others",
)
LINES = (
    ("ours, six runs", "ours", "milliseconds"),
    ("by hand", "by_hand", "milliseconds"),
    ("by hand, cached_partial", "by_hand", "cached_milliseconds"),
    ("momentumnet", "momentumnet", "milliseconds"),
)


def _rows(depth: int, sides: dict[str, Any]) -> list[list[str]]:
    best = sides["ours"]["milliseconds"]["median"]
    rows = []
    for name, side, key in LINES:
        if side not in sides:
            continue
        figures = sides[side]
        spent = Spread(**figures[key])
        compiling = figures.get("compile_seconds")
        rows.append(
            [
                str(depth),
                name,
                spent.show(),
                "" if side == "ours" else f"{spent.median / best:.1f}",
                str(REQUIRED[depth]) if name == "by hand" else "",
                f"{figures['parameters']['median']:,}",
                "" if compiling is None else f"{compiling['median']:.1f}",
                f"{figures['others']['median']:.1f}",
            ]
        )
    return rows


if __name__ == "__main__":
    sys.exit(0 if serve_side(SIDES) else main())
