"""Finding plugins: entry points, single files, and what a module offers through its hooks."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pluggy

from . import hookspecs
from .contract import Integrator
from .errors import PluginError
from .lab import Experiment
from .options import Options

OWN = "integrator-zoo"
KINDS: dict[str, tuple[str, type[Options]]] = {
    "integrator": ("zoo_integrators", Integrator),
    "experiment": ("zoo_experiments", Experiment),
}
HOOKS = {hook for hook, _ in KINDS.values()}


@dataclass(frozen=True)
class Origin:
    """Where a registered thing came from."""

    distribution: str
    version: str
    module: str

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"{self.distribution}{version} ({self.module})"


def entry_points() -> Iterator[tuple[Origin, importlib.metadata.EntryPoint]]:
    """The entry points of the group, our own first, then by distribution name.

    `ZOO_PLUGINS` restricts them to some distributions, as in `ZOO_PLUGINS=zoo-one,zoo-two`; where
    it is set and empty, only our own are loaded.
    """
    chosen = wanted()
    seen: set[Origin] = set()
    points = importlib.metadata.entry_points(group=hookspecs.PROJECT)
    for point in sorted(points, key=lambda p: (_dist(p)[0] != OWN, _dist(p), p.name)):
        origin = Origin(*_dist(point), point.value)
        if origin in seen:  # the same metadata found twice on sys.path
            continue
        seen.add(origin)
        if chosen is None or origin.distribution in {OWN, *chosen}:
            yield origin, point


def wanted() -> list[str] | None:
    """The distributions that `ZOO_PLUGINS` names; None where it is not set."""
    said = os.environ.get("ZOO_PLUGINS")
    if said is None:
        return None
    return [normalised(name.strip()) for name in said.split(",") if name.strip()]


def check_needs(point: importlib.metadata.EntryPoint) -> None:
    """Refuse a plugin that asks for another version of the zoo, before it is imported.

    Raises:
        PluginError: its distribution requires a version that this is not.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    if point.dist is None or _dist(point)[0] == OWN:
        return
    for text in point.dist.requires or ():
        try:
            need = Requirement(text)
        except InvalidRequirement:
            continue
        if normalised(need.name) == OWN and need.specifier:
            here = importlib.metadata.version(OWN)
            if not need.specifier.contains(here, prereleases=True):
                raise PluginError(
                    f"it needs {OWN}{need.specifier}, this is {here}",
                    f"pip install '{OWN}{need.specifier}'",
                )


def import_file(module_name: str, path: Path) -> ModuleType:
    """Import a file under a name of its own."""
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PluginError("it is not a Python source file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def offered(module: Any, alone: bool) -> dict[str, list[Any]]:
    """What a plugin module offers, by kind.

    pluggy matches the module against the hook specifications; each hook is then called by itself,
    so that one plugin's failure is its own.

    Args:
        alone: it is a single file, which needs no hooks: the classes it decorates are taken.

    Raises:
        PluginError: a hook is misspelt, undecorated, or returns something else than a list; or
            nothing is offered.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    _explain_unknown(module)
    manager.register(module)
    found: dict[str, list[Any]] = {}
    for kind, (hook, _) in KINDS.items():
        for result in getattr(manager.hook, hook)():
            if isinstance(result, (str, bytes)) or not isinstance(result, Iterable):
                raise PluginError(f"{hook}() returned {type(result).__name__}, not a list")
            found[kind] = list(result)
    if alone and not found:
        found = {kind: _decorated(module, base) for kind, (_, base) in KINDS.items()}
    if not any(found.values()):
        raise PluginError(_why_nothing(module))
    return found


def _explain_unknown(module: Any) -> None:
    """A function marked as a hook under a name that is none: say which one may be meant."""
    for name, thing in vars(module).items():
        if hasattr(thing, f"{hookspecs.PROJECT}_impl") and name not in {*HOOKS, "hookimpl"}:
            near = difflib.get_close_matches(name, HOOKS, n=1)
            guess = f"did you mean {near[0]}()?" if near else f"hooks: {', '.join(sorted(HOOKS))}"
            raise PluginError(f"{name}() is not a hook; {guess}")


def _why_nothing(module: Any) -> str:
    """Why a module offers nothing: undecorated, or neither decorated nor well spelt."""
    functions = {name for name, thing in vars(module).items() if isinstance(thing, FunctionType)}
    for name in sorted(functions):
        if name in HOOKS and not hasattr(vars(module)[name], f"{hookspecs.PROJECT}_impl"):
            return f"{name}() is not decorated: write @hookimpl above it"
        if name.startswith("zoo_") and (near := difflib.get_close_matches(name, HOOKS, n=1)):
            return f"{name}() is not a hook, and not decorated; write @hookimpl, {near[0]}()"
    hooks = " or ".join(f"{hook}()" for hook in sorted(HOOKS))
    return (
        "it registers nothing: no class decorated with @integrator(...) in a single file, no "
        f"@hookimpl function {hooks} in a package, or an empty list"
    )


def _decorated(module: Any, base: type[Options]) -> list[Any]:
    """The classes that a file itself defines and names."""
    return [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, base)
        and thing.__module__ == module.__name__
        and vars(thing).get("name")
    ]


def shadowed() -> list[str]:
    """Distributions with plugins that are found more than once, the first one being used."""
    found: dict[str, list[str]] = {}
    for dist in importlib.metadata.distributions():
        try:
            if any(point.group == hookspecs.PROJECT for point in dist.entry_points):
                found.setdefault(normalised(dist.name), []).append(dist.version)
        except Exception:  # unreadable metadata of some other package
            continue
    return [
        f"{name} {versions[0]} is used; {', '.join(versions[1:])} further down sys.path is not"
        for name, versions in sorted(found.items())
        if len(set(versions)) > 1
    ]


def normalised(name: str) -> str:
    """The name of a distribution as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _dist(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """Normalised name and version of the distribution that an entry point belongs to."""
    return (
        ("unknown", "") if point.dist is None else (normalised(point.dist.name), point.dist.version)
    )
