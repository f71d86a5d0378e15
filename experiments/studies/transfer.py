"""Train with one rule, evaluate with another: how far is a trained network from a flow?"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from integrator_zoo.claims import Groups, Request, Study

RULES = ("euler", "ledger", "leapfrog", "diffrax-heun", "diffrax-dopri5", "diffrax-adaptive")
DEPTH, SEEDS = 8, 8
REQUESTS = tuple(Request("rings", rule, SEEDS, settings={"depth": DEPTH}) for rule in RULES)


def accuracies(groups: Groups) -> np.ndarray:
    """Test accuracy of the nets of each group under each rule, [trained, evaluated, seeds]."""
    import jax
    import jax.numpy as jnp
    from flax import nnx

    import integrator_zoo as zoo
    from integrator_zoo.registry import current
    from integrator_zoo.training.weights import from_records

    experiment: Any = current().get("experiment", "rings").with_options({"depth": DEPTH})
    graph, nets = from_records(
        lambda: experiment.network(zoo.get(RULES[0]), 0),
        [record.arrays for group in groups for record in group],
    )
    tests = [experiment.data(seed) for seed in range(SEEDS)]
    points = jnp.stack([jnp.asarray(test.test_x) for test in tests])
    labels = np.stack([test.test_y for test in tests])
    rules = [zoo.get(rule) for rule in RULES]
    found = np.zeros((len(groups), len(RULES), SEEDS))
    for j in range(len(rules)):

        def logits(run: Any, rule: Any = rules[j]) -> Any:
            params, x = run
            return nnx.merge(graph, params)(x, integrator=rule)

        evaluate = jax.jit(functools.partial(jax.lax.map, logits))
        for i in range(len(groups)):
            own = nets[i * SEEDS : (i + 1) * SEEDS]
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *own)
            found[i, j] = (np.asarray(evaluate((stacked, points))).argmax(-1) == labels).mean(1)
    return found


def _report(groups: Groups, folder: Path) -> Sequence[str]:
    from integrator_zoo.figures import studies, style
    from integrator_zoo.runs.reproduce import markdown_table

    found = 100 * accuracies(groups)
    middle = found.mean(-1)
    with style.theme():
        picture = studies.matrix(middle, RULES, RULES, "evaluated with", "trained with")
        style.save(picture, folder / "transfer", "matrix")
    rows = [
        (f"`{rule}`", *(f"{c.mean():.1f} ({c.min():.1f} to {c.max():.1f})" for c in found[i]))
        for i, rule in enumerate(RULES)
    ]
    flow = RULES.index("diffrax-adaptive")
    drops = {rule: middle[i, i] - middle[i, flow] for i, rule in enumerate(RULES) if i != flow}
    most, least = max(drops, key=drops.__getitem__), min(drops, key=drops.__getitem__)
    said = ", ".join(f"`{rule}` {drop:.1f}" for rule, drop in drops.items())
    return [
        f"The trained weights of {SEEDS} seeds at depth {DEPTH}, evaluated under every rule, "
        "nothing retrained: test accuracy in percent, mean (least to greatest). The diagonal is "
        "as trained.",
        "",
        *markdown_table(("trained with", *(f"`{rule}`" for rule in RULES)), rows),
        "",
        "![accuracy by training and evaluation rule](transfer/matrix.png)",
        "",
        f"**Points of accuracy lost when a net is handed to the exact flow of its own field: "
        f"{said}. The net trained with `{most}` is farthest from a flow, that with `{least}` "
        "nearest.**",
    ]


TRANSFER = Study(
    "transfer",
    "Trained with one rule, evaluated with another",
    "How far is a trained network from a flow?",
    REQUESTS,
    _report,
)
