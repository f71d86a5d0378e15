"""The page: what a template needs, put into it, written in one rename."""

from __future__ import annotations

import base64
import functools
import importlib.metadata
import io
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import tomli_w
from markupsafe import Markup

from ..errors import one_line
from ..figures import by_integrator, style, why
from ..runs.store import finite, write_text
from . import charts, comparison
from .chapters import Chapter, Setting, command_of
from .curves import TIME, curves, logarithmic
from .paths import path

if TYPE_CHECKING:
    from ..runs.store import Record

HERE = files("integrator_zoo.report")
VENDORED = ("vega-6.4.0.min.js", "vega-lite-6.4.3.min.js")
"""The charting library, unmodified from its npm packages; the second builds on the first."""
EXPLORED = 24
"""So many integrators of a chapter, over all settings, can be chosen in the explorer."""
NUMBERS = 250_000
"""About so many numbers of paths are kept of a chapter, about seven bytes each."""
QUALITY = 82
"""Of pictures, from 0 to 100: at this, lines and letters show no trace of compression."""

Note = Callable[[str], None]


def write_report(
    found: Sequence[Chapter],
    target: Path,
    *,
    drawn: Sequence[Path] = (),
    note: Note = lambda line: None,
) -> Path:
    """Write the page about some chapters; it needs nothing but itself.

    Args:
        found: see `chapters`.
        target: the HTML file.
        drawn: light pictures of the only comparison, where they are there already.
        note: is told what could not be drawn.

    Raises:
        ZooError: the file cannot be written.
    """
    text = (
        _environment()
        .get_template("page.html")
        .render(
            title=_title(found),
            chapters=[_chapter(chapter, drawn, note) for chapter in found],
            charts={"path": charts.path(), "curve": charts.curve()},
            version=importlib.metadata.version("integrator-zoo"),
            unequal=comparison.UNEQUAL,
            classes=style.CLASSES,
        )
    )
    write_text(target, text, "Give another file: -o report.html")
    return target


