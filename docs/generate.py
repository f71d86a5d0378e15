"""The pages of the reference that are made from the code, anew at every build.

One page an integrator, one section an experiment, the command from its own help, and the public
Python names from `integrator_zoo.__all__`: there is no list to keep, so nothing can be forgotten.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import integrator_zoo as zoo
from integrator_zoo.cli.output import facts
from integrator_zoo.conformance.table import markdown
from integrator_zoo.discovery import OWN
from integrator_zoo.registry import Entry, current

HERE = Path(__file__).parent


def pages() -> dict[str, str]:
    """The text of every generated page, by its path under docs/."""
    rules, experiments = ours("integrator"), ours("experiment")
    made = {f"reference/integrators/{r.default.name}.md": integrator_page(r) for r in rules}
    made["reference/integrators.md"] = integrators_page(rules)
    made["reference/experiments.md"] = experiments_page(experiments)
    made["findings.md"] = findings_page()
    made["reference/command.md"] = command_page()
    made["reference/python.md"] = python_page()
    return made


def ours(kind: str) -> list[Entry]:
    """The built-in integrators or experiments, by name; not those of other installed plugins."""
    entries = current().entries[kind].values()
    known = [entry for entry in entries if entry.origin.distribution == OWN]
    return sorted(known, key=lambda entry: entry.default.name)


def integrator_page(entry: Entry) -> str:
    """One integrator: its equation, what it declares, its options, how to try it."""
    rule = entry.default
    traits = rule.traits
    equation = "\n".join(part.strip() for part in traits.equation.split(";"))
    named = " ".join(f"-i {name}" for name in dict.fromkeys(("euler", rule.name)))
    limits = ", ".join(f"`{rule.name}:{at}` is `{spec}`" for at, spec in traits.reduces_to)
    declared = [
        ["order", _or(traits.order, "follows the flow to a tolerance")],
        ["field evaluations a step", _or(traits.evaluations, "varies")],
        ["the same, one field for all steps", _or(traits.evaluations_shared, "varies")],
        ["integrates", "x'' = F(x)" if traits.dynamics == "second" else "x' = F(x)"],
        ["inverse", traits.inverse],
        ["symplectic", "yes" if traits.symplectic else "no"],
        ["time-reversible", "yes" if traits.time_reversible else "no"],
        ["stays on", "the sphere of radius sqrt(D)" if traits.manifold == "sphere" else "-"],
        ["the branch reads", f"the {traits.reads} stream"],
        ["limits, bit for bit", limits or "-"],
        ["reference", traits.reference],
    ]
    return "\n\n".join(
        [
            f"# {rule.name}",
            f"```text\n{equation}\n```",
            "F is the field (the branch), h the step, a prime marks the value after the step.",
            _docstring(rule),
            markdown(("declared", "value"), declared),
            "## Options",
            _options("integrator", entry) or "None.",
            "## Try it",
            f"```sh\nzoo info {rule.name}\nzoo compare rings {named}\n```",
            f'```python\nimport integrator_zoo as zoo\n\nrule = zoo.get("{rule.name}")\n```',
        ]
    )


def integrators_page(entries: Iterable[Entry]) -> str:
    """The table of contents of the integrators."""
    rules = [entry.default for entry in entries]
    lines = [[f"[{r.name}](integrators/{r.name}.md)", r.traits.equation] for r in rules]
    toc = "\n".join(f"integrators/{rule.name}" for rule in rules)
    return "\n\n".join(
        [
            "# Integrators",
            "Every page here is made from what an integrator declares, and `zoo check NAME` "
            "measures whether it is so. The measured orders stand in the "
            "[method table](methods.md#the-built-in-integrators).",
            markdown(("name", "update"), lines),
            f"```{{toctree}}\n:hidden:\n\n{toc}\n```",
        ]
    )


def experiments_page(entries: Iterable[Entry]) -> str:
    """One section an experiment."""
    parts = [
        "# Experiments",
        "Run one with `zoo compare NAME`; change a setting with `--set key=value`, several with "
        "`--preset NAME`. The table that is printed shows the columns given here.",
    ]
    for entry in entries:
        each = entry.default
        presets = [[name, _settings(values)] for name, values in each.presets.items()]
        columns = ", ".join(f"`{column.metric}` ({column.heading})" for column in each.columns)
        parts += [
            f"## {each.name}",
            f"{each.summary[0].upper()}{each.summary[1:]}.",
            _docstring(each),
            "Compares " + ", ".join(f"`{spec}`" for spec in each.default_specs) + " by default.",
            f"Columns: {columns}.",
            markdown(("preset", "settings"), presets),
            _options("experiment", entry),
        ]
    return "\n\n".join(parts)


def findings_page() -> str:
    """The table of contents of what was measured; it may be empty."""
    found = [HERE / "reproduction.md", *sorted((HERE / "findings").glob("*.md"))]
    toc = "\n".join(str(p.relative_to(HERE).with_suffix("")) for p in found if p.is_file())
    parts = ["# Findings", "What was measured, beside what was published."]
    nothing = "Nothing has been written here yet: `zoo reproduce` measures it."
    return "\n\n".join([*parts, f"```{{toctree}}\n\n{toc}\n```" if toc else nothing])


def command_page() -> str:
    """The help of every command, as the command prints it."""
    import typer
    from typer.testing import CliRunner

    from integrator_zoo import cli
    from integrator_zoo.cli.app import app

    for module in pkgutil.iter_modules(cli.__path__, f"{cli.__name__}."):
        importlib.import_module(module.name)  # each adds its commands
    group: Any = typer.main.get_command(app)
    runner = CliRunner()
    parts = ["# The command"]
    for name in sorted(group.commands):
        shown = runner.invoke(app, [name, "--help"], prog_name="zoo", terminal_width=88)
        parts += [f"## zoo {name}", f"```text\n{shown.output.strip()}\n```"]
    return "\n\n".join(parts)


def python_page() -> str:
    """Every public name, under the first line of the module that is its home."""
    homes: dict[str, list[str]] = {}
    for name in zoo.__all__:
        thing = getattr(zoo, name)
        home = name if inspect.ismodule(thing) else zoo._HOME_OF[name]
        homes.setdefault(home, []).append(name)
    parts = ["# Python", "Each of these is a name of the package: `import integrator_zoo as zoo`."]
    for home, names in homes.items():
        first = (importlib.import_module(f"integrator_zoo.{home}").__doc__ or home).split("\n")[0]
        parts.append(f"## {first.rstrip('.')}")
        parts += [f"```{{eval-rst}}\n{_directive(name)}\n```" for name in names]
    return "\n\n".join(parts)


def _directive(name: str) -> str:
    """The autodoc directive of one public name."""
    thing = getattr(zoo, name)
    path = f"integrator_zoo.{name}"
    if inspect.ismodule(thing):
        members = ", ".join(n for n in _own(thing))
        return f".. automodule:: {path}\n   :members: {members}"
    if isinstance(thing, type):
        called = _signature(thing) if "__init__" in vars(thing) else ""
        return (
            f".. autoclass:: {path}{called}\n   :members:\n   :exclude-members: __init__, __new__"
        )
    if inspect.isroutine(thing):
        return f".. autofunction:: {path}"
    return f".. autodata:: {path}\n   :no-value:"


def _signature(cls: type) -> str:
    """How a class is called, which Flax's metaclass hides; types are told by the docstring."""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(cls.__init__).parameters.values()
    ]
    return re.sub(r"<class '([\w.]+)'>", r"\1", str(inspect.Signature(bare[1:])))


