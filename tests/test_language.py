"""Training a language model: the same run however it is interrupted, validated or stored."""

from __future__ import annotations

import dataclasses
import json

import jax
import numpy as np
import pytest
from conftest import ALL

import integrator_zoo as zoo
from integrator_zoo.lab import Job, Session
from integrator_zoo.registry import current
from integrator_zoo.runs import Store, perform
from integrator_zoo.training import checkpoints
from integrator_zoo.training.fleet import share_out
from integrator_zoo.training.recipe import decays

TINY = {
    "corpus": "generated",
    "width": 16,
    "layers": 1,
    "heads": 2,
    "mlp_hidden": 16,
    "context": 8,
    "batch": 8,
    "steps": 40,
    "warmup": 4,
    "peak_lr": 0.01,
    "validate_every": 10,
    "validation_windows": 64,
    "save_every": 10,
}


def experiment(**changes):
    return current().get("experiment", "shakespeare").with_options({**TINY, **changes})


def train(chosen, scratch=None, spec="ledger", tick=lambda share, words: None, **session):
    job = Job(zoo.get(spec), 0, Session(scratch, **session))
    ((load,),) = share_out([job], 1)
    ((_, done),) = chosen.trainer(load).train(tick)
    return done


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, train(experiment(), folder)


def stored(folder):
    """Every array of the last checkpoint."""
    place = folder / f"step-{checkpoints.steps(folder)[-1]:08}"
    import orbax.checkpoint as ocp

    with ocp.PyTreeCheckpointer() as checkpointer:
        return checkpointer.restore((place / "state").resolve())


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name], equal_nan=True), name


