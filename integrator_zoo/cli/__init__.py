"""The `zoo` command."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ..errors import ZooError

INTERRUPTED = 130
"""Exit code of a command ended by Ctrl-C, as shells have it."""


def main() -> None:
    """Entry point: user mistakes are one line and exit code 2, an interrupt is one line and 130."""
    from typer.exceptions import Exit, TyperException

    from . import relaunch, sample  # noqa: F401  (adds its command)
    from .app import app

    relaunch.allowed = True
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except ZooError as error:
        _leave(f"zoo: {error}", 2)
    except TyperException as error:
        text = " ".join(error.format_message().split())
        _leave(f"zoo: {text or 'something is missing.'}  See: zoo --help", 2)
    except Exit as error:
        code = error.exit_code
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    if code == INTERRUPTED:  # typer, too, turns an interrupt into this code
        _leave(
            "zoo: interrupted; finished runs are kept, the same command goes on from there",
            INTERRUPTED,
        )
    sys.exit(code if isinstance(code, int) else 0)


def _leave(line: str, code: int) -> NoReturn:
    """Say one line and end at once: a worker thread that still compiles is not waited for."""
    print(line, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
