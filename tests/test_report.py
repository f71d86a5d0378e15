"""The report: one page that holds for any runs, driven in a browser as a reader would."""

from __future__ import annotations

import itertools
import json
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from markupsafe import escape

import integrator_zoo as zoo
from integrator_zoo.errors import ZooError
from integrator_zoo.registry import current
from integrator_zoo.report import chapters, write_report
from integrator_zoo.report.chapters import command_of
from integrator_zoo.report.comparison import remarks
from integrator_zoo.runs import Store, perform
from integrator_zoo.runs.found import find_runs

TINY_GPT = {
    "corpus": "generated", "width": 16, "layers": 2, "heads": 2, "mlp_hidden": 16, "context": 8,
    "batch": 8, "pieces": 1, "steps": 40, "warmup": 4, "validate_every": 10,
    "validation_windows": 64, "stop_at": 20,
}  # fmt: skip
WICKED = "ledger:<b>mu</b>&\"'</script><script>alert(1)</script>"
SPECS = ["euler", "ledger", WICKED, *(f"ledger:mu=0.{i}" for i in range(1, 10))]
MOST_BYTES = 6e6


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Real runs: two rules on rings with two seeds, and a small language model."""
    store = Store(tmp_path_factory.mktemp("real"))
    rings = current().get("experiment", "rings").with_options({"depth": 6, "steps": 60})
    words = current().get("experiment", "shakespeare").with_options(TINY_GPT)
    return [
        *perform([rings], [zoo.get("euler"), zoo.get("ledger")], [0, 1], store),
        *perform([words], [zoo.get("ledger")], [0], store),
    ]


@pytest.fixture(scope="module")
def many(real, tmp_path_factory):
    """54 runs made of the real ones: twelve rules, two depths, lost runs, wicked names."""
    store = Store(tmp_path_factory.mktemp("many"))
    rings = {record.integrator: record for record in real[:4] if record.seed == 0}

    def twin(record, spec, seed, depth=6, arrays=None, **changes):
        config = json.loads(json.dumps(record.config)) | {"seed": seed}
        config["integrator"]["spec"] = spec
        if record.config["experiment"] == "rings":
            config["settings"]["depth"] = depth
        return store.write(config, {**record.data, **changes}, arrays or record.arrays)

    blown = {name: np.where(np.arange(len(a)).reshape(-1, *[1] * (a.ndim - 1)) > 2, np.nan, a)
             for name, a in rings["euler"].arrays.items() if a.dtype.kind == "f"}  # fmt: skip
    for spec in SPECS:
        for seed in range(2 + (spec == "euler")):
            twin(rings["euler"], spec, seed)
    for seed in range(23):
        twin(rings["ledger"], "ledger", seed, depth=3)
    lost = {"reason": "the loss blew up at step 3", "metrics": {"parameters": 7}}
    twin(rings["euler"], "euler:diverged", 0, arrays=blown, status="diverged", **lost)
    twin(rings["euler"], "euler:failed", 0, arrays={"none": np.zeros(0)}, status="failed", **lost)
    for seed in range(4):
        twin(real[-1], SPECS[seed], seed)
    return store.root


@pytest.fixture(scope="module")
def page(many, tmp_path_factory):
    """The page about the 54 runs."""
    target = tmp_path_factory.mktemp("page") / "report.html"
    notes = []
    found = find_runs([many])
    write_report(chapters(found, current()), target, note=notes.append)
    assert len(found) == 54
    assert not notes
    return target


class Elements(HTMLParser):
    """What a browser would make of the page: elements, addresses, texts of scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.scripts, self._inside = [], [], {}, None

    def handle_starttag(self, tag, attrs):
        said = dict(attrs)
        self.tags.append(tag)
        self.addresses += [said[key] for key in ("src", "srcset", "href") if said.get(key)]
        self._inside = said.get("id", tag) if tag == "script" else None

    def handle_data(self, data):
        if self._inside:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data

    def handle_endtag(self, tag):
        self._inside = None


def test_54_runs_are_one_small_page(page):
    assert page.stat().st_size < MOST_BYTES


def test_the_page_asks_nobody_and_escapes_everything(page):
    text = page.read_text("utf-8")
    seen = Elements()
    seen.feed(text)
    assert all(address.startswith(("data:", "#")) for address in seen.addresses)
    assert "<b>mu" not in text
    assert "alert(1)</script>" not in text
    assert seen.tags.count("script") == 6  # data of two chapters, the charts, two libraries, ours
    data = json.loads(seen.scripts["chapter-1-data"])
    assert f"{WICKED} (depth 6)" in {one["label"] for one in data["subjects"]}
    assert text.count("<details>") == 54


