"""Errors that a user can mend: what came, what was expected, what to type next."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Iterable


class ZooError(ValueError):
    """A mistake in what the user asked for. The command prints it as one line and exits with 2.

    The message is one line: what came and what was expected; `hint` is the next thing to type.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}  {hint}" if hint else message)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while runs were under way; the message says how many are kept."""


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


ELSEWHERE = "Free some space, or give another folder: --out DIR."


def unwritable(path: object, error: OSError, hint: str = ELSEWHERE) -> ZooError:
    """The error for a file or folder that cannot be written, such as on a full disk."""
    return ZooError(f"cannot write {str(path)!r}: {error.strerror or error}.", hint)


def one_line(error: BaseException, culprit: type | None = None) -> str:
    """The first line of any exception, with its type: what a table or a warning can hold.

    Args:
        culprit: a class; the last line of its own file that the exception came through is named.
    """
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, ZooError):
        return text
    kind = type(error).__name__
    line = text if text == kind else f"{kind}: {text}"
    return line + _place(error, culprit) + HINTS.get(kind, "")


_WITHIN = "  Inside a step, values are traced: use jax.numpy, and jnp.where instead of `if`."
HINTS = {
    "TracerBoolConversionError": _WITHIN,
    "TracerArrayConversionError": _WITHIN,
    "ConcretizationTypeError": _WITHIN,
}
"""What to do about errors whose own words tell only those who know jax."""


def _place(error: BaseException, culprit: type | None) -> str:
    """' (file.py:12: y = stat.x)', the deepest line in the culprit's file."""
    module = sys.modules.get(culprit.__module__) if culprit else None
    file = getattr(module, "__file__", None)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if not frames:
        return ""
    return f"  ({os.path.basename(file or '')}:{frames[-1].lineno}: {frames[-1].line})"
