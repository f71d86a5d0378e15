"""The pages as programs: their blocks taken out, and run one after another like a reader would."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import shlex
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from integrator_zoo import cli
from integrator_zoo.registry import current

FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"[Ss]ave this as `([\w./-]+)`[^`]*\Z")
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*\Z", re.DOTALL)
OUTPUT = re.compile(r"\A\s*prints\s*\Z")

PLANAR = "depth=4 steps=20 train_points=64 test_points=64"
GPT = (
    "corpus=generated width=16 layers=1 heads=2 mlp_hidden=16 context=16 batch=4 pieces=1 steps=20 "
    "warmup=2 validate_every=10 validation_windows=4 probe_windows=2"
)
SMALL = {
    "rings": PLANAR,
    "moons": PLANAR,
    "spirals": PLANAR,
    "kepler": "orbits=2",
    "rewind": "depth=4 steps=20",
    "memory": "deepest=8 points=16 repeats=1",
    "shakespeare": GPT,
}
"""Settings under which the commands of the pages are tried: the same program, in seconds."""
ELSEWHERE = {
    r"python3 -m venv|\. \.venv": ".ci/run installs into a fresh environment",
    r"\S*pip install": "installs; .ci/run and tests/test_lifecycle.py do",
    r".*-m (pytest|sphinx|jupytext)": "these tests themselves",
    r"\S*pre-commit": "changes the checkout's hooks",
}
"""Commands that are not tried here, and where they are."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    before: str
    """The text between the block before and this one."""

    @property
    def not_run(self) -> str | None:
        """Why the page says that it is not run."""
        found = NOT_RUN.search(self.before)
        return found[1] if found else None


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a Markdown page, in order."""
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(match[1], match[2], line, text[end : match.start()]))
        end = match.end()
    return found


class Reader:
    """Works through a page: one Python process, one folder, every block in its turn."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.module = types.ModuleType(f"page_{page.stem}")
        self.printed = ""
        self.done = 0
        """Blocks that were run or compared."""

    def read(self) -> None:
        """Run the page in the current folder.

        Raises:
            AssertionError: a command fails, a printed text differs, or a block's language is one
                that nothing here can run.
        """
        sys.modules[self.module.__name__] = self.module  # where Flax and dataclasses look
        try:
            for block in blocks_of(self.page.read_text()):
                self._take(block)
        finally:
            del sys.modules[self.module.__name__]

    def _take(self, block: Block) -> None:
        where = f"{self.page.name}:{block.line}"
        if block.not_run:
            return
        if block.language in ("python", "py"):
            if saved := SAVED.search(block.before):
                Path(saved[1]).write_text(block.text)
            self.printed = self._run(block.text, where)
        elif block.language == "sh":
            for command in block.text.replace("\\\n", " ").splitlines():
                self._type(command, where)
        elif block.language in ("text", ""):
            if not OUTPUT.match(block.before):
                return
            assert self.printed.strip() == block.text.strip(), f"{where} prints {self.printed!r}"
        else:
            assert block.language.startswith("{"), f"{where}: nothing runs {block.language!r}"
            return
        self.done += 1

    def _run(self, code: str, where: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            # lines as in the page, so that a traceback tells where
            start = int(where.rsplit(":", 1)[1])
            exec(compile("\n" * (start - 1) + code, str(self.page), "exec"), vars(self.module))
        return out.getvalue()

    def _type(self, command: str, where: str) -> None:
        """Type a line at the prompt: zoo in this process, under small settings."""
        if made := re.match(r"pip install -e (\w+)$", command):  # the plugin that zoo new wrote
            current().load_file(*Path(made[1]).glob("zoo_*.py"))
        if any(re.match(pattern, command) for pattern in ELSEWHERE):
            return
        words = shlex.split(command, comments=True)
        if not words:
            return
        assert words[0] == "zoo", f"{where}: nothing runs {command!r}"
        words = [name for word in words for name in sorted(glob.glob(word)) or [word]]
        code, said = zoo(small(words[1:]))
        assert code == 0, f"{where}: {command}\n{said}"


def small(words: list[str]) -> list[str]:
    """The words of a command with small settings before its own, which thus win."""
    if words[0] not in ("run", "compare"):
        return words
    settings = [word for pair in SMALL[words[1]].split() for word in ("--set", pair)]
    return [*words[:2], *settings, *words[2:]]


def zoo(words: list[str]) -> tuple[int, str]:
    """Exit code, and all that the command printed."""
    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["zoo", *words]),
        mock.patch.object(os, "_exit", sys.exit),  # how the command ends after a user's mistake
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    return int(ended.value.code or 0), out.getvalue()
