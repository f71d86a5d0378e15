"""Pictures are drawn from any records: sound, diverged, failed, few, many, oddly named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from integrator_zoo.errors import ZooError
from integrator_zoo.figures import alive, by_integrator, orbit, planar, plane, style
from integrator_zoo.runs.store import Record, Store

STEPS = 200
PERIOD = 2 * np.pi
ODD = [
    "<b>bold</b>",
    "$x_1$ and $y",
    "_hidden",
    "a:b=1e-3,c=\\frac{1}{2}," * 6,
    "tab\there",
    "µ-é-漢",
]
MANY = [f"rule-{i}:option={i / 7:.3f}" for i in range(17)]


def record(
    root: Path, spec: str, seed: int, status: str, metrics: Any, arrays: Any, depth: int = 8
) -> Record:
    config = {
        "experiment": "made",
        "settings": {"depth": depth},
        "integrator": {"spec": spec},
        "seed": seed,
    }
    reason = None if status == "ok" else "the loss blew up at step 12 (loss 1e+20)"
    data = {"format": 1, "status": status, "reason": reason, "metrics": metrics}
    facts = {"period": PERIOD}
    return Store(root).write(config, {**data, "facts": facts, "seconds": {}}, arrays)


def orbit_record(root: Path, spec: str, *, growth: float = 0.0, status: str = "ok") -> Record:
    """A circle that grows by exp(growth * t); a diverged one ends in infinities and NaN."""
    if status == "failed":
        return record(root, spec, 0, status, {}, {})
    times = np.linspace(0, 3 * PERIOD, STEPS)
    exact = np.stack([np.cos(times), np.sin(times)], 1)
    x = exact * np.exp(growth * times)[:, None]
    deviation = 1e-5 * (np.exp(growth * times) - 1) + 1e-6 * np.sin(times)
    if status == "diverged":
        x[120:], deviation[120:] = 1e200, np.inf
        x[150:], deviation[150:] = np.nan, np.nan
    steps = 0.5 ** np.arange(12)
    errors = np.where(steps > 1e-3, 0.1 * steps**2, np.nan)
    errors[5] = 0.0
    metrics = {"observed_order": 2.0 if status == "ok" else None}
    metrics["farthest_reach"] = float(np.nanmax(np.abs(x))) if status == "ok" else None
    arrays = {"times": times, "x": x, "exact": exact, "energy_deviation": deviation}
    return record(
        root, spec, 0, status, metrics, {**arrays, "order_steps": steps, "order_errors": errors}
    )


def planar_record(
    root: Path, spec: str, seed: int = 0, status: str = "ok", depth: int = 8
) -> Record:
    """A disk in an annulus and a round decision; a diverged one is NaN from some step on."""
    if status == "failed":
        return record(root, spec, seed, status, {}, {}, depth)
    rng = np.random.default_rng(seed)
    labels = np.arange(40) % 2
    start = rng.normal(size=(40, 2))
    start *= ((0.3 + labels) / np.linalg.norm(start, axis=1))[:, None]
    nodes = start + np.linspace(0, 1, 9)[:, None, None] * rng.normal(size=(9, 1, 2))
    velocity = np.diff(nodes, axis=0, append=nodes[-1:])
    axis = np.linspace(-2, 2, 20)
    field = np.hypot(*np.meshgrid(axis, axis)) - 0.8
    loss, accuracy = np.exp(-0.1 * np.arange(50.0)), np.linspace(0.5, 0.99 + 0.003 * seed, 6)
    if status == "diverged":
        loss[30:], nodes[4:], field[:] = np.nan, np.inf, np.nan
        loss[29] = 1e30
    metrics = {"test_accuracy": accuracy[-1] if status == "ok" else None}
    metrics |= {"path_length": 3.21, "turning_angle_degrees": 45.6}
    arrays = {"nodes": nodes, "test_labels": labels, "decision": field, "decision_axis": axis}
    arrays |= {"accuracy_by_step": accuracy, "curve_steps": np.linspace(0, 500, 6).astype(int)}
    arrays |= {"loss": loss, "loss_steps": 10 * np.arange(len(loss))}
    arrays |= {"velocity": velocity}
    arrays |= {"kinetic_energy_by_node": np.linspace(0, 1, 9)}
    film = np.linspace(0.5, 1, 3)[:, None, None]
    arrays |= {"film_steps": np.array([0, 100, 500]), "film_labels": labels[:10]}
    arrays |= {"film_decision": film * field, "film_nodes": film[..., None] * nodes[:, :10]}
    return record(root, spec, seed, status, metrics, arrays, depth)


def assert_drawn(paths: list[Path], names: set[str]) -> None:
    assert {path.name for path in paths} == names
    for path in paths:
        pixels = imread(path)[..., :3]
        assert min(pixels.shape[:2]) > 200
        assert pixels.std() > 0.02, f"{path.name} is blank"
    left_behind = {path.name for path in paths[0].parent.iterdir()} - names
    assert not left_behind


ORBIT = {"orbits.png", "order.png"}
PLANAR = {
    f"{name}.png"
    for name in ("accuracy", "decision", "trajectories", "layers", "training", "ledger")
}


def texts(figure: Any) -> str:
    figure.canvas.draw()
    return "\n".join(found.get_text() for found in figure.findobj(mpl.text.Text)).replace("\n", " ")


SETS = pytest.mark.parametrize(
    ("specs", "dark"), [(["one"], False), (ODD, True), (MANY, False)], ids=["one", "odd", "many"]
)


@SETS
def test_orbit_pictures_of_any_set(tmp_path, specs, dark):
    runs = [orbit_record(tmp_path, spec, growth=0.01 * i) for i, spec in enumerate(specs)]
    assert_drawn(orbit.draw_all(runs, tmp_path / "pictures", dark=dark), ORBIT)


@SETS
def test_planar_pictures_of_any_set(tmp_path, specs, dark):
    seeds = (0,) if dark else (0, 1)
    runs = [planar_record(tmp_path, spec, seed) for spec in specs for seed in seeds]
    assert_drawn(planar.draw_all(runs, tmp_path / "pictures", dark=dark), PLANAR)


@pytest.mark.parametrize("sound", [True, False], ids=["beside a sound one", "alone"])
def test_lost_runs_are_drawn_as_far_as_they_went(tmp_path, sound):
    stati = ["diverged", "failed", *["ok"] * sound]
    runs = [orbit_record(tmp_path, f"is-{status}", status=status) for status in stati]
    assert_drawn(orbit.draw_all(runs, tmp_path / "orbit"), ORBIT)
    runs = [planar_record(tmp_path, f"is-{status}", 0, status) for status in stati]
    assert_drawn(planar.draw_all(runs, tmp_path / "planar"), PLANAR)


def test_no_records_no_pictures(tmp_path):
    assert orbit.draw_all([], tmp_path) == planar.draw_all([], tmp_path) == []


def test_orbit_panels_say_what_happened(tmp_path):
    runs = [
        orbit_record(tmp_path, "stays"),
        orbit_record(tmp_path, "leaves", growth=0.2),
        orbit_record(tmp_path, "explodes", status="diverged"),
        orbit_record(tmp_path, "breaks", status="failed"),
    ]
    by_spec = {run.integrator: run for run in runs}
    with style.theme():
        figure = orbit.orbits(by_spec, style.looks(by_spec))
    said = texts(figure)
    assert len(figure.axes) == 5  # four panels and the energy
    assert "farthest reach 1.000" in said
    assert f"goes out to {runs[1].metrics['farthest_reach']:.4g}" in said
    assert "diverged: the loss blew up" in said
    assert "failed: the loss blew up" in said
    for ax in figure.axes[:3]:  # the exact orbit has radius 1
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        assert right - left == pytest.approx(high - low)
        assert 2 < right - left <= 2 * orbit.VIEW + 1e-9
    width, height = figure.get_size_inches()
    place = figure.axes[0].get_position()
    assert place.width * width == pytest.approx(place.height * height)  # aspect


def test_energy_is_on_a_log_axis_and_ends_where_the_run_was_lost(tmp_path):
    runs = {
        "sound": orbit_record(tmp_path, "sound"),
        "lost": orbit_record(tmp_path, "lost", growth=0.01, status="diverged"),
        "broken": orbit_record(tmp_path, "broken", status="failed"),
    }
    with style.theme():
        figure = orbit.orbits(runs, style.looks(runs))
    ax, said = figure.axes[-1], texts(figure)
    curves = [line for line in ax.lines if len(line.get_xdata()) > 1]
    ends = [max(curve.get_xdata()) for curve in curves]
    assert ax.get_yscale() == "log"
    assert "time (orbits)" in said
    assert "lost (diverged)" in said
    assert "nothing was recorded: broken" in said
    assert ends[0] == pytest.approx(3.0)
    assert ends[1] == pytest.approx(3.0 * 119 / (STEPS - 1))
    assert all(np.all(curve.get_ydata() > 0) for curve in curves)


def test_order_shows_slope_triangle_and_leaves_out_what_was_not_measured(tmp_path):
    runs = {
        spec: orbit_record(tmp_path, spec, status=status)
        for spec, status in (("second", "ok"), ("none", "diverged"))
    }
    with style.theme():
        figure = orbit.order(runs, style.looks(runs))
    ax, said = figure.axes[0], texts(figure)
    assert "2.00, second" in said
    assert "none, none" in said
    assert len(ax.lines) == 2
    assert len(ax.lines[0].get_xdata()) == 9  # of 12: two below 1e-3 are NaN, one is zero
    assert len(ax.patches) == 1
    corner = ax.patches[0].get_xy()
    slope = np.log(corner[2, 1] / corner[1, 1]) / np.log(corner[1, 0] / corner[0, 0])
    assert slope == pytest.approx(2.0)


def test_accuracy_shows_every_seed_the_mean_and_the_lost(tmp_path):
    runs = by_integrator(
        [planar_record(tmp_path, "good", seed) for seed in (2, 0, 1)]
        + [planar_record(tmp_path, "half", 0), planar_record(tmp_path, "half", 1, "diverged")]
        + [planar_record(tmp_path, "bad", seed, "failed") for seed in (0, 1)]
    )
    assert [run.seed for run in runs["good"]] == [0, 1, 2]
    with style.theme():
        figure = planar.accuracy(runs, style.looks(runs))
    ax, said = figure.axes[0], texts(figure)
    seeds = [len(found.get_offsets()) for found in ax.collections]
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert seeds == [3, 1]
    assert "99.30 %" in said
    assert "99.00 %, 1 diverged" in said
    assert "2 failed" in said
    assert len(crosses) == 3
    assert ax.get_xlim()[0] > 95
    assert ax.get_xlim()[1] > 100


def test_decision_has_zero_contour_points_and_the_first_sound_seed(tmp_path):
    runs = by_integrator(
        [planar_record(tmp_path, "a", 0, "diverged"), planar_record(tmp_path, "a", 3)]
        + [planar_record(tmp_path, "b", seed) for seed in (0, 1)]
        + [planar_record(tmp_path, "c", 0, "diverged")]
    )
    with style.theme():
        figure = plane.decision(runs, style.looks(runs))
    said = texts(figure)
    assert len(figure.axes) == 4  # three panels and the colour bar
    assert [len(ax.images) for ax in figure.axes[:3]] == [1, 1, 0]
    contour, *points = figure.axes[0].collections
    radius = np.linalg.norm(contour.get_paths()[0].vertices, axis=1)
    assert radius == pytest.approx(0.8, abs=0.02)
    assert sum(len(part.get_offsets()) for part in points) == 40
    assert "accuracy 99.90%" in said
    assert "seed 3" in said
    assert "accuracy 99.00%" in said
    assert "diverged: the loss blew up" in said


def test_trajectories_run_from_input_to_output_in_class_colours(tmp_path):
    runs = by_integrator([planar_record(tmp_path, "a")])
    nodes = runs["a"][0].arrays["nodes"]
    with style.theme():
        figure = plane.trajectories(runs, style.looks(runs))
    lines, starts, ends = figure.axes[0].collections[:3]
    way = lines.get_segments()[0]
    assert np.allclose(way, nodes[:, 0])
    assert np.allclose(starts.get_offsets()[0], nodes[0, 0])
    assert np.allclose(ends.get_offsets()[0], nodes[-1, 0])
    assert len(lines.get_segments()) == 20
    assert lines.get_color()[0][:3] == pytest.approx(to_rgb(style.CLASSES[0]))
    assert "path 3.2, turn 46°/layer" in texts(figure)


def test_training_bands_span_the_seeds_and_lost_runs_end_in_a_cross(tmp_path):
    runs = by_integrator(
        [planar_record(tmp_path, "a", seed) for seed in (0, 1, 2)]
        + [planar_record(tmp_path, "b", 0, "diverged"), planar_record(tmp_path, "c", 0, "failed")]
    )
    with style.theme():
        figure = planar.training(runs, style.looks(runs))
    loss, accuracy = figure.axes
    assert loss.get_yscale() == "log"
    assert len(accuracy.collections) == 1
    band = accuracy.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(99.6)
    assert accuracy.lines[0].get_ydata()[-1] == pytest.approx(99.3)
    assert [line.get_marker() for line in loss.lines].count("X") == 1
    assert loss.get_ylim()[1] < 1e6  # the explosion does not squeeze the others
    said = texts(figure)
    assert "b (1 of 1 lost)" in said
    assert "nothing was recorded: c" in said


def test_colours_are_stable_and_distinct():
    alone = {spec: style.looks([spec])[spec].color for spec in ["euler", "leapfrog", "ledger"]}
    together = style.looks(["ledger", "euler", "leapfrog"])
    assert {spec: together[spec].color for spec in alone} == alone
    many = style.looks(MANY)
    assert len({look.color for look in many.values()}) == len(MANY)
    assert style.looks(reversed(MANY)) == many
    crowd = style.looks([*MANY, *ODD, "a", "b", "c"])
    assert len({(look.color, look.dashes) for look in crowd.values()}) == len(crowd)


def test_the_zoos_own_integrators_never_share_a_wish():
    from integrator_zoo import registry

    ours = list(registry.current().entries["integrator"])
    together = style.looks(ours)
    for spec in ours:
        assert style.looks([spec])[spec].color == together[spec].color, spec


def test_dark_colours_are_readable_on_their_ground():
    for look in style.looks(MANY, dark=True).values():
        assert np.dot(to_rgb(look.color), (0.2126, 0.7152, 0.0722)) >= 0.36


def test_drawing_leaves_the_users_plotting_state_alone(tmp_path):
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    orbit.draw_all([orbit_record(tmp_path, "a")], tmp_path / "pictures", dark=True)
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def test_names_are_shown_as_they_are_written():
    assert style.plain("$a$_<b>\n") == r"\$a\$_<b>"
    wrapped = style.plain("ledger:mu=0.25,gain=2", 15)
    assert wrapped == "ledger:mu=0.25,\ngain=2"
    assert all(len(line) <= 12 for line in style.plain("x" * 500, 12).split("\n"))


def test_alive_counts_rows_before_the_end():
    assert alive(np.array([1.0, 2.0, np.nan, 4.0])) == 2
    assert alive(np.array([[1.0, 2.0], [3.0, 4.0]])) == 2
    assert alive(np.array([1.0, 50.0, 2.0]), 10.0) == 1
    assert alive(np.array([np.inf])) == 0


def test_a_missing_or_broken_array_file_is_a_run_without_arrays(tmp_path):
    run = planar_record(tmp_path, "a")
    (run.folder / "arrays.npz").write_bytes(b"not a zip file")
    gone = orbit_record(tmp_path, "b")
    (gone.folder / "arrays.npz").unlink()
    assert_drawn(planar.draw_all([run], tmp_path / "planar"), PLANAR - {"ledger.png"})
    assert_drawn(orbit.draw_all([gone], tmp_path / "orbit"), ORBIT)


def test_saving_replaces_in_one_rename_and_says_what_is_wrong(tmp_path):
    with style.theme():
        figure = style.Figure(figsize=(1, 1))
    (tmp_path / "a.png").write_text("old")
    (drawn,) = style.save(figure, tmp_path, "a")
    assert drawn.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ZooError, match="cannot write"):
        style.save(figure, tmp_path / "a.png", "b")


def test_the_manner_of_pictures_is_said_once_around_them(tmp_path):
    runs = [planar_record(tmp_path, "a")]
    with style.manner(dark=True, formats=("png", "svg")):
        drawn = planar.draw_all(runs, tmp_path / "dark")
    light = planar.draw_all(runs, tmp_path / "light")
    assert {path.suffix for path in drawn} == {".png", ".svg"}
    assert all(path.read_text().startswith("<?xml") for path in drawn if path.suffix == ".svg")
    assert {path.suffix for path in light} == {".png"}
    assert imread(drawn[0]).mean() < 0.5 < imread(light[0]).mean()


def test_the_axis_below_a_hundred_is_its_own_inverse_and_spreads_the_end():
    ax = style.Figure().add_subplot()
    style.near_hundred(ax, 50)
    scale = ax.yaxis.get_transform()
    percents = np.array([0, 50, 99, 99.95, 100, 100.5])
    places = scale.transform(percents)
    assert np.all(np.diff(places) > 0)
    assert np.allclose(scale.inverted().transform(places), percents)
    assert places[4] - places[3] > places[2] - places[1] - 1.5  # one point in 2,048 shows


def test_the_ceiling_shows_every_seed_at_its_depth(tmp_path):
    runs = [planar_record(tmp_path, "a", seed, depth=d) for seed in (0, 1) for d in (4, 8)]
    runs.append(planar_record(tmp_path, "b", 0, "diverged"))
    drawn = planar.draw_all(runs, tmp_path / "pictures")
    assert {path.name for path in drawn} == {"ceiling.png", *PLANAR}
    by_spec = by_integrator(runs)
    with style.theme():
        figure = planar.ceiling(by_spec, style.looks(by_spec))
    (ax,) = figure.axes
    dots = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert [list(line.get_ydata()) for line in dots] == [pytest.approx([99.0, 99.3])] * 2
    assert [line.get_marker() for line in ax.lines].count("X") == 1
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["4", "8"]


def test_layers_show_the_same_points_ever_deeper(tmp_path):
    runs = by_integrator([planar_record(tmp_path, "a"), planar_record(tmp_path, "b", 0, "failed")])
    nodes = runs["a"][0].arrays["nodes"]
    with style.theme():
        figure = plane.layers(runs, style.looks(runs))
    assert len(figure.axes) == 2 * plane.STATIONS
    for ax, at in zip(figure.axes[: plane.STATIONS], (0, 2, 4, 6, 8), strict=True):
        first, second = (part.get_offsets() for part in ax.collections)
        assert np.allclose(first, nodes[at, ::2])
        assert np.allclose(second, nodes[at, 1::2])
    assert "failed: the loss blew up" in texts(figure)


def test_the_ledger_draws_velocities_of_the_rules_that_keep_one(tmp_path):
    kept = planar_record(tmp_path, "keeps")
    without = planar_record(tmp_path, "without")
    del without.arrays["velocity"]
    runs = by_integrator([kept, without])
    with style.theme():
        figure = plane.ledger(runs, style.looks(runs))
    panel, foot = figure.axes
    arrows = [part for part in panel.collections if isinstance(part, mpl.quiver.Quiver)]
    assert np.allclose(arrows[0].U[0], kept.arrays["velocity"][1, 0, 0])
    assert np.allclose(foot.lines[0].get_ydata(), np.linspace(0, 1, 9))
    drawn = planar.draw_all([without], tmp_path / "pictures")
    assert "ledger.png" not in {path.name for path in drawn}