def test_the_page_says_what_its_columns_mean(page):
    """Each experiment of ours says it of each column."""
    experiments = [current().get("experiment", name) for name in current().entries["experiment"]]
    columns = [(one, column) for one in experiments for column in one.columns]
    assert columns
    assert not [f"{one.name}: {column.heading}" for one, column in columns if not column.meaning]
    text = page.read_text("utf-8")
    assert text.count('class="meanings"') == 2
    assert text.index("Ceiling, against depth<") < text.index(", depth 6</figcaption>")
    rings = current().get("experiment", "rings")
    meaning = {column.heading: column.meaning for column in rings.columns}
    assert f"<dt>path</dt><dd>{escape(meaning['path'])}</dd>" in text


def test_runs_that_ended_alike_are_one_remark():
    def run(spec, seed, status="failed", reason="no memory"):
        return SimpleNamespace(integrator=spec, seed=seed, status=status, reason=reason)

    said = [run("a", 0), run("a", 1), run("b", 0), run("a", 2, reason="nan"), run("c", 0, "ok")]
    assert remarks(said) == [
        "a, seeds 0, 1: failed: no memory",
        "b, seed 0: failed: no memory",
        "a, seed 2: failed: nan",
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "none", "is not a folder"),
        (lambda folder: folder, "holds no run"),
        (lambda folder: (folder / "record.json").write_text("{}") and folder, "not a complete run"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path, make, said):
    with pytest.raises(ZooError, match=said):
        find_runs([make(tmp_path)])


def test_a_damaged_run_among_others_is_named_and_left_out(real, tmp_path):
    shutil.copytree(real[0].folder, tmp_path / "runs" / "good")
    shutil.copytree(real[0].folder, tmp_path / "runs" / ".half-written")
    (tmp_path / "runs" / "bad").mkdir()
    (tmp_path / "runs" / "bad" / "record.json").write_text("{")
    notes = []
    assert [run.folder.name for run in find_runs([tmp_path / "runs"], notes.append)] == ["good"]
    assert len(notes) == 1
    assert "bad" in notes[0]


def test_the_command_of_a_run_is_that_of_the_run(real):
    """Typed again, it finds the run that it is said to make."""
    record = real[-1]
    (chapter,) = chapters([record], current())
    words = shlex.split(command_of(chapter.settings[0].experiment, record))
    assert words[:3] == ["zoo", "run", "shakespeare"]
    code = "from integrator_zoo.cli import main; main()"
    store = record.folder.parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, *words[1:], "--out", str(store), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["rows"][0]["run"] == str(record.folder)
    assert "were finished before" in done.stderr


def test_the_command_of_a_comparison(real):
    rings = [record for record in real if record.config["experiment"] == "rings"]
    (chapter,) = chapters(rings, current())
    assert chapter.settings[0].commands() == [
        "zoo compare rings -i euler -i ledger --seeds 2 --set depth=6 --set steps=60"
    ]
    (chapter,) = chapters(rings[:3], current())  # no comparison has these seeds
    assert [line.split(" --set")[0] for line in chapter.settings[0].commands()] == [
        "zoo run rings -i euler --seed 0",
        "zoo run rings -i euler --seed 1",
        "zoo run rings -i ledger --seed 0",
    ]