def _environment() -> jinja2.Environment:
    def inlined(name: str) -> Markup:
        """A script or style sheet of ours, as it is."""
        return Markup((HERE / name).read_text("utf-8"))

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (HERE / "page" / name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.globals["inlined"] = inlined
    made.globals["vendored"] = VENDORED
    return made


def _title(found: Sequence[Chapter]) -> str:
    names = [chapter.experiment.name for chapter in found]
    return ", ".join(names)


def _chapter(chapter: Chapter, drawn: Sequence[Path], note: Note) -> dict[str, Any]:
    specs = list(by_integrator(chapter.records))
    places = {spec: place for place, spec in enumerate(specs)}
    colors = zip(style.looks(specs).values(), style.looks(specs, dark=True).values(), strict=True)
    shown = chapter.settings[-1]  # of a sweep, one comparison is drawn: drawing takes seconds
    pictures = _pictures(
        lambda folder: shown.experiment.pictures(shown.records, folder), shown.name, drawn, note
    )
    if shown.name and set(chapter.differing) <= set(chapter.experiment.grid):
        against = ", ".join(chapter.differing)
        overview = functools.partial(chapter.experiment.overview, chapter.records)
        pictures = _pictures(overview, f"against {against}", (), note) + pictures
    return {
        "name": chapter.experiment.name,
        "summary": chapter.experiment.summary,
        "random": chapter.experiment.random,
        "headlines": [_headline(setting) for setting in chapter.settings],
        "differing": chapter.differing,
        "headings": comparison.headings(chapter.experiment),
        "meanings": comparison.meanings(chapter.experiment),
        "rows": [
            {"row": row, "setting": setting, "place": places[row.spec]}
            for setting in chapter.settings
            for row in comparison.rows(setting.experiment, setting.records)
        ],
        "remarks": comparison.remarks(chapter.records),
        "colors": [(light.color, dark.color) for light, dark in colors],
        "pictures": pictures,
        "pictured": shown.name,
        "explorer": _explorer(chapter, places),
        "settings": chapter.settings,
        "runs": [
            _run(setting, record) for setting in chapter.settings for record in setting.records
        ],
    }


def _headline(setting: Setting) -> str:
    seeds = len({record.seed for record in setting.records})
    counted = f", {seeds} seed{'s' * (seeds > 1)}" if setting.experiment.random else ""
    return setting.experiment.headline() + counted


def _pictures(
    make: Callable[[Path], Sequence[Path]], of: str, drawn: Sequence[Path], note: Note
) -> list[dict[str, Any]]:
    """What `make` draws, for a light and a dark ground, as data addresses; `of` says of what."""

    def draw(folder: Path, dark: bool) -> Sequence[Path]:
        folder.mkdir()
        with style.manner(dark=dark):
            return make(folder)

    with tempfile.TemporaryDirectory() as made:
        try:
            light = drawn or draw(Path(made) / "light", False)
            dark = draw(Path(made) / "dark", True)
        except Exception as error:  # the table is worth more than a picture
            note(f"the pictures could not be drawn: {one_line(error)}")
            return []
        return [
            {
                "name": one.stem.replace("_", " "),
                "of": of,
                "light": _data_address(one),
                "dark": _data_address(other),
            }
            for one, other in zip(light, dark, strict=True)
            if one.suffix == ".png"
        ]


def _data_address(picture: Path) -> dict[str, Any]:
    """A picture as WebP in a data address, with its size in pixels."""
    from PIL import Image

    with Image.open(picture) as image:
        held = io.BytesIO()
        image.convert("RGB").save(held, "WEBP", quality=QUALITY, method=2)
        width, height = image.size
    encoded = base64.b64encode(held.getvalue()).decode("ascii")
    return {"address": f"data:image/webp;base64,{encoded}", "width": width, "height": height}


def _explorer(chapter: Chapter, places: Mapping[str, int]) -> dict[str, Any] | None:
    """What the explorer can show: the lowest sound seed of each integrator; None for nothing."""
    subjects = []
    count = sum(len(by_integrator(setting.records)) for setting in chapter.settings)
    most = NUMBERS // min(count, EXPLORED)
    for setting in chapter.settings:
        for spec, of in by_integrator(setting.records).items():
            run = next((run for run in of if run.status == "ok"), of[0])
            subjects.append(_subject(setting, spec, run, places[spec], most))
    subjects = subjects[:EXPLORED]
    found: dict[str, list[dict[str, Any]]] = {}
    for one in subjects:
        for heading, curve in one["curves"].items():
            found.setdefault(heading, []).append(curve)
    if not found and not any(one["path"] for one in subjects):
        return None
    timed = any(one["path"] and one["path"]["across"] == TIME for one in subjects)
    return {
        "subjects": subjects,
        "along": "Time" if timed else "Depth",
        "quantities": [
            {"heading": heading, "across": of[0]["across"], "log": logarithmic(of)}
            for heading, of in found.items()
        ],
    }


def _subject(setting: Setting, spec: str, run: Record, place: int, most: int) -> dict[str, Any]:
    followed = path(run, most)
    notes = [f"seed {run.seed}"] if setting.experiment.random else []
    if followed and followed["across"] != TIME and not followed["steps"]:
        notes.append("trained")
    return {
        "label": f"{spec} ({setting.name})" if setting.name else spec,
        "place": place,
        "note": ", ".join(notes),
        "remark": "" if run.status == "ok" else why(run),
        "path": followed,
        "curves": curves(run),
    }


def _run(setting: Setting, record: Record) -> dict[str, Any]:
    """All that is recorded of one run, as texts."""
    environment = dict(record.data["environment"])
    environment |= environment.pop("packages", {})
    config = {key: value for key, value in record.config.items() if key != "settings"}
    return {
        "record": record,
        "setting": setting,
        "command": command_of(setting.experiment, record),
        "config": tomli_w.dumps({**config, "settings": record.config["settings"]}).strip(),
        "results": _flat({**record.metrics, **record.data["seconds"]}),
        "facts": _flat(record.facts),
        "environment": _flat(environment),
    }


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values to be read: metrics that come by step one by one."""
    lines: list[tuple[str, str]] = []
    for name, value in finite(values).items():
        words = re.sub("_", " ", name)
        if isinstance(value, dict):
            lines += [(f"{words}, {key}", _shown(part)) for key, part in value.items()]
        else:
            lines.append((words, _shown(value)))
    return lines


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
