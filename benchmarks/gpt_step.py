"""A training step of the published GPT: ours, plain Flax NNX, PyTorch, the arithmetic limit.

    python benchmarks/gpt_step.py [--torch-python PYTHON] [--steps 5] [--json FILE]

6 layers of 192, 4 heads, batch 64 x 128, dropout 0.15, AdamW with clipping, float32. Each side is
started as a user would start it:

- ours: the trainer of the experiment `shakespeare`, with huge pages as `zoo run` starts it,
- by hand: a list of blocks, `nnx.MultiHeadAttention`, `nnx.Dropout`, `nnx.Optimizer`, `nnx.jit`,
- torch: eager PyTorch with its fused attention,
- limit: the floating-point operations of a step at the speed of a large float32 product.

See benchmarks/README.md.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from harness import Spread, cores, finish, machine, options, serve_side, spreads, table, take_turns

BATCH, CONTEXT, WIDTH, LAYERS, HEADS, HIDDEN, VOCABULARY, RATE = 64, 128, 192, 6, 4, 768, 80, 0.15
REQUIRED = {"by hand": 0.6, "torch": 0.8}
"""Our step takes at most so many times theirs."""
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def timed(work: Callable[[], object], steps: int) -> dict[str, Any]:
    """Of work that takes `steps` steps: seconds and core-seconds a step, and peak memory."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - clock, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": wall / steps, "core_seconds": cpu / steps, "peak_gb": peak}


def repeated(step: Callable[[], float], steps: int) -> dict[str, Any]:
    """Single steps; the first, which compiles, is left out."""
    step()
    return timed(lambda: [step() for _ in range(steps)], steps)


def ours(steps: int) -> dict[str, Any]:
    """The experiment's own trainer on random text, all steps in one compiled call."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from integrator_zoo.lab import Job
    from integrator_zoo.registry import current
    from integrator_zoo.training import Load
    from integrator_zoo.training.fleet import over_runs
    from integrator_zoo.training.language import LanguageTrainer
    from integrator_zoo.training.recipe import adamw

    jax.config.update("jax_num_cpu_devices", cores())  # as the command does
    experiment = current().get("experiment", "shakespeare")
    experiment = experiment.with_options(experiment.presets["published"])
    rule = current().get("integrator", "euler")
    text = np.random.default_rng(0).integers(0, VOCABULARY, 1_000_000).astype(np.int32)
    load = Load(rule, (Job(rule),), ())
    trainer = LanguageTrainer(
        lambda rngs: experiment.network(VOCABULARY, rule, rngs),
        load,
        experiment.plan(),
        adamw(1e-3, 1e-4, 200, 12000),
        text,
        text[:1290].reshape(10, 129),
        text[:1290].reshape(10, 129),
        lambda job: {},
    )
    seeds = jnp.zeros(1, jnp.uint32)
    runs = jax.jit(over_runs(trainer._fresh))(seeds)
    program = jax.jit(over_runs(trainer._advance), donate_argnums=0)
    runs = program(runs, {}, seeds, jnp.full(1, 1, jnp.int32))
    jax.block_until_ready(runs.losses)
    until = jnp.full(1, 1 + steps, jnp.int32)
    return timed(lambda: jax.block_until_ready(program(runs, {}, seeds, until)), steps)


def by_hand(steps: int) -> dict[str, Any]:
    """What one would write by hand."""
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.norm1, self.norm2 = (
                nnx.LayerNorm(WIDTH, rngs=rngs),
                nnx.LayerNorm(WIDTH, rngs=rngs),
            )
            self.attention = nnx.MultiHeadAttention(
                HEADS, WIDTH, dropout_rate=RATE, decode=False, deterministic=False, rngs=rngs
            )
            self.up = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
            self.down = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)
            self.drop1, self.drop2 = nnx.Dropout(RATE, rngs=rngs), nnx.Dropout(RATE, rngs=rngs)

        def __call__(self, x: jnp.ndarray) -> jnp.ndarray:
            mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
            x = x + self.drop1(self.attention(self.norm1(x), mask=mask))
            return x + self.drop2(self.down(nnx.gelu(self.up(self.norm2(x)))))

    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.token = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
            self.place = nnx.Embed(CONTEXT, WIDTH, rngs=rngs)
            self.drop = nnx.Dropout(RATE, rngs=rngs)
            self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
            self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
            self.head = nnx.Linear(WIDTH, VOCABULARY, use_bias=False, rngs=rngs)

        def __call__(self, tokens: jnp.ndarray) -> jnp.ndarray:
            x = self.drop(self.token(tokens) + self.place(jnp.arange(CONTEXT)))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(
        model, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)), wrt=nnx.Param
    )

    @nnx.jit
    def train_step(model: Model, optimizer: nnx.Optimizer, batch: jnp.ndarray) -> jnp.ndarray:
        def loss_of(model: Model) -> jnp.ndarray:
            logits = model(batch[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

        loss, grads = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, grads)
        return loss

    rng = np.random.default_rng(0)

    def step() -> float:
        batch = jnp.asarray(rng.integers(0, VOCABULARY, (BATCH, CONTEXT + 1)))
        return float(train_step(model, optimizer, batch))

    return repeated(step, steps)


def torch(steps: int) -> dict[str, Any]:
    """The same in eager PyTorch."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
            self.drop = nn.Dropout(RATE)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=RATE, is_causal=True)
            x = x + self.drop(self.out(mixed.transpose(1, 2).reshape(b, t, d)))
            hidden = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.drop(self.down(hidden))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.drop, self.norm = nn.Dropout(RATE), nn.LayerNorm(WIDTH)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens):
            x = self.drop(self.token(tokens) + self.place.weight[: tokens.shape[1]])
            return self.head(self.norm(self.blocks(x)))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)

    def step() -> float:
        batch = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1))
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return repeated(step, steps)


