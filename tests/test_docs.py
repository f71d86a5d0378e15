"""The pages are true: links lead somewhere, blocks run, the build is clean, the notebook executes.

Only the links are followed in the ordinary suite; the rest takes minutes: `pytest -m docs`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from pages import FENCE, SMALL, Reader, blocks_of, small

from integrator_zoo.discovery import OWN
from integrator_zoo.registry import current

OURS = sorted(
    name
    for name, entry in current().entries["integrator"].items()
    if entry.origin.distribution == OWN
)
ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NOTEBOOK = DOCS / "notebooks" / "integrator_zoo.ipynb"


def generated() -> dict[str, str]:
    """The pages that the build makes, by path in the repository."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {f"docs/{path}": text for path, text in module.pages().items()}


MADE = generated()
WRITTEN = sorted(
    name
    for folder in (".", "benchmarks", "docs", "docs/*")
    for page in ROOT.glob(f"{folder}/*.md")
    if (name := str(page.relative_to(ROOT))) not in MADE
)
RUN = [page for page in WRITTEN if not page.startswith(("benchmarks/", "docs/findings/"))]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(page: str, text: str) -> list[str]:
    """Relative links of a page that lead to no file, or to no heading in it."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        there = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        name = str(there.relative_to(ROOT))
        if name not in MADE and not there.exists():
            dead.append(target)
        elif anchor:
            goal = MADE.get(name) or (there.read_text() if path else text)
            if "{include}" in goal:
                goal = (there.parent / re.findall(r"\{include\} (\S+)", goal)[0]).read_text()
            if anchor not in anchors(goal):
                dead.append(target)
    return dead


@pytest.mark.parametrize("page", WRITTEN)
def test_links_lead_somewhere(page):
    assert not dead_links(page, (ROOT / page).read_text())


def test_generated_pages_link_somewhere():
    assert not {page: dead for page, text in MADE.items() if (dead := dead_links(page, text))}


def test_a_dead_link_is_found():
    """Control for the two tests above."""
    text = (
        "[a](nowhere.md) [b](README.md#no-such-heading) [c](README.md#speed) [d](#here)\n# Here\n"
    )
    assert dead_links("CHANGELOG.md", text) == ["nowhere.md", "README.md#no-such-heading"]


def test_every_integrator_has_its_page():
    ours = {path for path in MADE if path.startswith("docs/reference/integrators/")}
    assert ours == {f"docs/reference/integrators/{name}.md" for name in OURS}
    for name in OURS:
        page = MADE[f"docs/reference/integrators/{name}.md"]
        assert page.startswith(f"# {name}\n")
        equation = current().get("integrator", name).traits.equation
        assert all(part.strip() in page for part in equation.split(";"))


def test_every_public_name_has_its_place():
    import integrator_zoo

    page = MADE["docs/reference/python.md"]
    placed = set(re.findall(r":: integrator_zoo\.(\w+)", page))
    assert placed == set(integrator_zoo.__all__)


def test_commands_are_tried_small():
    said = ["compare", "rings", "--set", "depth=64"]
    assert small(said)[-2:] == said[-2:]
    assert "depth=4" in small(said)
    assert set(SMALL) == set(current().entries["experiment"])


@pytest.fixture
def reader_of(tmp_path, monkeypatch, scratch_registry):
    """Reads a page in an empty folder, with a registry that is put back afterwards."""
    monkeypatch.chdir(tmp_path)
    yield Reader
    jax.clear_caches()  # a page compiles much that no other one needs


@pytest.mark.docs
@pytest.mark.parametrize("page", RUN)
def test_blocks_run(page, reader_of):
    reader = reader_of(ROOT / page)
    reader.read()
    due = [b for b in blocks_of((ROOT / page).read_text()) if b.language in ("python", "py", "sh")]
    assert reader.done >= len([block for block in due if not block.not_run])


@pytest.mark.docs
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```python\nprint(2)\n```\n\nprints\n\n```text\n3\n```\n", "prints"),
        ("```sh\nzoo info ledgr\n```\n", "Did you mean 'ledger'"),
        ("```bash\nzoo list\n```\n", "nothing runs 'bash'"),
        ("```sh\ncurl example.org\n```\n", "nothing runs 'curl"),
    ],
)
def test_a_false_page_is_found(text, words, reader_of, tmp_path):
    """Control for the test above."""
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=words):
        reader_of(page).read()


@pytest.mark.docs
def test_the_pages_build_without_a_warning_and_are_found(tmp_path):
    """A search for the name of an integrator finds its page: by every word of its title."""
    build = [sys.executable, "-m", "sphinx", "-W", "-q", str(DOCS), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]*="https?:[^>]*>', page.read_text()), page
    text = (tmp_path / "searchindex.js").read_text()
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    for name in OURS:
        here = index["docnames"].index(f"reference/integrators/{name}")
        assert name in index["alltitles"]
        for word in name.split("-"):
            assert here in _numbers(index, word), f"{word} does not find the page of {name}"


def _numbers(index: dict, word: str) -> list[int]:
    """The pages that hold a word in a title or in their text, stems included, as the search has."""
    found: list[int] = []
    for part in ("titleterms", "terms"):
        for term, pages in index[part].items():
            if word.startswith(term) or term.startswith(word):
                found += pages if isinstance(pages, list) else [pages]
    return found


@pytest.mark.docs
def test_the_notebook_is_its_text():
    import jupytext

    text = jupytext.read(NOTEBOOK.with_suffix(".py"))
    made = jupytext.read(NOTEBOOK)
    assert [(c.cell_type, c.source) for c in made.cells] == [
        (c.cell_type, c.source) for c in text.cells
    ], "make it anew: python -m jupytext --to ipynb docs/notebooks/integrator_zoo.py"
    assert not [cell for cell in made.cells if cell.get("outputs")]


@pytest.mark.docs
def test_the_notebook_executes(tmp_path):
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
