"""Depth without stored activations: a GPT of 48 layers under `exact`, 6 layers under `store`.

    python benchmarks/deep_gpt.py [--steps 40] [--json FILE]

Compiler's temporary memory of one gradient at width 192, batch 64 x 128, dropout 0.15; and the
loss curves of the 48-layer GPT at batch 4 x 64 under `store` and `exact`: the same weights, windows
and masks.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from harness import finish, machine, options, table

WIDTH, HEADS, HIDDEN, VOCABULARY = 192, 4, 768, 80


def network(layers: int, memory: str, context: int) -> Any:
    from flax import nnx

    import integrator_zoo as zoo

    return zoo.GPT(
        VOCABULARY, context, WIDTH, layers, HEADS, HIDDEN,
        integrator=zoo.get("ledger"), memory=memory, unroll=1, rngs=nnx.Rngs(0),
    )  # fmt: skip


def gradient(layers: int, memory: str, context: int) -> tuple[Any, Any]:
    """(value and gradient of the loss as a function of parameters, tokens, key; the parameters)."""
    import jax
    from flax import nnx

    from integrator_zoo.training.loop import cross_entropy

    graph, params, rest = nnx.split(network(layers, memory, context), nnx.Param, ...)

    def loss(params: Any, tokens: Any, key: Any) -> Any:
        net = nnx.merge(graph, params, rest)
        return cross_entropy(net(tokens[:, :-1], key=key), tokens[:, 1:])

    return jax.value_and_grad(loss), params


def temporary(layers: int, memory: str) -> float:
    """Megabytes that the compiled gradient needs beside its arguments and results."""
    import jax
    import jax.numpy as jnp

    grad, params = gradient(layers, memory, 128)
    tokens = jnp.zeros((64, 129), jnp.int32)
    compiled = jax.jit(grad).lower(params, tokens, jax.random.key(0)).compile()
    return compiled.memory_analysis().temp_size_in_bytes / 1e6


def curve(memory: str, steps: int, layers: int = 48) -> tuple[list[float], float]:
    """Loss by step on the generated corpus, and seconds a step."""
    import jax
    import numpy as np
    import optax

    from integrator_zoo.training.recipe import adamw

    grad, params = gradient(layers, memory, 64)
    optimizer = adamw(1e-3, 1e-4, 10, 400)
    rng = np.random.default_rng(0)
    text = np.tile(rng.integers(0, VOCABULARY, 37), 200).astype(np.int32)  # a phrase to be learned
    starts = rng.integers(0, len(text) - 65, (steps, 4))

    @jax.jit
    def step(params: Any, state: Any, tokens: Any, key: Any) -> Any:
        value, grads = grad(params, tokens, key)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state, losses, clock = optimizer.init(params), [], 0.0
    for i in range(steps):
        tokens = np.stack([text[s : s + 65] for s in starts[i]])
        params, state, value = step(params, state, tokens, jax.random.key(i))
        losses.append(float(value))
        clock = time.perf_counter() if i == 0 else clock  # the first step compiles
    return losses, (time.perf_counter() - clock) / max(1, steps - 1)


def main() -> int:
    parser = options(__doc__ or "", repeats=1)
    parser.add_argument("--steps", type=int, default=40, help="steps of the loss curves")
    chosen = parser.parse_args()
    megabytes = {
        f"{layers} layers, {memory}": temporary(layers, memory)
        for layers, memory in [(6, "store"), (48, "store"), (48, "remat"), (48, "exact")]
    }
    curves = {memory: curve(memory, chosen.steps) for memory in ("store", "exact")}
    print(table(["", "temporary, MB"], [[k, f"{v:,.0f}"] for k, v in megabytes.items()]))
    shown = range(0, chosen.steps, max(1, chosen.steps // 8))
    rows = [[str(i), *(f"{curves[m][0][i]:.4f}" for m in curves)] for i in shown]
    rows.append(["seconds a step", *(f"{curves[m][1]:.2f}" for m in curves)])
    print(table(["step", *(f"48 layers, {m}" for m in curves)], rows))
    found = {"machine": machine(), "temporary_mb": megabytes, "losses": curves}
    short = []
    if megabytes["48 layers, exact"] >= megabytes["6 layers, store"]:
        short.append("48 layers under exact need more memory than 6 under store")
    return finish(found, chosen.json, short)


if __name__ == "__main__":
    sys.exit(main())
