"""Declared options: one strict way to state, check, parse and print named hyperparameters.

Integrators (`ledger:mu=0.6`) and experiments (`--set depth=64`) both declare theirs with `option`,
so both get the same checks, the same messages and the same spelling.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from .errors import ZooError, unknown

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PLAIN = (bool, int, float, str)
_TRUE, _FALSE = {"true", "yes", "1"}, {"false", "no", "0"}


def option(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """Declare one option of an integrator or an experiment.

    Args:
        default: the value when nothing is said.
        help: one phrase, shown by `zoo info` and in error messages.
        low, above: inclusive or exclusive lower bound.
        high, below: inclusive or exclusive upper bound.
        choices: the allowed strings.
    """
    bounds = {"low": low, "above": above, "high": high, "below": below}
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices, **bounds})


@typing.dataclass_transform(frozen_default=True)
@dataclasses.dataclass(frozen=True)
class Options:
    """Base of every class whose fields are options.

    Each subclass becomes a frozen, hashable dataclass whose values are checked when it is made.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        for key in self.option_fields():
            object.__setattr__(self, key, parse_value(type(self), key, getattr(self, key)))

    @classmethod
    def option_fields(cls) -> dict[str, dataclasses.Field[Any]]:
        """The declared options by name."""
        return {f.name: f for f in dataclasses.fields(cls) if "help" in f.metadata}

    def option_values(self) -> dict[str, Any]:
        """Every option with its value."""
        return {name: getattr(self, name) for name in self.option_fields()}

    @property
    def spec(self) -> str:
        """The shortest string that names this object: its name and what differs from defaults."""
        fields = self.option_fields()
        said = [
            f"{name}={format_value(value)}"
            for name, value in self.option_values().items()
            if not isinstance(value, PLAIN) or value != fields[name].default
        ]
        return f"{self.name}:{','.join(said)}" if said else self.name

    def with_options(self, said: Mapping[str, Any]) -> Any:
        """A copy with some options given, as text or as values.

        Raises:
            ZooError: an unknown option, or a value of the wrong type or outside its bounds.
        """
        fields = self.option_fields()
        values: dict[str, Any] = {}
        for key, raw in said.items():
            if key not in fields:
                raise unknown(
                    f"option of {self.name}",
                    key,
                    fields,
                    f"Options: {describe_options(type(self)) or 'none'}",
                )
            values[key] = parse_value(type(self), key, raw)
        return dataclasses.replace(self, **values)

    def with_traced(self, values: Mapping[str, Any]) -> Any:
        """A copy whose float options are traced values; bounds were checked when it was made."""
        copy = object.__new__(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(copy, field.name, values.get(field.name, getattr(self, field.name)))
        return copy


_O = TypeVar("_O", bound=Options)


def from_spec(spec: str, default_of: Callable[[str], _O]) -> _O:
    """The object that a spec string names, as in 'ledger' or 'ledger:mu=0.6'.

    Args:
        spec: a name, and options after a colon.
        default_of: gives the object with default options for a name, or raises.

    Raises:
        ZooError: an option is malformed, unknown, given twice, or its value is not allowed.
    """
    name, colon, options = spec.strip().partition(":")
    default = default_of(name)
    said: dict[str, str] = {}
    for part in options.split(",") if colon else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ZooError(
                f"{spec!r}: {part!r} is not an option written key=value.",
                f"Options of {name}: {describe_options(type(default)) or 'none'}",
            )
        if key in said:
            raise ZooError(f"{spec!r}: {key} is given twice.", "Give it once.")
        said[key] = value
    return default.with_options(said)


def declare(cls: type[_O], name: str) -> type[_O]:
    """Name a class of options, as it is named in spec strings.

    Raises:
        ZooError: the name is malformed.
    """
    if not NAME.fullmatch(name):
        raise ZooError(
            f"{cls.__name__}: the name {name!r} is not lower-case words joined by dashes"
        )

    cls.name = name
    return cls


def kind_of(cls: type[Options], key: str) -> type:
    """The declared type of an option: float, int, bool or str."""
    return typing.get_type_hints(cls)[key]


def bounds_text(field: dataclasses.Field[Any]) -> str:
    """The allowed range, as in '[0, 1)'; empty when there is none."""
    meta = field.metadata
    if meta["choices"]:
        return "one of " + ", ".join(meta["choices"])
    left = f"[{meta['low']:g}" if meta["low"] is not None else None
    left = f"({meta['above']:g}" if meta["above"] is not None else left
    right = f"{meta['high']:g}]" if meta["high"] is not None else None
    right = f"{meta['below']:g})" if meta["below"] is not None else right
    return f"{left or '(-inf'}, {right or 'inf)'}" if left or right else ""


def describe_options(cls: type[Options]) -> str:
    """All options on one line: 'mu: float = 0.9 in [0, 1)'."""
    parts = []
    for key, field in cls.option_fields().items():
        where = bounds_text(field)
        text = f"{key}: {kind_of(cls, key).__name__} = {format_value(field.default)}"
        parts.append(f"{text} in {where}" if where else text)
    return "; ".join(parts)


def format_value(value: Any) -> str:
    """A value as it is written in a spec string; a traced one has none yet."""
    if not isinstance(value, PLAIN):
        return "traced"
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_value(cls: type[Options], key: str, raw: Any) -> Any:
    """Read one value strictly: the declared type, inside the declared bounds."""
    owner = cls.name or cls.__name__
    field = cls.option_fields()[key]
    kind = kind_of(cls, key)
    hint = f"{key} is {field.metadata['help']} (default {format_value(field.default)})."
    value = _convert(kind, raw)
    if value is None:
        article = "an" if kind is int else "a"
        raise ZooError(f"{owner}: {key}={raw} is not {article} {kind.__name__}.", hint)
    meta = field.metadata
    outside = (
        (meta["low"] is not None and value < meta["low"])
        or (meta["above"] is not None and value <= meta["above"])
        or (meta["high"] is not None and value > meta["high"])
        or (meta["below"] is not None and value >= meta["below"])
    )
    if outside:
        raise ZooError(f"{owner}: {key}={raw} is outside {bounds_text(field)}.", hint)
    if meta["choices"] and value not in meta["choices"]:
        raise ZooError(f"{owner}: {key}={raw} is not {bounds_text(field)}.", hint)
    return value


def _convert(kind: type, raw: Any) -> Any:
    """`raw` as a value of `kind`, or None when it is not one."""
    if kind is bool:
        text = str(raw).lower()
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(raw, bool) or not isinstance(raw, (str, numbers.Real)):
        return None
    try:
        if kind is int:
            number = float(raw)
            return int(number) if number.is_integer() else None
        if kind is float:
            number = float(raw)
            return number if math.isfinite(number) else None
    except (ValueError, OverflowError):
        return None
    return str(raw)
