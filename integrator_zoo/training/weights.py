"""A network apart from its weights, and together with those of a checkpoint or a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from . import checkpoints
from .recipe import WEIGHTS, role_key


def taken_apart(network: Callable[[nnx.Rngs], nnx.Module]) -> tuple[Any, Any, Any]:
    """A network's graph, the shapes of its parameters, and what else it holds, without weights."""
    graph, shapes, _ = nnx.split(nnx.eval_shape(lambda: network(rngs_of(0))), nnx.Param, ...)
    rest = jax.jit(lambda: nnx.split(network(rngs_of(0)), nnx.Param, ...)[2])()
    return graph, shapes, rest


def with_weights(network: Callable[[nnx.Rngs], Any], place: Path) -> Any:
    """The network with the best weights of a checkpoint, in evaluation mode.

    Raises:
        DamagedError: a file of the checkpoint is missing or changed.
        ZooError: the checkpoint is of another model.
    """
    graph, shapes, rest = taken_apart(network)
    best = checkpoints.load(place, {"best": shapes}, only="best.")["best"]
    net = nnx.merge(graph, jax.tree.map(jnp.asarray, best), rest)
    net.eval()
    return net


def rngs_of(seed: Any) -> nnx.Rngs:
    """The random streams that make the weights of a seed."""
    return nnx.Rngs(role_key(seed, WEIGHTS))


PREFIX = "weights/"
"""How the names of recorded weights begin."""


def recorded(params: Any) -> dict[str, np.ndarray]:
    """Parameters by name, as arrays for a record."""
    return {_name(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(params)}


def from_records(
    network: Callable[[], nnx.Module], records: Sequence[Mapping[str, np.ndarray]]
) -> tuple[Any, list[Any]]:
    """A network's graph, and the parameters that the arrays of each record hold.

    Raises:
        KeyError: a record holds no such weights.
    """
    graph, shapes = nnx.split(nnx.eval_shape(network))
    params = [
        jax.tree.map_with_path(lambda path, _, held=held: jnp.asarray(held[_name(path)]), shapes)
        for held in records
    ]
    return graph, params


def _name(path: Any) -> str:
    return PREFIX + jax.tree_util.keystr(path, simple=True, separator="/")
