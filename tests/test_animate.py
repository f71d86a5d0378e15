"""Animations: the frames show the recorded numbers; files are held, small, and found."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pytest
from PIL import Image
from test_figures import ODD, orbit_record, planar_record, record
from typer.testing import CliRunner

from integrator_zoo.cli import animate  # noqa: F401 (it adds its commands)
from integrator_zoo.cli.app import app
from integrator_zoo.errors import ZooError
from integrator_zoo.figures import animation, flights, scenes, style
from integrator_zoo.runs.found import find_runs


def rewind_record(root, spec, status="ok"):
    if status == "failed":
        return record(root, spec, 0, status, {}, {})
    rng = np.random.default_rng(0)
    nodes = np.cumsum(rng.normal(size=(9, 10, 2)), 0)
    errors = 1e-7 * 2.0 ** np.arange(8, -1, -1)
    back = nodes + errors[:, None, None]
    if status == "diverged":
        back[:4], errors[:4] = np.inf, np.nan
    arrays = {"nodes": nodes, "nodes_back": back, "error_float32": errors}
    return record(root, spec, 0, status, {"rewind_error_float32": errors[0]}, arrays)


def path_record(root, spec, status="ok"):
    if status == "failed":
        return record(root, spec, 0, status, {}, {})
    lengths = np.outer([1.0, 2.0, 4.0], np.ones(6))
    angles = np.outer([90.0, 60.0, 30.0], np.ones(5))
    arrays = {"telemetry_steps": np.array([0, 20, 40]), "step_length_by_sub_update": lengths}
    arrays |= {"turning_angle_degrees_by_sub_update": angles}
    arrays |= {"validation_steps": np.array([10, 40]), "validation_loss": np.array([3.0, 2.0])}
    if status == "diverged":
        lengths[1:], arrays["validation_loss"][1] = np.nan, np.inf
    return record(root, spec, 0, status, {}, arrays)


MAKERS = {
    "orbits": orbit_record,
    "training": planar_record,
    "depth": planar_record,
    "rewind": rewind_record,
    "path": path_record,
}


def made(name, records, frames=3):
    with style.theme():
        scene = scenes.scene(scenes.ANIMATIONS[name], records)
        drawn = list(animation.draw(dataclasses.replace(scene, frames=frames)))
    return scene, [np.asarray(frame, float) for frame in drawn]


@pytest.mark.parametrize("name", scenes.ANIMATIONS)
def test_a_scene_moves_from_any_set_of_runs(name, tmp_path):
    make = MAKERS[name]
    stati = {"lost": "diverged", "broken": "failed"}
    records = [make(tmp_path, spec) for spec in ODD[:4]]
    records += [make(tmp_path, spec, status=status) for spec, status in stati.items()]
    scene, frames = made(name, records)
    assert scene.frames > 50
    assert min(frames[0].shape[:2]) > 400
    for one, other in itertools.pairwise(frames):
        assert (one != other).any(axis=2).mean() > 1e-4


def test_every_animation_has_a_maker_here():
    assert set(MAKERS) == set(scenes.ANIMATIONS)


def test_points_in_flight_are_where_the_record_has_them(tmp_path):
    run = planar_record(tmp_path, "a")
    with style.theme():
        scene = scenes.scene(scenes.ANIMATIONS["depth"], [run])
    dots = scene.artists[1]
    nodes = run.arrays["nodes"]
    for share, at in ((0.0, nodes[0]), (0.5, nodes[4]), (1.0, nodes[8])):
        scene.update(share)
        assert np.allclose(dots.get_offsets(), at)
    scene.update(1 / 16)  # half a layer: half way along the first move
    assert np.allclose(dots.get_offsets(), (nodes[0] + nodes[1]) / 2)


def test_decision_paths_and_loss_are_those_of_one_step(tmp_path):
    run = planar_record(tmp_path, "a")
    with style.theme():
        scene = scenes.scene(scenes.ANIMATIONS["training"], [run])
    image, *rest = scene.artists
    ends, line, remark = rest[-3:]
    scene.update(0.5)  # the second of three recorded moments
    assert remark.get_text() == "step 100"
    assert np.allclose(image.get_array(), run.arrays["film_decision"][1])
    assert np.allclose(ends.get_offsets(), run.arrays["film_nodes"][1, -1])
    assert line.get_xdata()[-1] == 100
    scene.update(0.0)
    assert np.allclose(image.get_array(), run.arrays["film_decision"][0])


def test_the_rewind_turns_at_the_end_and_misses_as_recorded(tmp_path):
    run = rewind_record(tmp_path, "a")
    with style.theme():
        scene = scenes.scene(scenes.ANIMATIONS["rewind"], [run])
    _, there, _, back, *_ = scene.artists
    scene.update(flights.TURN / 2)
    assert np.allclose(there.get_offsets(), run.arrays["nodes"][4])
    assert not back.get_visible()
    scene.update(1.0)
    assert back.get_visible()
    assert np.allclose(back.get_offsets(), run.arrays["nodes_back"][0])


def test_a_growing_line_holds_what_was_until_then():
    ax = style.Figure().add_subplot()
    (line,), (head,) = ax.plot([1, 2, 3], [4, 5, 6]), ax.plot([3], [6], "o")
    growing = animation.Growing(line, np.array([0.0, 1.0, 2.0]), head)
    growing.until(1.5)
    assert list(line.get_xdata()) == [1, 2]
    assert list(head.get_xdata()) == [2]
    growing.until(9)
    assert list(line.get_ydata()) == [4, 5, 6]


def noise(frames=9):
    """A scene of noise: nothing compresses it."""
    fig = style.Figure(figsize=(1.5, 1.5))
    rng = np.random.default_rng(0)
    image = fig.add_axes((0, 0, 1, 1)).imshow(rng.random((150, 150)))
    return animation.Scene(
        fig, lambda share: image.set_data(rng.random((150, 150))), [image], frames
    )


def test_first_and_last_frames_are_held_and_size_is_kept(tmp_path):
    wide = animation.write(noise(), tmp_path, "wide")
    tight = animation.write(noise(), tmp_path, "tight", most=80_000)
    assert [path.suffix for path in wide] == [".gif", ".webp"]
    assert {path.name for path in tmp_path.iterdir()} == {p.name for p in (*wide, *tight)}
    for path, frames in zip((wide[0], tight[0]), (9, None), strict=True):
        with Image.open(path) as moving:
            durations = []
            for at in range(moving.n_frames):
                moving.seek(at)
                durations.append(moving.info["duration"])
        assert durations[0] == animation.FIRST
        assert durations[-1] == animation.LAST
        assert frames in (None, len(durations))
    assert len(durations) < 9
    assert tight[0].stat().st_size < 80_000 < wide[0].stat().st_size
    (tmp_path / "file").touch()
    with pytest.raises(ZooError, match="cannot write"):
        animation.write(noise(2), tmp_path / "file", "x")


def test_the_command_finds_runs_and_says_what_is_wrong(tmp_path, monkeypatch):
    def zoo(*words):
        return CliRunner().invoke(app, ["animate", *map(str, words)])

    orbits = orbit_record(tmp_path / "one", "a").folder
    orbit_record(tmp_path / "one", "b")
    plain = record(tmp_path / "two", "c", 0, "ok", {}, {"loss": np.ones(3)}).folder
    assert "orbits" in zoo().stdout
    for words, said in {
        ("orbit",): "no animation 'orbit' .*Did you mean 'orbits'",
        ("orbits", tmp_path / "nowhere"): "is not a folder",
        ("orbits", orbits, "-i", "euler"): "not both",
        ("orbits", plain): "a run of made. holds no x and no exact and no times",
        ("training", orbits): "holds no film_decision",
    }.items():
        failed = zoo(*words)
        assert isinstance(failed.exception, ZooError), words
        assert re.search(said, str(failed.exception)), failed.exception
    drawn = []

    def write(scene, folder, stem, progress):
        drawn.append(len(scene.artists))
        (folder / "x").parent.mkdir(parents=True, exist_ok=True)
        (folder / "x.gif").write_bytes(b"12")
        return [folder / "x.gif"]

    monkeypatch.setattr(animation, "write", write)
    done = zoo("orbits", tmp_path / "one", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.exception
    assert drawn == [2 * 2 + 2 + 1]  # trail and planet, energy, the time
    assert "animations/x.gif" in done.stdout


def test_run_folders_are_found_below_a_place(tmp_path):
    folders = {orbit_record(tmp_path, spec).folder for spec in ("a", "b")}
    assert {run.folder for run in find_runs([tmp_path])} == folders
    assert len(find_runs([tmp_path, *folders])) == 2
