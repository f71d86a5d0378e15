"""The `zoo` command."""

from __future__ import annotations

import os
import sys

from ..errors import ZooError


def main() -> None:
    """Entry point: user mistakes are one line and exit code 2, an interrupt is one line and 130."""
    from typer.exceptions import Exit, TyperException

    from . import (  # noqa: F401 (they add their commands)
        animate,
        check,
        lifecycle,
        relaunch,
        report,
        reproduce,
        sample,
        sweep,
    )
    from .app import app
    from .output import INTERRUPTED, leave

    relaunch.allowed = True
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except ZooError as error:
        leave(str(error), 2)
    except TyperException as error:
        text = " ".join(error.format_message().split())
        leave(f"{text or 'something is missing.'}  See: zoo --help", 2)
    except Exit as error:
        code = error.exit_code
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    if code == INTERRUPTED:  # typer, too, turns an interrupt into this code
        leave("interrupted; the same command starts again", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