def limit(steps: int) -> dict[str, Any]:
    """Seconds that the arithmetic of a step takes at the speed of a large matmul."""
    import jax
    import jax.numpy as jnp

    size = 3072
    a = jnp.ones((size, size))
    multiply = jax.jit(lambda a: a @ a)
    multiply(a).block_until_ready()
    found = timed(lambda: [multiply(a).block_until_ready() for _ in range(steps)], steps)
    matrices = LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * HIDDEN) + WIDTH * VOCABULARY
    linear = 6 * BATCH * CONTEXT * matrices
    attention = 6 * LAYERS * 2 * BATCH * CONTEXT * CONTEXT * WIDTH
    share = (linear + attention) / (2 * size**3)
    return found | {key: share * found[key] for key in ("seconds", "core_seconds")}


SIDES = {"ours": ours, "by hand": by_hand, "torch": torch, "limit": limit}


def main() -> int:
    parser = options(__doc__ or "", repeats=3)
    parser.add_argument("--torch-python", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--steps", type=int, default=5, help="timed steps a process")
    chosen = parser.parse_args()
    pythons = dict.fromkeys(SIDES, sys.executable) | {"torch": chosen.torch_python}
    environments = {"ours": HUGE_PAGES} if sys.platform == "linux" else {}
    print(machine(), flush=True)
    found = take_turns(__file__, pythons, chosen, environments, steps=chosen.steps)
    report = {side: spreads(every) for side, every in found.items()}
    mine = report["ours"]["seconds"]["median"]
    rows, short = [], []
    for side, figures in report.items():
        ratio = mine / figures["seconds"]["median"]
        required = REQUIRED.get(side)
        if required is not None and ratio > required:
            short.append(f"ours takes {ratio:.2f} times {side}, at most {required} is required")
        cells = [Spread(**figures[key]).show() for key in ("seconds", "core_seconds")]
        speed = BATCH * CONTEXT / figures["seconds"]["median"]
        rows.append([
            side, *cells, f"{ratio:.2f}", str(required or ""), f"{speed:,.0f}",
            f"{figures['peak_gb']['high']:.1f}", f"{figures['others']['median']:.1f}",
        ])  # fmt: skip
    headings = ["side", "s a step", "core-s a step", "ours / side", "required", "tokens/s"]
    print(table([*headings, "peak, GB", "cores used by others"], rows))
    return finish(report, chosen.json, short)


if __name__ == "__main__":
    if not serve_side(SIDES):
        sys.exit(main())
