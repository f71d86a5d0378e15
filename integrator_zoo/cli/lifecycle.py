"""The life of a plugin: `zoo new`, `zoo plugins`, `zoo doctor`."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import string
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from ..discovery import OWN, shadowed, wanted
from ..errors import ZooError
from ..options import NAME
from . import output
from .app import AsJson, Plugin, Strict, app, registry_with

ADVICE = {
    "ModuleNotFoundError": "install the missing module here, or remove the plugin",
    "ImportError": "a dependency is missing or too old: reinstall the plugin, or remove it",
    "SyntaxError": "the file is not valid Python for this interpreter: mend or update the plugin",
    "IndentationError": "the file is not valid Python: mend or update the plugin",
    "SystemExit": "the plugin ends the program when it is imported: remove that call",
    "PluginError": "mend it as said, see entry_points.md; or remove the plugin",
}


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case words joined by dashes: nesterov.")],
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where to write it; ./NAME by default.")
    ] = None,
) -> None:
    """Write an installable plugin project for an integrator, tests included."""
    from ..registry import current

    if not NAME.fullmatch(name):
        raise ZooError(
            f"{name!r} is not lower-case words joined by dashes.", "As in: zoo new nesterov"
        )
    if name in (taken := current().entries["integrator"]):
        raise ZooError(f"the name {name!r} is taken by {taken[name].origin}.", "Choose another.")
    folder = folder or Path(name)
    if folder.exists():
        raise ZooError(f"{str(folder)!r} exists already.", "Choose another name, or --dir DIR.")
    words = name.split("-")
    values = {
        "name": name,
        "module": "_".join(["zoo", *words]),
        "cls": "".join(word.capitalize() for word in words),
        "zoo": importlib.metadata.version(OWN),
    }
    folder.mkdir(parents=True)
    try:
        for template in resources.files("integrator_zoo.cli").joinpath("template").iterdir():
            filled = string.Template(template.read_text(encoding="utf-8")).substitute(values)
            target = template.name.removesuffix(".txt").replace("MODULE", values["module"])
            (folder / target).write_text(filled, encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder)
        raise
    output.print_line(
        f"written   {folder}/{values['module']}.py: the update rule goes into step()\n"
        f"next      pip install -e {folder}\n"
        f"          zoo check {name}\n"
        f"          zoo compare rings -i euler -i {name}"
    )


@app.command()
def plugins(as_json: AsJson = False, plugin: Plugin = None, strict: Strict = False) -> None:
    """List what each plugin registered, and how long it took to load."""
    registry = registry_with(plugin, strict)
    rows = [
        {
            "distribution": p.origin.distribution,
            "version": p.origin.version,
            "module": p.origin.module,
            "registered": list(p.registered),
            "seconds": p.seconds,
        }
        for p in registry.plugins
    ]
    if as_json:
        output.print_json({"plugins": rows, "broken": _broken(registry)})
        return
    words = ("distribution", "version", "module", "registered")
    table = output.new_table("distribution", "version", "module", "ms", "registered", left=words)
    for row in rows:
        names = ", ".join(row["registered"]) or "nothing: see zoo doctor"
        cells = (row["distribution"], row["version"], row["module"])
        table.add_row(*cells, f"{1000 * row['seconds']:.0f}", names)
    output.print_table(table)


@app.command()
def doctor(as_json: AsJson = False, plugin: Plugin = None, strict: Strict = False) -> None:
    """Explain what is wrong with plugins, and how to mend it."""
    from ..registry import current

    registry = current()
    for file in plugin or []:
        registry.load_file(file)
    broken, twice, chosen = _broken(registry), shadowed(), wanted()
    about = {
        "python": platform.python_version(),
        **{name: _version(name) for name in (OWN, "jax", "flax", "diffrax", "pluggy")},
    }
    sound = sum(bool(p.registered) for p in registry.plugins)
    if as_json:
        output.print_json(
            {"versions": about, "sound": sound, "broken": broken, "shadowed": twice}
            | {"ZOO_PLUGINS": chosen}
        )
    else:
        output.print_line("versions  " + ", ".join(f"{n} {v}" for n, v in about.items()))
        if chosen is not None:
            output.print_line(f"only      {', '.join(chosen) or 'built-ins'} (ZOO_PLUGINS)")
        output.print_line(f"sound     {sound} plugin modules")
        for row in broken:
            source = f"{row['distribution']} {row['version']}".strip()
            output.print_line(f"broken    {source} ({row['module']}): {row['reason']}")
            output.print_line(f"          {row['advice']}")
        for line in twice:
            output.print_line(f"shadowed  {line}\n          pip uninstall the one you do not want")
        if not broken and not twice:
            output.print_line("nothing is wrong")
    if strict and (broken or twice):
        raise typer.Exit(1)


def _broken(registry: Any) -> list[dict[str, str]]:
    """What was left out, why, and what to do."""
    rows = []
    for broken in registry.broken:
        where = broken.origin
        advice = ADVICE.get(broken.error, "report it to the plugin's author, or remove the plugin")
        if where.version:
            advice += f": pip uninstall {where.distribution}"
        rows.append(
            {
                "distribution": where.distribution,
                "version": where.version,
                "module": where.module,
                "reason": broken.reason,
                "advice": advice,
            }
        )
    return rows


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