@pytest.fixture(scope="module", autouse=True)
def _compile_once(tmp_path_factory):
    """The tests train the same network again and again: its programs are compiled once."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update(names[0], str(tmp_path_factory.mktemp("programs")))
    jax.config.update(names[1], 0.0)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


class Killed(BaseException):
    pass


def interrupted(chosen, folder, at):
    """Train until a tick at step `at`, then die without any farewell."""

    def tick(share, words):
        if words.startswith(f"step {at} "):
            raise Killed

    with pytest.raises(Killed):
        train(chosen, folder, tick=tick)


def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(uninterrupted, tmp_path):
    whole, reference = uninterrupted
    chosen = experiment()
    interrupted(chosen, tmp_path, 20)
    notes = []
    done = train(chosen, tmp_path, note=notes.append)
    assert notes == ["goes on from its checkpoint at step 20"]
    assert_same(stored(whole), stored(tmp_path))
    assert np.array_equal(done.losses, reference.losses)
    assert done.curve == reference.curve
    assert done.best_loss == reference.best_loss
    for step, seen in reference.telemetry.items():
        assert_same(seen, done.telemetry[step])
    other = train(experiment(peak_lr=0.011))  # the control: another run is another one
    assert not np.array_equal(other.losses, reference.losses)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(uninterrupted, tmp_path):
    whole, reference = uninterrupted
    interrupted(experiment(), tmp_path, 20)
    last = tmp_path / f"step-{checkpoints.steps(tmp_path)[-1]:08}"
    victim = max((f for f in last.rglob("*") if f.is_file()), key=lambda f: f.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-7])
    notes = []
    done = train(experiment(), tmp_path, note=notes.append)
    assert len(notes) == 2
    assert "step-00000020 is damaged" in notes[0]
    assert "is cut or changed" in notes[0]
    assert notes[1] == "goes on from its checkpoint at step 10"
    assert np.array_equal(done.losses, reference.losses)
    assert_same(stored(whole), stored(tmp_path))


def test_a_checkpoint_of_another_model_is_refused_by_name(uninterrupted):
    folder, _ = uninterrupted
    with pytest.raises(
        zoo.ZooError, match=r"another model: best.head.kernel is \[16, .*there and \[32, "
    ):
        train(experiment(width=32), folder)


def test_a_half_written_checkpoint_is_not_picked_up(tmp_path):
    checkpoints.save(tmp_path, 3, {"x": np.arange(4.0)}, {"a": 1})
    (tmp_path / ".writing-abc").mkdir()
    found = checkpoints.latest(tmp_path, {"x": np.zeros(4)}, pytest.fail)
    assert found is not None
    assert found[0] == 3
    assert np.array_equal(found[1]["x"], np.arange(4.0))
    for step in (5, 7):
        checkpoints.save(tmp_path, step, {"x": np.arange(4.0)}, {"a": 1})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["step-00000005", "step-00000007"]


def test_how_often_one_validates_changes_no_weight(uninterrupted):
    _, reference = uninterrupted
    rarely = train(experiment(validate_every=40))
    for one, other in zip(
        jax.tree.leaves(reference.params), jax.tree.leaves(rarely.params), strict=True
    ):
        assert np.array_equal(one, other)
    assert set(rarely.curve) < set(reference.curve)


def test_the_evaluation_batch_changes_no_loss(uninterrupted):
    _, reference = uninterrupted
    by_eight = train(experiment(evaluation_batch=8, steps=40))
    for step, value in reference.curve.items():
        assert abs(by_eight.curve[step] - value) < 1e-6


def test_a_run_stopped_early_goes_on_as_if_it_had_not(uninterrupted, tmp_path):
    _, reference = uninterrupted
    assert not train(experiment(stop_at=15), tmp_path).stopped
    done = train(experiment(), tmp_path)
    assert np.array_equal(done.losses, reference.losses)
    assert done.curve == reference.curve


def test_a_run_that_went_further_may_be_repeated_with_an_earlier_stop(uninterrupted, tmp_path):
    _, reference = uninterrupted
    rules, store = [zoo.get("ledger")], Store(tmp_path)
    for stop in (25, 5):
        (record,) = perform(experiment(stop_at=stop), rules, [0], store)
        assert record.status == "ok"
        assert record.metrics["steps"] == stop
        assert checkpoints.about(record.folder / "checkpoint")
    (scratch,) = (tmp_path / ".scratch").iterdir()
    assert checkpoints.steps(scratch) == [0, 5, 20, 25]
    notes = []
    done = train(experiment(), scratch, note=notes.append)
    assert notes == ["goes on from its checkpoint at step 25"]
    assert np.array_equal(done.losses, reference.losses)


def test_out_of_minutes_is_a_stopped_row_and_the_same_command_goes_on(tmp_path):
    chosen, rules, store = experiment(), [zoo.get("euler")], Store(tmp_path)
    (record,) = perform(chosen, rules, [0], store, max_minutes=0)
    assert record.status == "stopped"
    assert "out of minutes at step 0" in str(record.reason)
    (record,) = perform(chosen, rules, [0], store, resume=True)
    assert record.status == "ok"
    assert record.metrics["steps"] == 40
    assert not list((tmp_path / ".scratch").glob("*"))
    with pytest.raises(zoo.ZooError, match="no checkpoint to resume"):
        perform(experiment(steps=41), rules, [0], store, resume=True)


def test_a_diverged_run_keeps_its_row(tmp_path):
    chosen = experiment(peak_lr=1e6, clip=1e9)
    (record,) = perform(chosen, [zoo.get("euler")], [0], Store(tmp_path))
    if record.status == "ok":  # LayerNorm may survive any step: then a finite loss is the row
        assert np.isfinite(record.metrics["final_val_loss"])
    json.loads((record.folder / "record.json").read_text())


def one_of_each_kind():
    """One integrator for each combination of traits that the backbone or the trainer looks at."""
    kinds = {}
    for spec in ALL:
        traits = zoo.get(spec).traits
        kinds.setdefault((traits.dynamics, traits.reads, traits.evaluations is None), spec)
    return sorted(kinds.values())


@pytest.mark.parametrize("spec", one_of_each_kind())
def test_an_integrator_of_each_kind_trains(spec):
    done = train(experiment(steps=20, warmup=2, save_every=0, dropout=0.0, pieces=1), spec=spec)
    assert np.isfinite(done.losses).all()
    assert done.losses[-4:].mean() < done.losses[:4].mean() - 0.2
    assert {name for name in done.telemetry[20] if name.endswith("_norm")} == (
        {f"{name}_norm" for name in _observed(spec)}
    )


def _observed(spec):
    """What a rule lets us observe."""
    import jax.numpy as jnp

    from integrator_zoo.depth import integrate

    passed = integrate(
        zoo.get(spec), lambda _, i, x: -x, (), jnp.ones((2, 3)), depth=1, h=0.1, tied=True,
        collect=True,
    )  # fmt: skip
    return passed.trajectory.observed


def test_decay_goes_by_role():
    from flax import nnx

    net = zoo.GPT(9, 8, 8, 2, 2, 8, integrator=zoo.get("ngpt-lite"), rngs=nnx.Rngs(0))
    leaves = jax.tree.leaves_with_path(decays(nnx.state(net, nnx.Param)))
    named = {jax.tree_util.keystr(path, simple=True, separator="."): on for path, on in leaves}
    assert {
        name.split(".")[-2] if name.endswith("value") else name.split(".")[-1]
        for name, on in named.items()
        if on
    } == {"kernel", "embedding"}
    assert any("bias" in name and not on for name, on in named.items())
    assert any("alpha" in name and not on for name, on in named.items())


def test_seeds_together_are_the_seeds_alone():
    chosen = experiment(steps=10, save_every=0)
    jobs = [Job(zoo.get("euler"), seed) for seed in (0, 1)]
    (load,) = share_out(jobs, 1)[0]
    together = [done.losses for _, done in chosen.trainer(load).train(lambda share, words: None)]
    alone = chosen.trainer(dataclasses.replace(load, jobs=(jobs[1],)))
    ((_, second),) = alone.train(lambda share, words: None)
    assert np.array_equal(together[1], second.losses)
    assert not np.array_equal(together[0], together[1])
