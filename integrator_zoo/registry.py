"""Find plugins, keep broken ones from breaking the rest, and turn spec strings into objects."""

from __future__ import annotations

import functools
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import discovery
from .discovery import KINDS, OWN, Origin, import_file, offered
from .errors import PluginError, ZooError, one_line, unknown
from .options import from_spec


@dataclass(frozen=True)
class Broken:
    """A plugin, or a part of one, that was left out, and why."""

    origin: Origin
    reason: str
    error: str = "PluginError"
    """Name of the exception's type."""

    def __str__(self) -> str:
        return f"plugin {self.origin} left out: {self.reason}"


@dataclass(frozen=True)
class Entry:
    """A registered integrator or experiment: its default instance and its origin."""

    default: Any
    origin: Origin


@dataclass(frozen=True)
class Plugin:
    """A plugin module that was looked at."""

    origin: Origin
    registered: tuple[str, ...]
    """Names of the integrators and experiments that it registered."""
    seconds: float
    """How long importing it and asking it took."""


@dataclass
class Registry:
    """Everything that is registered in this process."""

    entries: dict[str, dict[str, Entry]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    broken: list[Broken] = field(default_factory=list)
    plugins: list[Plugin] = field(default_factory=list)

    def load_entry_points(self) -> None:
        """Load every plugin of the entry-point group, our own first, then by distribution name.

        Whatever a plugin does when imported or asked, short of an interrupt, only leaves it out.
        """
        for origin, point in discovery.entry_points():
            self._load(origin, lambda point=point: _load_point(point))
        for name in discovery.wanted() or ():
            if name not in {OWN, *(plugin.origin.distribution for plugin in self.plugins)}:
                missing = Origin(name, "", "ZOO_PLUGINS")
                self.broken.append(Broken(missing, "no plugin of this name is installed"))

    def load_file(self, path: str | Path) -> None:
        """Load a single plugin file: its hooks, or simply the classes it decorates."""
        path = Path(path)
        if not path.is_file():
            raise ZooError(f"no plugin file {str(path)!r}.", "Give the path of a .py file.")
        module_name = "zoo_file_" + re.sub(r"\W", "_", path.stem)
        self._load(Origin(str(path), "", module_name), lambda: import_file(module_name, path))

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
        if holder is not None and not _takes_precedence(origin, holder.origin):
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
        clock = time.perf_counter()
        names: list[str] = []
        try:
            for kind, things in offered(load(), alone=origin.version == "").items():
                for thing in things:
                    names += self._add_or_note(kind, thing, origin)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: a plugin must not end the program
            self.broken.append(Broken(origin, one_line(error), type(error).__name__))
        self.plugins.append(Plugin(origin, tuple(names), time.perf_counter() - clock))

    def _add_or_note(self, kind: str, thing: Any, origin: Origin) -> list[str]:
        """The name under which it is registered; one bad member is left out, its siblings stay."""
        try:
            return [self.add(kind, thing, origin).default.name]
        except Exception as error:
            self.broken.append(Broken(origin, one_line(error), type(error).__name__))
            return []


def _takes_precedence(new: Origin, old: Origin) -> bool:
    """A file named by hand stands before the installed plugin it may become; not before ours."""
    return new.version == "" and old.distribution != OWN


def _load_point(point: Any) -> Any:
    discovery.check_needs(point)
    return point.load()


@functools.lru_cache(maxsize=1)
def current() -> Registry:
    """The registry of this process; plugins are loaded at the first call.

    `ZOO_PLUGINS` restricts which, see `discovery.entry_points`; `ZOO_PLUGIN_FILES` may name further
    single-file plugins, separated as in PATH.
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

    Returns it, so that it also serves as a class decorator. It takes the
    place of an installed plugin of the same name; names of built-ins are refused.
    """
    cls = rule if isinstance(rule, type) else type(rule)
    current().add("integrator", rule, Origin("this process", "", cls.__module__))
    return rule
