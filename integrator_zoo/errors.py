"""Errors that a user can mend: what came, what was expected, what to type next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ZooError(ValueError):
    """A mistake in what the user asked for. The command prints it as one line and exits with 2.

    The message is one line: what came and what was expected; `hint` is the next thing to type.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}  {hint}" if hint else message)


class PluginError(ZooError):
    """A plugin broke the contract. The message names the plugin; the rest of the zoo works on."""


def unknown(kind: str, got: str, known: Iterable[str], hint: str = "") -> ZooError:
    """The error for a name that is not there, with the nearest known name."""
    names = sorted(known)
    near = difflib.get_close_matches(got, names, n=1, cutoff=0.5)
    if near:
        guess = f" Did you mean {near[0]!r}?"
    elif len(names) <= 12:
        guess = f" Known: {', '.join(names) or 'none'}."
    else:
        guess = ""
    return ZooError(f"no {kind} {got!r} ({len(names)} known).{guess}", hint)


def one_line(error: BaseException) -> str:
    """The first line of any exception, with its type: what a table or a warning can hold."""
    text = str(error).strip().splitlines()
    if isinstance(error, ZooError):
        return text[0]
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