# ---- in a browser

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    binary = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its chromedriver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options, Service(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def opened(browser, page):
    browser.get(page.as_uri())
    return browser


def column(browser, index):
    return browser.execute_script(
        """const rows = [...document.querySelectorAll("#chapter-1 tbody tr")];
        return rows.map((row) => row.cells[arguments[0]].textContent);""",
        index,
    )


def subjects(browser, *labels):
    """The places of some integrators in the list of choices."""
    script = (
        "return [...document.querySelectorAll('#chapter-1 .choice')].map(c => c.textContent.trim())"
    )
    return [browser.execute_script(script).index(label) for label in labels]


def scrub(browser, slider, value, chapter=1):
    """Move a slider, as a key does, and wait for the charts."""
    return browser.execute_async_script(
        """const [slider, value, chapter, done] = arguments;
        const input = document.querySelector(`#chapter-${chapter} [data-slider="${slider}"] input`);
        input.value = value;
        input.dispatchEvent(new Event("input"));
        requestAnimationFrame(() => setTimeout(done, 50));""",
        slider, value, chapter,
    )  # fmt: skip


def drawn_points(browser, subject, chapter=1):
    """Where the chart of an integrator has its points, read off the picture, in data units."""
    return np.array(
        browser.execute_script(
            """const [subject, chapter] = arguments;
            const card = document.querySelector(`#chapter-${chapter} [data-subject="${subject}"]`);
            const chart = card.querySelector(".chart");
            const [x, y] = [chart.view.scale("x"), chart.view.scale("y")];
            return [...chart.querySelectorAll("g.heads_marks path")].map((mark) => {
              const [, a, b] = mark.getAttribute("transform").match(/\\((.+),(.+)\\)/);
              return [x.invert(+a), y.invert(+b)];
            });""",
            subject, chapter,
        )
    )  # fmt: skip


def test_the_names_are_texts(opened):
    names = [name.rstrip("\xa0*") for name in column(opened, 0)]
    assert set(names) == {*SPECS, "euler:diverged", "euler:failed"}


def test_a_heading_sorts_the_table(opened):
    heading = opened.find_elements("css selector", "#chapter-1 thead button")[1]
    before = column(opened, 1)
    assert set(before) == {"3", "6"}
    heading.send_keys("\n")
    assert column(opened, 1) == sorted(before, key=float)
    heading.send_keys("\n")
    assert column(opened, 1) == sorted(before, key=float, reverse=True)
    loss = opened.find_elements("css selector", "#chapter-1 thead button")[4]
    for _ in range(2):  # what is missing is last either way
        loss.send_keys("\n")
        assert column(opened, 4)[-2:] == ["-", "-"]


def test_scrubbing_depth_and_training_draws_the_recorded_points(opened, many):
    found = find_runs([many])
    run = next(run for run in found if run.integrator == "euler" and run.seed == 0)
    nodes, steps = run.arrays["film_nodes"], run.arrays["film_steps"].tolist()
    (subject,) = subjects(opened, "euler (depth 6)")
    path = "return document.querySelector('#chapter-1 .explorer').explorer"
    kept = opened.execute_script(f"{path}.data.subjects[{subject}].path.steps")
    stops = opened.execute_script(f"{path}.step.stops")
    assert len(kept) >= 2
    seen = []
    for step, depth in ((kept[0], 0), (kept[0], 6), (kept[-1], 6), (kept[-1], 3)):
        scrub(opened, "step", stops.index(step))
        scrub(opened, "depth", depth)
        seen.append(drawn_points(opened, subject))
        np.testing.assert_allclose(seen[-1], nodes[steps.index(step), depth], rtol=1e-3, atol=2e-3)
    moved = [np.abs(one - other).max() for one, other in itertools.pairwise(seen)]
    assert min(moved) > 0.01  # the control: each time they do move


def test_another_integrator_is_picked_by_key(opened):
    boxes = opened.find_elements("css selector", "#chapter-1 fieldset input")
    cards = opened.find_elements("css selector", "#chapter-1 [data-subject]")
    off, on = subjects(opened, "euler (depth 6)", "ledger (depth 6)")
    assert (cards[off].is_displayed(), cards[on].is_displayed()) == (True, False)
    for place in (off, on):
        boxes[place].send_keys(" ")
    assert (cards[off].is_displayed(), cards[on].is_displayed()) == (False, True)
    scrub(opened, "depth", 2)
    assert len(drawn_points(opened, on)) == 24
    boxes[off].send_keys(" ")


def test_scrubbing_training_changes_the_path_of_a_language_model(opened, real):
    arrays = real[-1].arrays
    scrub(opened, "depth", 1, chapter=2)
    for step, lengths in zip(
        arrays["telemetry_steps"], arrays["step_length_by_sub_update"], strict=True
    ):
        stops = opened.execute_script(
            "return document.querySelector('#chapter-2 .explorer').explorer.step.stops"
        )
        scrub(opened, "step", stops.index(step), chapter=2)
        np.testing.assert_allclose(drawn_points(opened, 0, 2), [[lengths[0], 0]], atol=2e-3)
    assert len(set(arrays["step_length_by_sub_update"][:, 0])) > 1  # the control


def test_no_complaint_and_no_request(opened, page):
    """Last: over all that was done above."""
    assert opened.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]
    assert page.as_uri() in asked  # the control: requests are seen
    # the page's own pictures, and the tabs that the browser opens by itself
    own = ("data:", "chrome:", "chrome-untrusted:")
    assert {url for url in asked if not url.startswith(own)} == {page.as_uri()}


@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_the_screen(opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