def _own(module: Any) -> list[str]:
    """The public names of a module: those it lists, or those it defines."""
    listed = getattr(module, "__all__", None)
    return listed or [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    ]


def _docstring(thing: Any) -> str:
    return inspect.cleandoc(type(thing).__doc__ or "")


def _options(kind: str, entry: Entry) -> str:
    """The table of options, as `zoo info` knows them; empty where there are none."""
    lines = [
        [f"`{o['name']}`", f"`{o['default']}`", f"{o['type']} {o['range']}".strip(), o["help"]]
        for o in facts(kind, entry)["options"]
    ]
    return markdown(("option", "default", "type", "meaning"), lines) if lines else ""


def _settings(values: Any) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in values.items()) or "the defaults"


def _or(value: Any, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A docstring's |x| is a norm, and not the substitution that reStructuredText sees in it."""
    for i, line in enumerate(lines):
        pieces = re.split(r"(`[^`]*`)", line)  # what stands between backticks is left alone
        pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
        lines[i] = "".join(pieces)


def write(app: Any = None) -> None:
    """Write the pages whose text has changed; remove those of integrators that are gone."""
    made = pages()
    for old in (HERE / "reference" / "integrators").glob("*.md"):
        if f"reference/integrators/{old.name}" not in made:
            old.unlink()
    for path, text in made.items():
        page = HERE / path
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.is_file() or page.read_text() != text + "\n":
            page.write_text(text + "\n")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    write()
