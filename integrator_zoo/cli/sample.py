"""`zoo sample`: text from a trained language model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import ZooError
from . import output
from .app import AsJson, Plugin, app, registry_with


@app.command()
def sample(
    run: Annotated[Path, typer.Argument(help="A run folder, as printed by zoo run.")],
    prompt: Annotated[str, typer.Option(help="How the text begins.")] = "\n",
    length: Annotated[int, typer.Option(min=1, help="Characters to write.")] = 500,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0 always takes the likeliest character.")
    ] = 0.8,
    top_k: Annotated[int, typer.Option(min=0, help="Draw among the k likeliest; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: AsJson = False,
    plugin: Plugin = None,
) -> None:
    """Write text with the best weights of a trained language model."""
    registry = registry_with(plugin, strict=False)
    from ..runs.store import read

    try:
        record = read(run)
    except (OSError, ValueError, KeyError):
        raise ZooError(
            f"{str(run)!r} is not a run folder.", "Give a folder that zoo run or compare printed."
        ) from None
    experiment = registry.get("experiment", record.config["experiment"])
    experiment = experiment.with_options(record.config["settings"])
    rule = registry.get("integrator", record.integrator)
    net, vocabulary = experiment.language_model(record, rule)

    from ..backbones.sampling import generate
    from ..data.corpus import decode, encode

    if not prompt:
        raise ZooError("the prompt is empty.", "Give at least one character, as --prompt ROMEO")
    begun = encode(prompt, vocabulary)
    pieces = generate(net, begun, length, temperature=temperature, top_k=top_k, seed=seed)
    texts = (decode(piece, vocabulary) for piece in pieces)
    if as_json:
        output.print_json({"run": str(run), "prompt": prompt, "text": "".join(texts)})
        return
    print(prompt, end="", flush=True)
    for text in texts:
        print(text, end="", flush=True)
    print(file=sys.stdout)
