"""Huge memory pages for experiments that ask for them, by starting this command once more.

On Linux, glibc hands out memory in huge pages when GLIBC_TUNABLES says so before the process
starts. Large networks spend much of a step on page faults and address translation otherwise. It
changes no number. `ZOO_HUGE_PAGES=0`, or a GLIBC_TUNABLES of your own that names
`glibc.malloc.hugetlb`, keeps the process as it is.
"""

from __future__ import annotations

import os
import platform
import sys

TUNABLE = "glibc.malloc.hugetlb"
allowed = False
"""Set by the command's entry point: a process that merely imports the zoo is never replaced."""


def with_huge_pages() -> None:
    """Replace this process by itself with huge pages, where that is possible and not yet so."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if (
        not allowed
        or TUNABLE in tunables
        or os.environ.get("ZOO_HUGE_PAGES") == "0"
        or sys.platform != "linux"
        or platform.libc_ver()[0] != "glibc"
        or "jax" in sys.modules
    ):
        return
    both = ":".join(filter(None, [tunables, f"{TUNABLE}=1"]))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(
        sys.executable,
        [sys.executable, *sys.orig_argv[1:]],
        {**os.environ, "GLIBC_TUNABLES": both},
    )
