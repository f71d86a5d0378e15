"""Draw the pictures of these pages: `python docs/draw.py`, a few minutes on two cores.

They are the pictures that `zoo compare` writes, of runs that anyone can repeat, with fewer colours
so that they stay small. Finished runs are found again in docs/_build/runs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform

HERE = Path(__file__).parent
PICTURES = HERE / "pictures"
SHOWN = (
    # experiment with settings; integrators; seeds; pictures that the pages show
    ("kepler", ("euler", "leapfrog"), 1, ("orbits", "energy")),
    ("rings", ("euler", "ledger"), 3, ("decision", "trajectories", "training")),
    ("rewind", ("ledger", "ledger:mu=0.6"), 1, ("rewind",)),
    (
        "shakespeare:corpus=generated,layers=4,width=64,mlp_hidden=256,steps=400",
        ("euler", "ledger"),
        1,
        ("shadows", "geometry", "validation"),
    ),
)


def draw(spec: str, rules: tuple[str, ...], seeds: int, names: tuple[str, ...]) -> None:
    """Do the runs of one comparison, and keep the pictures that are shown."""
    registry = current()
    experiment = registry.get("experiment", spec)
    chosen = [registry.get("integrator", rule) for rule in rules]
    records = perform(experiment, chosen, range(seeds), Store(HERE / "_build" / "runs"), note=print)
    with tempfile.TemporaryDirectory() as folder:
        experiment.pictures(records, Path(folder))
        for name in names:
            drawn = Image.open(Path(folder) / f"{name}.png").convert("RGB").quantize(64)
            target = name if name == experiment.name else f"{experiment.name}-{name}"
            drawn.save(PICTURES / f"{target}.png", optimize=True)


if __name__ == "__main__":
    for comparison in SHOWN:
        draw(*comparison)
