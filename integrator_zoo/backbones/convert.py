"""A residual network that exists already, under another integrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from ..contract import Integrator
from ..errors import ZooError
from .residual_stack import ResidualStack

BranchOf = Callable[[Any, Array], Array]


class Borrowed(nnx.Module):
    """One block of the user's, asked for its F(x)."""

    def __init__(self, block: nnx.Module, branch: BranchOf) -> None:
        self.block, self.branch = block, branch

    def __call__(self, x: Array) -> Array:
        return self.branch(self.block, x)


def from_blocks(
    blocks: Sequence[nnx.Module],
    integrator: Integrator,
    *,
    width: int,
    branch: BranchOf = lambda block, x: block(x),
    h: float = 1.0,
    rngs: nnx.Rngs | None = None,
    **options: Any,
) -> ResidualStack:
    """The network `for block in blocks: x = x + F(x)` with its weights, moved by an integrator.

    Args:
        blocks: modules of one structure; their weights are copied, stacked over depth.
        integrator: the rule. Under Euler, or a ledger at mu = 0, with h = 1 the outputs are those
            of the original, bit for bit.
        width: number of features of the stream.
        branch: branch(block, x) -> F(x), *without* the skip connection; by default the block
            called. A block that adds x itself must be asked for the part that does not:
            `branch=lambda block, x: block.mlp(block.norm(x))`.
        h: step size of a sub-update.
        rngs: random streams for dropout masks.
        options: memory, axis, unroll, as of `ResidualStack`.

    Raises:
        ZooError: no blocks, or blocks of different structure or shapes.
    """
    blocks = list(blocks)
    if not blocks or not all(isinstance(block, nnx.Module) for block in blocks):
        raise ZooError(
            f"from_blocks got {[type(block).__name__ for block in blocks] or 'no blocks'}.",
            "Give a list of nnx modules, one a layer.",
        )
    states = [nnx.state(block) for block in blocks]
    shapes = [jax.tree.map(jnp.shape, nnx.to_pure_dict(state)) for state in states]
    for i, (block, shape) in enumerate(zip(blocks, shapes, strict=True)):
        if type(block) is not type(blocks[0]) or shape != shapes[0]:
            raise ZooError(
                f"block {i} ({type(block).__name__}) is not built like block 0 "
                f"({type(blocks[0]).__name__}).",
                "Layers are stacked, so all need one structure; convert each run of equal blocks.",
            )
    made = ResidualStack(
        lambda _: Borrowed(nnx.clone(blocks[0]), branch),
        len(blocks),
        width,
        integrator,
        h=h,
        rngs=rngs or nnx.Rngs(0),
        **options,
    )
    nnx.update(made.parts[0].block, jax.tree.map(lambda *leaves: jnp.stack(leaves), *states))
    return made
