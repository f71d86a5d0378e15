"""The command, as a user runs it: one process a test where the process matters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

KEPLER = ("--set", "orbits=0.2")
RINGS = ("--set", "depth=2", "--set", "steps=40", "--seeds", "2")


def zoo(*words, cwd, **options):
    command = [sys.executable, "-c", "from integrator_zoo.cli import main; main()", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, **options)


def strict(text):
    """JSON as the standard has it: NaN and Infinity are errors."""

    def refuse(constant):
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "rings", "-i", "ledgr"], "Did you mean 'ledger'"),
        (["compare", "rings", "-i", "ledger:nu=1"], "Did you mean 'mu'"),
        (["compare", "rings", "-i", "ledger:mu=2"], "outside [0, 1)"),
        (["compare", "rings", "-i", "ledger:mu=abc"], "mu=abc is not a float"),
        (["compare", "rings", "--set", "depth=0"], "depth=0 is outside [1, inf)"),
        (["compare", "rings", "--seeds", "0"], "--seeds 0: at least one seed"),
        (["compare", "kepler", "--set", "dt=-0.1"], "dt=-0.1 is outside (0, inf)"),
        (["compare", "kepler", "--set", "dt=1e-9"], "Give a larger dt"),
        (["compare", "kepler", "--set", "vy=3"], "not bound"),
        (["compare", "rings", "--set", "dpth=3"], "Did you mean 'depth'"),
        (["compare", "rings", "--set", "depth"], "is not key=value"),
        (["compare", "rings", "--preset", "quik"], "Did you mean 'quick'"),
        (["compare", "rings", "--out", "a-file/runs"], "--out DIR"),
        (["compare", "ringz"], "Did you mean 'rings'"),
        (["compare", "rings", "--plugin", "none.py"], "no plugin file"),
        (["run", "rings"], "takes one integrator"),
        (["run", "rings", "-i", "euler", "--seed", "-1"], "--seed -1"),
        (["report", "runs"], "is not a folder.  Give run folders"),
        (["info", "ledgr"], "Did you mean 'ledger'"),
        (["info"], "Missing argument"),
        (["list", "--jason"], "No such option"),
        (["frobnicate"], "No such command"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, words, said):
    (tmp_path / "a-file").write_text("")
    done = zoo(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("zoo: ")
    assert said in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-file"]


def test_list_and_info(tmp_path):
    rows = strict(zoo("list", "--json", cwd=tmp_path).stdout)
    assert len(rows["integrators"]) >= 17
    assert {"rings", "moons", "spirals", "kepler"} <= {e["name"] for e in rows["experiments"]}
    assert rows["integrators"][0]["distribution"] == "integrator-zoo"
    facts = strict(zoo("info", "ledger", "--json", cwd=tmp_path).stdout)
    assert facts["traits"]["equation"] in zoo("info", "ledger", cwd=tmp_path).stdout
    assert facts["options"][0]["range"] == "[0, 1)"


def test_compare_kepler_twice(tmp_path):
    words = ["compare", "kepler", "-i", "euler", "-i", "leapfrog", *KEPLER]
    first = zoo(*words, "--json", cwd=tmp_path)
    assert first.returncode == 0
    told = strict(first.stdout)
    assert [row["integrator"] for row in told["rows"]] == ["euler", "leapfrog"]
    assert {row["status"] for row in told["rows"]} == {"ok"}
    assert "euler | leapfrog" in told["pairs"]["final_separation"]
    for path in [*told["pictures"], told["report"], *(row["run"] for row in told["rows"])]:
        assert (tmp_path / path).exists()
    again = zoo(*words, cwd=tmp_path)
    assert "2 of 2 runs were finished before" in again.stderr
    assert "euler" in again.stdout
    assert "final separation" in again.stdout


def test_a_diverging_run_is_a_row_and_the_others_stand(tmp_path):
    done = zoo("compare", "rings", *RINGS, "--set", "lr=1e6", "--json", cwd=tmp_path)
    assert done.returncode == 0
    rows = strict(done.stdout)["rows"]
    assert len(rows) == 4
    assert {row["status"] for row in rows} == {"diverged"}
    assert all(row["metrics"]["first_bad_step"] == 1 for row in rows)
    assert "at step 1 " in rows[0]["reason"]


def test_a_broken_plugin_is_named_and_fatal_only_when_strict(tmp_path):
    (tmp_path / "exits.py").write_text("raise SystemExit('leaving')")
    (tmp_path / "shifty.py").write_text(
        "from integrator_zoo import Integrator, integrator\n"
        "@integrator('shifty', equation='x', reference='x', order=1)\n"
        "class Shifty(Integrator):\n"
        "    def step(self, state, field, at, params):\n"
        "        return (state, state)\n"
    )
    plugins = ["--plugin", "exits.py", "--plugin", "shifty.py"]
    words = ["compare", "kepler", *KEPLER, "-i", "euler", "-i", "shifty"]
    done = zoo(*words, *plugins, cwd=tmp_path)
    assert done.returncode == 0
    assert "plugin exits.py" in done.stderr
    assert "SystemExit: leaving" in done.stderr
    assert "shifty, seed 0: failed: integrator 'shifty': step() changed" in done.stderr
    assert zoo(*words, *plugins, "--strict", cwd=tmp_path).returncode == 1
    assert zoo(*words, *plugins[2:], "--strict", cwd=tmp_path).returncode == 1
    assert zoo("list", *plugins[:2], cwd=tmp_path).returncode == 0


def test_an_own_rule_from_a_file_in_a_comparison(tmp_path):
    (tmp_path / "nesterov.py").write_text(
        "from integrator_zoo import Moving, MovingIntegrator, integrator, option\n"
        "@integrator('nesterov', equation='x', reference='Nesterov (1983)', order=1)\n"
        "class Nesterov(MovingIntegrator):\n"
        "    '''Nesterov.'''\n"
        "    mu: float = option(0.9, 'memory', low=0.0, below=1.0)\n"
        "    def step(self, state, field, at, params):\n"
        "        ahead = field(state.x + at.h * self.mu * state.v)\n"
        "        v = self.mu * state.v + (1 - self.mu) * ahead\n"
        "        return Moving(state.x + at.h * v, v)\n"
    )
    done = zoo(
        "compare", "rings", *RINGS, "-i", "euler", "-i", "nesterov:mu=0.8", "--json",
        "--plugin", "nesterov.py", cwd=tmp_path,
    )  # fmt: skip
    rows = strict(done.stdout)["rows"]
    assert [row["status"] for row in rows] == ["ok"] * 4
    assert rows[-1]["integrator"] == "nesterov:mu=0.8"


def test_ctrl_c_is_one_line_130_and_the_next_call_goes_on(tmp_path):
    words = ["compare", "kepler", "--set", "orbits=200", "-i", "euler", "-i", "leapfrog"]
    words += ["-i", "diffrax-dopri8", "-i", "leapfrog-dkd", "-i", "diffrax-tsit5"]
    command = [sys.executable, "-c", "from integrator_zoo.cli import main; main()", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        runs = tmp_path / "runs" / "kepler"
        limit = time.monotonic() + 120
        while not (runs.is_dir() and any(runs.glob("euler*"))) and time.monotonic() < limit:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("zoo: interrupted")
    assert "Traceback" not in said
    assert not list(runs.glob(".*"))
    again = zoo(*words, cwd=tmp_path)
    assert again.returncode == 0
    assert "runs were finished before" in again.stderr
