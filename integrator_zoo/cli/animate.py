"""`zoo animate`: moving pictures of runs. `zoo draw`: the pictures of runs that are finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ZooError, unknown
from . import output
from .app import (
    AsJson,
    Fresh,
    Out,
    Plugin,
    Preset,
    Settings,
    Spec,
    app,
    chosen_experiment,
    perform_all,
    registry_with,
)

if TYPE_CHECKING:
    from ..runs import Record

Runs = Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders that hold some.")]
Dark = Annotated[bool, typer.Option("--dark", help="On a dark ground.")]


@app.command()
def animate(
    name: Annotated[
        str | None, typer.Argument(help="orbits, training, depth, rewind or path.")
    ] = None,
    runs: Runs = None,
    integrator: Spec = None,
    experiment: Annotated[
        str | None, typer.Option("--experiment", "-e", help="Such as moons, instead of rings.")
    ] = None,
    preset: Preset = "quick",
    settings: Settings = None,
    seed: Annotated[int, typer.Option(help="The seed of the runs.")] = 0,
    dark: Dark = False,
    out: Out = Path("runs"),
    fresh: Fresh = False,
    as_json: AsJson = False,
    plugin: Plugin = None,
) -> None:
    """Animate runs as GIF and WebP; without RUNS those that are missing are run."""
    from ..figures.scenes import ANIMATIONS
    from ..runs.found import find_runs

    if name is None:
        for known, animation in ANIMATIONS.items():
            output.print_line(f"{known:<10}{animation.summary} ({animation.experiment})")
        return
    if name not in ANIMATIONS:
        raise unknown("animation", name, ANIMATIONS, "See: zoo animate")
    animation, registry = ANIMATIONS[name], registry_with(plugin, strict=False)
    if runs:
        if integrator or experiment or settings:
            raise ZooError(
                "zoo animate takes run folders, or what to run: not both.",
                f"zoo animate {name} {runs[0]}",
            )
        records = find_runs(runs, output.note)
    else:
        chosen = chosen_experiment(registry, experiment or animation.experiment, preset, settings)
        specs = integrator or list(chosen.default_specs)
        records, _ = perform_all(registry, [chosen], specs, [seed], out, fresh, strict=False)
    files = _animate(name, records, out / "animations", dark)
    if as_json:
        said = {"runs": [str(r.folder) for r in records], "files": [str(p) for p in files]}
        output.print_json({"animation": name} | said)
        return
    for file in files:
        output.print_line(f"animation {file}  ({file.stat().st_size / 1e6:.1f} MB)")


def _animate(name: str, records: list[Record], folder: Path, dark: bool) -> list[Path]:
    from ..figures import animation, scenes, style
    from ..runs.store import key_of

    with style.manner(dark=dark), style.theme(), output.progress_bar() as progress:
        scene = scenes.scene(scenes.ANIMATIONS[name], records)
        key = key_of({"runs": sorted(record.folder.name for record in records), "dark": dark})[:4]
        return animation.write(
            scene, folder, f"{name}-{key}", lambda share: progress(name, share, "drawing")
        )


@app.command()
def draw(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")],
    dark: Dark = False,
    svg: Annotated[bool, typer.Option("--svg", help="As SVG besides PNG.")] = False,
    out: Annotated[Path, typer.Option(help="Where pictures go.", metavar="DIR")] = Path("pictures"),
    as_json: AsJson = False,
    plugin: Plugin = None,
) -> None:
    """Draw the pictures of finished runs of one experiment."""
    registry = registry_with(plugin, strict=False)
    from ..figures import style
    from ..runs.found import find_runs

    records = find_runs(runs, output.note)
    names = sorted({record.config["experiment"] for record in records})
    if len(names) > 1:
        raise ZooError(
            f"these are runs of {' and '.join(names)}.", "Draw one experiment at a time."
        )
    experiment = registry.get("experiment", names[0])
    with style.manner(dark=dark, formats=("png", "svg") if svg else ("png",)):
        pictures = experiment.pictures(records, out)
    if as_json:
        output.print_json({"pictures": [str(path) for path in pictures]})
        return
    for path in pictures:
        output.print_line(f"picture   {path}")
