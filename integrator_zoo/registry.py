"""Find plugins, keep broken ones from breaking the rest, and turn spec strings into objects."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from . import hookspecs
from .contract import Integrator
from .errors import PluginError, ZooError, one_line, unknown
from .lab import Experiment
from .options import Options, from_spec

OWN = "integrator-zoo"
KINDS: dict[str, tuple[str, type[Options]]] = {
    "integrator": ("zoo_integrators", Integrator),
    "experiment": ("zoo_experiments", Experiment),
}


@dataclass(frozen=True)
class Origin:
    """Where a registered thing came from."""

    distribution: str
    version: str
    module: str

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"{self.distribution}{version} ({self.module})"


@dataclass(frozen=True)
class Broken:
    """A plugin, or a part of one, that was left out, and why."""

    origin: Origin
    reason: str

    def __str__(self) -> str:
        return f"plugin {self.origin} left out: {self.reason}"


@dataclass(frozen=True)
class Entry:
    """A registered integrator or experiment: its default instance and its origin."""

    default: Any
    origin: Origin


@dataclass
class Registry:
    """Everything that is registered in this process."""

    entries: dict[str, dict[str, Entry]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    broken: list[Broken] = field(default_factory=list)

    def load_entry_points(self) -> None:
        """Load every plugin of the entry-point group, our own first, then by distribution name.

        Whatever a plugin does when imported or asked, short of an interrupt, only leaves it out.
        """
        seen: set[tuple[str, str, str]] = set()
        points = importlib.metadata.entry_points(group=hookspecs.PROJECT)
        found = sorted(points, key=lambda p: (_dist(p)[0] != OWN, _dist(p), p.name))
        for point in found:
            name, version = _dist(point)
            key = (name, point.name, point.value)
            if key in seen:  # the same metadata found twice on sys.path
                continue
            seen.add(key)
            self._load(Origin(name, version, point.value), point.load)

    def load_file(self, path: str | Path) -> None:
        """Load a single plugin file: its hooks, or simply the classes it decorates."""
        path = Path(path)
        if not path.is_file():
            raise ZooError(f"no plugin file {str(path)!r}.", "Give the path of a .py file.")
        module_name = "zoo_file_" + re.sub(r"\W", "_", path.stem)
        self._load(Origin(str(path), "", module_name), lambda: _import_file(module_name, path))

    def add(self, kind: str, thing: Any, origin: Origin) -> Entry:
        """Register a class made by `@integrator` or `@experiment`, or an instance of one.

        Raises:
            PluginError: it is neither, or its name is taken.
        """
        base = KINDS[kind][1]
        cls = thing if isinstance(thing, type) else type(thing)
        if not (issubclass(cls, base) and vars(cls).get("name")):
            raise PluginError(
                f"{getattr(thing, '__name__', thing)!r} is not a class made with @{kind}(...)"
            )
        if missing := sorted(getattr(cls, "__abstractmethods__", ())):
            raise PluginError(f"{cls.__name__} does not define {', '.join(missing)}()")
        holder = self.entries[kind].get(cls.name)
        if holder is not None:
            raise PluginError(
                f"the {kind} name {cls.name!r} is taken by {holder.origin}; choose another name"
            )
        entry = Entry(cls() if isinstance(thing, type) else thing, origin)
        self.entries[kind][cls.name] = entry
        return entry

    def get(self, kind: str, spec: str) -> Any:
        """The object that a spec string names, as in 'ledger' or 'ledger:mu=0.6'.

        Raises:
            ZooError: the name or an option is unknown, or a value is not allowed.
        """
        return from_spec(spec, lambda name: self.entry(kind, name).default)

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of a name, without options."""
        if name not in self.entries[kind]:
            raise unknown(kind, name, self.entries[kind], "See: zoo list")
        return self.entries[kind][name]

    def _load(self, origin: Origin, load: Any) -> None:
        try:
            module = load()
            for kind, things in _offered(module, origin).items():
                for thing in things:
                    self._add_or_note(kind, thing, origin)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: a plugin must not end the program
            self.broken.append(Broken(origin, one_line(error)))

    def _add_or_note(self, kind: str, thing: Any, origin: Origin) -> None:
        """One bad member is left out; its siblings stay."""
        try:
            self.add(kind, thing, origin)
        except Exception as error:
            self.broken.append(Broken(origin, one_line(error)))


def _dist(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """Normalised name and version of the distribution that an entry point belongs to."""
    dist = point.dist
    if dist is None:
        return "unknown", ""
    return re.sub(r"[-_.]+", "-", dist.name).lower(), dist.version


def _import_file(module_name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PluginError("it is not a Python source file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def _offered(module: Any, origin: Origin) -> dict[str, Iterable[Any]]:
    """What a plugin module offers, by kind.

    pluggy matches the module against the hook specifications; each hook is then called by itself,
    so that one plugin's failure is its own.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    manager.check_pending()
    offered: dict[str, Iterable[Any]] = {}
    for kind, (hook, _) in KINDS.items():
        results = getattr(manager.hook, hook)()
        for result in results:
            if isinstance(result, (str, bytes)) or not isinstance(result, Iterable):
                raise PluginError(f"{hook}() returned {type(result).__name__}, not a list")
            offered[kind] = list(result)
    if not offered and origin.version == "":  # a single file needs no hooks
        for kind, (_, base) in KINDS.items():
            offered[kind] = [
                thing
                for thing in vars(module).values()
                if isinstance(thing, type)
                and issubclass(thing, base)
                and thing.__module__ == module.__name__
                and vars(thing).get("name")
            ]
    if not any(offered.values()):
        hooks = " or ".join(f"{hook}()" for hook, _ in KINDS.values())
        raise PluginError(f"it registers nothing: no @hookimpl function {hooks}")
    return offered


@functools.lru_cache(maxsize=1)
def current() -> Registry:
    """The registry of this process; plugins are loaded at the first call.

    `ZOO_PLUGIN_FILES` may name further single-file plugins, separated as in PATH.
    """
    made = Registry()
    made.load_entry_points()
    for path in filter(None, os.environ.get("ZOO_PLUGIN_FILES", "").split(os.pathsep)):
        made.load_file(path)
    return made


def get(spec: str) -> Any:
    """The integrator that a spec string names: `get("ledger:mu=0.6")`.

    Raises:
        ZooError: the name or an option is unknown, or a value is not allowed.
    """
    return current().get("integrator", spec)


def register(rule: Any) -> Any:
    """Register an integrator (class or instance) in this process, without packaging it.

    Returns it, so that it also serves as a class decorator. Registering the same name again
    from the same process replaces the former one; names of installed plugins are refused.
    """
    cls = rule if isinstance(rule, type) else type(rule)
    here = Origin("this process", "", cls.__module__)
    held = current().entries["integrator"]
    name = getattr(cls, "name", None)
    if name in held and held[name].origin.distribution == here.distribution:
        del held[name]
    current().add("integrator", rule, here)
    return rule
