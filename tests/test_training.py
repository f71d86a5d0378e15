"""Training: one compiled call for many steps; runs that share a program; failures isolated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import integrator_zoo as zoo
from integrator_zoo.data import planar_data
from integrator_zoo.lab import Job
from integrator_zoo.registry import current
from integrator_zoo.training import advance, begin, first_bad_step, share_out
from integrator_zoo.training.loop import over_pieces

SMALL = "rings:depth=4,steps=60,train_points=64,test_points=64"


def silent(what, share, words):
    pass


def results(specs, seeds, settings=SMALL, progress=silent):
    experiment = current().get("experiment", settings)
    jobs = [Job(zoo.get(spec), seed) for spec in specs for seed in seeds]
    found = list(experiment.run(jobs, progress))
    assert {r.job for r in found} <= set(jobs)  # a result is of the very job that was given
    return {(r.job.rule.spec, r.job.seed): r for r in found}


def test_fit_learns_and_its_loss_is_the_hand_written_loop():
    data = planar_data("rings", 0, 128, 128)
    net = zoo.ResNet(4, integrator=zoo.get("ledger"), rngs=nnx.Rngs(0))
    graph, params = nnx.split(net, nnx.Param)
    optimizer = optax.adam(3e-3)

    @jax.jit
    def step(params, state):
        def loss(params):
            logits = nnx.merge(graph, params)(jnp.asarray(data.train_x))
            return optax.softmax_cross_entropy_with_integer_labels(logits, data.train_y).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    by_hand, state = [], optimizer.init(params)
    for _ in range(20):
        params, state, value = step(params, state)
        by_hand.append(value)
    losses = zoo.fit(net, data.train_x, data.train_y, steps=20)
    np.testing.assert_allclose(losses, by_hand, rtol=1e-4)
    more = zoo.fit(net, data.train_x, data.train_y, steps=300)
    assert more[-1] < 0.1 * losses[0]


def test_fit_refuses_what_cannot_be_trained():
    net = zoo.ResNet(2, integrator=zoo.get("euler"), rngs=nnx.Rngs(0))
    with pytest.raises(zoo.ZooError, match="one label for each point"):
        zoo.fit(net, np.zeros((3, 2)), np.zeros(2, int))


def test_chunks_do_not_matter():
    def loss(w, step):
        return ((w - 3) ** 2).sum() + step * w[0]

    optimizer, gradient = optax.adam(0.1), jax.value_and_grad(loss)
    whole = advance(begin(jnp.zeros(2), optimizer, 10), gradient, optimizer, 10)
    run = begin(jnp.zeros(2), optimizer, 10)
    for until in (3, 4, 10):
        run = advance(run, gradient, optimizer, until)
    np.testing.assert_array_equal(run.losses, whole.losses)
    np.testing.assert_array_equal(run.params, whole.params)


def test_pieces_give_the_gradient_of_their_mean():
    x = jax.random.normal(jax.random.key(0), (4, 5))

    def loss(w, step, piece):
        return (jnp.sin(x[piece] * w) * (step + 1)).sum()

    mean = jax.value_and_grad(lambda w: (jnp.sin(x * w) * 3).sum() / 4)
    of_all, of_two = (over_pieces(loss, n)(jnp.float32(0.7), jnp.int32(2)) for n in (4, 2))
    np.testing.assert_allclose(of_all, mean(jnp.float32(0.7)), rtol=1e-5)
    assert not np.allclose(of_two, of_all, rtol=1e-3)
    np.testing.assert_array_equal(over_pieces(loss, 1)(0.7, 2)[0], loss(0.7, 2, 0))
    one_by_one = over_pieces(loss, 4, together=1)(jnp.float32(0.7), jnp.int32(2))
    np.testing.assert_allclose(one_by_one, of_all, rtol=1e-6)


def test_first_bad_step():
    assert first_bad_step(np.array([1.0, 0.5, 0.2])) is None
    assert first_bad_step(np.array([1.0, np.nan, 0.2])) == 1
    assert first_bad_step(np.array([1.0, 0.5, 2e3])) == 2
    assert first_bad_step(np.array([np.inf, 1.0])) == 0


def test_a_run_does_not_depend_on_what_runs_beside_it():
    alone = results(["ledger"], [1])
    together = results(["euler", "ledger", "ledger:mu=0.5"], range(3))
    one, other = alone["ledger", 1], together["ledger", 1]
    np.testing.assert_array_equal(one.arrays["loss"], other.arrays["loss"])
    np.testing.assert_array_equal(one.arrays["nodes"], other.arrays["nodes"])
    assert not np.array_equal(one.arrays["loss"], together["ledger:mu=0.5", 1].arrays["loss"])
    assert not np.array_equal(one.arrays["loss"], together["ledger", 2].arrays["loss"])


def test_rules_that_differ_in_a_number_share_a_program():
    jobs = [Job(zoo.get(s)) for s in ("ledger", "ledger:mu=0.5", "ledger:mu=0", "euler")]
    (loads,) = share_out(jobs, 1)
    assert [len(load.jobs) for load in loads] == [2, 1, 1]
    assert loads[0].traced == ("mu",)
    assert loads[1].traced == ()  # mu=0 is another expression


def test_work_is_shared_out_evenly_and_completely():
    jobs = [Job(zoo.get(s), i) for s in ("euler", "ledger", "diffrax-dopri8") for i in range(3)]
    shares = share_out(jobs, 2)
    assert sorted(str(j) for s in shares for load in s for j in load.jobs) == sorted(map(str, jobs))
    cost = [sum(j.rule.traits.evaluations for load in s for j in load.jobs) for s in shares]
    assert max(cost) - min(cost) <= 14


def test_experiments_of_one_kin_share_programs_and_long_runs_come_first():
    rings, moons, deep = (
        current().get("experiment", name) for name in ("rings", "moons", "rings:depth=64")
    )
    jobs = [
        Job(zoo.get("ledger"), seed, experiment=which)
        for which in (rings, moons, deep)
        for seed in range(2)
    ]
    (loads,) = share_out(jobs, 1, most=1)
    assert [load.jobs[0].experiment for load in loads] == [deep] * 2 + [rings] * 2 + [moons] * 2
    assert len({load.program for load in loads}) == 2
    first, second = share_out(jobs, 2, most=1)
    assert {load.jobs[0].experiment for load in second} == {deep}  # half of the work
    assert len(first) + len(second) == len(jobs)


def test_two_devices_share_a_grid_by_whole_programs_and_both_end_with_short_runs():
    jobs = [
        Job(zoo.get(rule), seed, experiment=current().get("experiment", f"rings:depth={depth}"))
        for depth in (8, 32, 128)
        for rule in ("euler", "ledger")
        for seed in range(3)
    ]
    depths = [[load.jobs[0].experiment.depth for load in s] for s in share_out(jobs, 2, most=1)]
    assert depths == [[128] * 3 + [32] * 3 + [8] * 3] * 2
    programs = [{load.program for load in share} for share in share_out(jobs, 2)]
    assert not programs[0] & programs[1]
    four = [{load.program for load in share} for share in share_out(jobs, 4)]
    assert any(a & b for a in four for b in four if a is not b)  # the control: one must be cut


def test_a_sweep_gives_the_same_runs_as_one_experiment_at_a_time(tmp_path):
    from integrator_zoo.runs import Store, perform

    small = {"depth": 3, "steps": 30, "train_points": 32, "test_points": 32}
    names = ("rings", "moons")
    family = [current().get("experiment", name).with_options(small) for name in names]
    rules = [zoo.get("ledger"), zoo.get("ledger:mu=0.5")]
    together = perform(family, rules, [0, 1], Store(tmp_path / "together"))
    assert [record.config["experiment"] for record in together[::4]] == list(names)
    alone = perform(family[1], rules, [0, 1], Store(tmp_path / "alone"))
    for one, other in zip(together[4:8], alone, strict=True):
        assert one.config == other.config
        np.testing.assert_array_equal(one.arrays["loss"], other.arrays["loss"])
        weights = [name for name in one.arrays if name.startswith("weights/")]
        assert len(weights) == 6
        for name in weights:
            np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
    assert not np.array_equal(together[0].arrays["loss"], together[4].arrays["loss"])


def test_no_device_idles_while_another_has_work_waiting(monkeypatch):
    """Control of the sharing: with everything in one share, the other device takes its part."""
    from integrator_zoo.lab import Result
    from integrator_zoo.training import fleet

    def one_share(jobs, devices, traced, most):
        loads = [fleet.Load(job.rule, (job,), ()) for job in jobs]
        return [loads] + [[] for _ in range(devices - 1)]

    def work(load, tick):
        import time

        time.sleep(0.2)
        device = jnp.zeros(1).device
        yield Result(load.jobs[0], "ok", {}, facts={"device": str(device)})

    monkeypatch.setattr(fleet, "share_out", one_share)
    jobs = [Job(zoo.get("euler"), seed) for seed in range(6)]
    done = list(fleet.run_fleet(jobs, work, silent))
    assert sorted(result.job.seed for result in done) == list(range(6))
    assert len({result.facts["device"] for result in done}) == len(jax.local_devices()) == 2


def test_a_broken_rule_fails_alone(scratch_registry):
    @zoo.register
    @zoo.integrator("shifty", equation="x", reference="a test", order=1)
    class Shifty(zoo.Integrator):
        def step(self, state, field, at, params):
            return (state, state)

    found = results(["euler", "shifty"], [0])
    assert found["euler", 0].status == "ok"
    assert found["shifty", 0].status == "failed"
    reason = found["shifty", 0].reason
    assert "integrator 'shifty': step() changed the structure" in reason
    assert "from an array to (an array, an array)" in reason


def test_a_bug_in_a_rule_is_placed(tmp_path, scratch_registry):
    """A wrong shape is called that also where options are traced; others name file and line."""
    source = (
        "import numpy as np\n"
        "from integrator_zoo import Integrator, integrator, option\n"
        "@integrator('bug', equation='x', reference='a test', order=1)\n"
        "class Bug(Integrator):\n"
        "    gain: float = option(1.0, 'a gain')\n"
        "    def step(self, state, field, at, params):\n"
        "        return {}\n"
    )
    said = {}
    for line in ("state.sum() * self.gain", "stat", "np.tanh(state)", "None"):
        scratch_registry.entries["integrator"].pop("bug", None)
        file = tmp_path / f"bug{len(said)}.py"
        file.write_text(source.format(line))
        scratch_registry.load_file(file)
        said[line] = results(["bug"], [0])["bug", 0].reason
    assert (
        "changed a leaf of the state, from float32[2,64] to float32[]"
        in said["state.sum() * self.gain"]
    )
    assert "NameError: name 'stat' is not defined  (bug1.py:7: return stat)" in said["stat"]
    assert "jnp.where instead of `if`" in said["np.tanh(state)"]
    assert "is a return missing?" in said["None"]


def test_a_diverging_run_says_where():
    found = results(["euler"], [0], SMALL + ",lr=1e6")["euler", 0]
    assert found.status == "diverged"
    assert "at step 1 " in found.reason
    assert found.metrics["first_bad_step"] == 1


def test_an_interrupt_stops_the_workers_and_keeps_what_was_yielded():
    class Interrupt:
        calls = 0

        def __call__(self, what, share, words):
            self.calls += 1
            if self.calls == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        results(["euler", "ledger"], range(2), progress=Interrupt())


@pytest.mark.parametrize("name", ["rings", "moons", "spirals"])
def test_planar_data(name):
    data = planar_data(name, 0)
    assert data.train_x.shape == (1024, 2)
    assert data.test_x.shape == (2048, 2)
    assert data.train_x.dtype == np.float32
    assert data.train_y.mean() == data.test_y.mean() == 0.5
    assert planar_data(name, 0).digest() == data.digest()
    assert planar_data(name, 1).digest() != data.digest()
    radius = np.linalg.norm(data.test_x, axis=1)
    if name == "rings":
        assert radius[data.test_y == 0].max() < 0.9 < 1.1 < radius[data.test_y == 1].min()
    elif name == "moons":
        assert np.abs(data.test_x.mean(0)).max() < 1e-5
    else:
        assert data.test_x.std(0).mean() == pytest.approx(0.9, abs=1e-4)


def test_planar_data_refuses():
    with pytest.raises(zoo.ZooError, match="Did you mean 'rings'"):
        planar_data("ringz", 0)
    with pytest.raises(zoo.ZooError, match="equal classes"):
        planar_data("rings", 0, 3)
