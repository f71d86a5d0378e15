"""A stack of residual sub-updates in Flax NNX, moved by any integrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from flax import nnx
from jax import Array

from ..contract import Integrator
from ..depth import Branch, Passage, initial_parameters, integrate, rewind
from ..errors import ZooError

MakeParts = Callable[[nnx.Rngs], nnx.Module | Sequence[nnx.Module]]


class ResidualStack(nnx.Module):
    """`depth` layers, each a few residual branches, the stream carried by `integrator`.

    Args:
        make_parts: makes one layer's branches from `rngs`: a module, or several that are applied
            one after another (attention, MLP). A branch maps x to F(x) of the same shape; it does
            not add x. It is called once a layer with that layer's own random streams.
        depth: number of layers.
        width: number of features of the stream.
        integrator: the rule, as from `integrator_zoo.get("ledger:mu=0.6")`.
        h: step size of a sub-update; or give `total_time`, and h = total_time / sub-updates.
        tied: one layer's weights used by all layers.
        memory: what the backward pass keeps, see `integrator_zoo.integrate`.
        unroll: layers unrolled in the compiled loop; True for all.
        axis: the axis of the features in the stream.
        rngs: random streams; `params` makes the weights, `dropout` the masks.

    Weights are stacked: each parameter has a leading axis of `depth`. Masks are drawn from
    fold_in(key, index of the sub-update), so that all stages of a step, and every recomputation,
    see the same one.

    Raises:
        ZooError: a depth below 1, both or neither of h and total_time, a branch that changes its
            own state (such as BatchNorm in training), which recomputation would apply twice.
    """

    def __init__(
        self,
        make_parts: MakeParts,
        depth: int,
        width: int,
        integrator: Integrator,
        *,
        h: float | None = None,
        total_time: float | None = None,
        tied: bool = False,
        memory: str = "store",
        unroll: int | bool = 1,
        axis: int = -1,
        rngs: nnx.Rngs,
    ) -> None:
        if depth < 1:
            raise ZooError(f"depth={depth}: a network needs at least one layer.", "depth >= 1")
        if (h is None) == (total_time is None):
            raise ZooError("give exactly one of h and total_time.", "For example h=1.0")

        def make(layer_rngs: nnx.Rngs) -> nnx.List:
            made = _with_hint(make_parts, layer_rngs)
            return nnx.List([made] if isinstance(made, nnx.Module) else list(made))

        if tied:
            self.parts = make(rngs)
        else:
            self.parts = nnx.split_rngs(splits=depth)(nnx.vmap(make))(rngs)
        count = depth * len(self.parts)
        self.depth, self.width, self.integrator = depth, width, integrator
        self.h = h if total_time is None else total_time / count
        self.tied, self.memory, self.unroll, self.axis = tied, memory, unroll, axis
        learned = initial_parameters(integrator, depth, len(self.parts), width)
        self.learned = nnx.Dict({name: nnx.Param(value) for name, value in learned.items()})
        self.masks = nnx.Rngs(dropout=rngs.dropout()) if _has_random(self.parts) else None

    @property
    def sub_updates(self) -> int:
        """Number of sub-updates: depth times parts."""
        return self.depth * len(self.parts)

    def __call__(
        self,
        x: Array,
        *,
        collect: bool = False,
        velocity: Array | None = None,
        key: Array | None = None,
        integrator: Integrator | None = None,
        mark: Callable[[Array], Array] | None = None,
    ) -> Any:
        """The final position; with `collect`, also the `Trajectory` of all nodes.

        Args:
            x: the stream, features on `axis`.
            collect: whether to return all nodes.
            velocity: initial velocity, for rules that have one; at rest by default.
            key: dropout key; by default one is drawn from the module's own stream while any
                branch is in training mode.
            integrator: another rule for this call, on the same weights; what that rule learns is
                at its initial values unless it is of the same class.
            mark: every field value is passed through it (see `depth.count_evaluations`).
        """
        passed = self.passage(
            x, collect=collect, velocity=velocity, key=key, integrator=integrator, mark=mark
        )
        return (passed.position, passed.trajectory) if collect else passed.position

    def passage(
        self,
        x: Array,
        *,
        collect: bool = False,
        velocity: Array | None = None,
        key: Array | None = None,
        integrator: Integrator | None = None,
        mark: Callable[[Array], Array] | None = None,
    ) -> Passage:
        """All that `integrate` gives: the final state too, from which `rewind` finds back."""
        rule, branches, weights, options = self._drive(key, integrator, mark)
        return integrate(
            rule,
            branches,
            weights,
            x,
            velocity=velocity,
            collect=collect,
            memory=self.memory,
            **options,
        )

    def rewind(
        self,
        end: Any,
        *,
        collect: bool = False,
        key: Array | None = None,
        integrator: Integrator | None = None,
    ) -> Passage:
        """Run the stack backward from a `Passage`, or from a final state; see `depth.rewind`.

        With dropout, give both ways the same `key`.
        """
        rule, branches, weights, options = self._drive(key, integrator, None)
        memory = self.memory if getattr(end, "code", None) is not None else None
        return rewind(rule, branches, weights, end, collect=collect, memory=memory, **options)

    def _drive(
        self,
        key: Array | None,
        integrator: Integrator | None,
        mark: Callable[[Array], Array] | None,
    ) -> tuple[Integrator, list[Branch], Any, dict[str, Any]]:
        """The rule, the branches, their weights, and the settings both directions share."""
        graph, weights = nnx.split(self.parts)
        if self.masks is None or not _in_training(self.parts):
            key = None
        elif key is None:
            key = self.masks.dropout()
        rule = integrator or self.integrator

        def branch(part: int) -> Branch:
            def evaluate(layer_weights: Any, index: Any, position: Array) -> Array:
                # a copy: inside a solver's own loop the stack's variables may not be touched
                module = nnx.merge(graph, layer_weights, copy=True)[part]
                if key is not None:
                    _reseed(module, jax.random.fold_in(key, index))
                force = _pure_call(module, position)
                return force if mark is None else mark(force)

            return evaluate

        options = {
            "depth": self.depth,
            "h": self.h,
            "params": {name: param[...] for name, param in self.learned.items()}
            if type(rule) is type(self.integrator)
            else None,
            "tied": self.tied,
            "shared": self.tied and len(self.parts) == 1 and key is None,
            "axis": self.axis,
            "unroll": self.unroll,
        }
        return rule, [branch(part) for part in range(len(self.parts))], weights, options


def _with_hint(make_parts: MakeParts, rngs: nnx.Rngs) -> Any:
    """Make the branches; where a branch keeps modules in a plain list, say what to write."""
    try:
        return make_parts(rngs)
    except ValueError as error:
        if "assigned to static attribute" not in str(error):
            raise
        raise ZooError(
            f"a branch keeps modules in a plain list or dict: {str(error).splitlines()[0]}",
            "Write self.layers = nnx.List([...]), or nnx.Dict({...}).",
        ) from error


def _pure_call(module: Any, x: Array) -> Array:
    """Call a branch, and refuse one that changes its own state: the change would be lost."""
    before = _mutable(module)
    force = module(x)
    changed = [
        "/".join(map(str, path))
        for path, value in _mutable(module).items()
        if before.get(path) is not value
    ]
    if changed:
        raise ZooError(
            f"branch {type(module).__name__} changes its own state in a call: {changed[0]}. "
            "A field must be pure, since an integrator may evaluate it any number of times.",
            "Use LayerNorm or RMSNorm, or BatchNorm with use_running_average=True.",
        )
    if force.shape != x.shape or force.dtype != x.dtype:
        raise ZooError(
            f"branch {type(module).__name__} maps {x.dtype}{list(x.shape)} to "
            f"{force.dtype}{list(force.shape)}; F(x) must be like x.",
            "Let the branch end in as many features as it reads.",
        )
    return force


def _mutable(module: Any) -> dict[Any, Any]:
    """The raw values of everything in a module that is neither a parameter nor a random state."""
    state = nnx.state(module, nnx.Not(nnx.Any(nnx.Param, nnx.RngState)))
    return {path: leaf.get_raw_value() for path, leaf in nnx.to_flat_state(state)}


def _reseed(module: Any, key: Array) -> None:
    """Start every random stream of a branch anew from `key`, whatever the streams are named."""
    streams = nnx.to_flat_state(nnx.state(module, nnx.RngKey))
    tags = sorted({leaf.tag for _, leaf in streams})
    keys: Any = {tag: jax.random.fold_in(key, i) for i, tag in enumerate(tags)}
    nnx.reseed(module, **keys)


def _has_random(module: Any) -> bool:
    return bool(jax.tree.leaves(nnx.state(module, nnx.RngState)))


def _in_training(module: Any) -> bool:
    """Whether any sub-module would draw a mask."""
    return any(getattr(m, "deterministic", None) is False for _, m in nnx.iter_modules(module))
