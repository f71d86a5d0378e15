"""Many runs at once: runs that share a program are stacked, and split over the devices.

On CPU each device is one thread of work, so `jax_num_cpu_devices` devices use that many cores.
Within a device the stacked runs are mapped one after another inside the same compiled call:
measured faster than a batched program for small networks, and a run's numbers do not depend on
what runs beside it. On an accelerator they are batched.
"""

from __future__ import annotations

import atexit
import functools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..contract import Integrator, Step, traced_options
from ..errors import one_line
from ..lab import Job, Progress, Result


@dataclass(frozen=True)
class Load:
    """Jobs that share one program, on one device."""

    rule: Integrator
    """Any of their rules: the program is traced with it."""
    jobs: tuple[Job, ...]
    traced: tuple[str, ...]
    """The options in which their rules differ, passed as traced values."""
    program: Any = None
    """Loads of equal program may use what was compiled for one of them."""

    def __str__(self) -> str:
        return ", ".join(dict.fromkeys(job.rule.spec for job in self.jobs))

    def option_arrays(self) -> dict[str, Any]:
        """The traced options, stacked over the jobs: {name: [jobs]}."""
        values = [job.rule.option_values() for job in self.jobs]
        return {name: jnp.asarray([v[name] for v in values]) for name in self.traced}


ADAPTIVE_COST = 40
"""Evaluations a step assumed, for sharing out work, where a rule does not declare a number."""


def share_out(
    jobs: Sequence[Job], devices: int, traced: bool = True, most: int | None = None
) -> list[list[Load]]:
    """Group jobs by program and share them out, a list of loads a device, of equal work.

    The largest programs first, each to the device that has least to do, and on to the next where
    that one's share is full: few programs are compiled for two devices. Within a share the long
    runs come first, so that the short ones even out the end. Work is counted in declared field
    evaluations times the experiment's cost. Rules that differ in a number share a program if
    `traced`, and so do experiments of equal settings. A load holds at most `most` jobs.
    """
    programs: dict[Any, list[Job]] = {}
    for job in jobs:
        programs.setdefault(_program_key(job, traced), []).append(job)
    full = sum(map(cost_of, jobs)) / devices
    work = [0.0] * devices
    shares: list[dict[Any, list[Job]]] = [{} for _ in range(devices)]
    for key, members in sorted(programs.items(), key=lambda item: -sum(map(cost_of, item[1]))):
        device = work.index(min(work))
        for job in members:
            if work[device] + cost_of(job) / 2 > full:
                device = work.index(min(work))
            shares[device].setdefault(key, []).append(job)
            work[device] += cost_of(job)
    return [
        [
            Load(members[0].rule, tuple(members[i : i + (most or len(members))]), key[2], key)
            for key, members in sorted(share.items(), key=lambda item: -cost_of(item[1][0]))
            for i in range(0, len(members), most or len(members))
        ]
        for share in shares
    ]


def cost_of(job: Job) -> float:
    """Work of a job, in field evaluations times the cost that its experiment declares."""
    scale = job.experiment.cost() if job.experiment else 1.0
    return scale * (job.rule.traits.evaluations or ADAPTIVE_COST)


def _program_key(job: Job, traced: bool) -> tuple[Any, ...]:
    """(settings, class of the rule, traced options, the other options): one program each."""
    settings = job.experiment.option_values() if job.experiment else {}
    free = tuple(traced_options(job.rule)) if traced and _traceable(job.rule) else ()
    fixed = tuple((k, v) for k, v in job.rule.option_values().items() if k not in free)
    return tuple(settings.items()), type(job.rule), free, fixed


class Once:
    """Things made once a key and kept, whichever thread asks first: compiled programs."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self._turn = threading.Lock()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for the key; `make()` is called the first time."""
        with self._turn:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


def over_runs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a function of one run to runs stacked along axis 0 of every argument."""
    if jax.default_backend() != "cpu":
        return jax.vmap(function)
    return lambda *stacked: lax.map(lambda one: function(*one), stacked)


def over_runs_sharing(function: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """`over_runs` for a function whose last argument is the same for all runs."""

    def apply(params: Any, options: Any, shared: Any) -> Any:
        return over_runs(lambda p, o: function(p, o, shared))(params, options)

    return apply


def run_fleet(
    jobs: Sequence[Job],
    work: Callable[[Load, Callable[[float, str], None]], Iterator[Result]],
    progress: Progress,
    traced: bool = True,
    most: int | None = None,
) -> Iterator[Result]:
    """Do all jobs, one thread a device, and yield each result as soon as it is there.

    Args:
        jobs: what to do.
        work: work(load, tick) runs one load on the current default device; it calls
            tick(share done, words) often, which raises `Stopped` once the fleet is stopped.
        progress: is told of the whole, from this thread.
        traced: whether rules that differ in a number share a program, that number being traced.
        most: jobs a load, so that results come in time; None for no bound.

    A load that fails gives `failed` results for its jobs; the others go on. An interrupt stops all
    threads at their next tick and is raised; results already yielded stay.
    """
    devices = jax.local_devices()
    shares = [deque(share) for share in share_out(jobs, len(devices), traced, most)]
    loads = [load for share in shares for load in share]
    shares_done = dict.fromkeys(map(id, loads), 0.0)
    weights = {id(load): sum(map(cost_of, load.jobs)) for load in loads}
    results: queue.Queue[Any] = queue.Queue()
    stop, turn = threading.Event(), threading.Lock()

    def next_load(own: deque[Load]) -> Load | None:
        """The next of one's own share; then the last of the longest, so that no core idles."""
        with turn:
            longest = max(shares, key=len)
            return own.popleft() if own else longest.pop() if longest else None

    def serve(own: deque[Load], device: Any) -> None:
        with jax.default_device(device):
            while not stop.is_set() and (load := next_load(own)):
                _serve_load(load, work, results, stop)
        results.put(None)

    threads = [
        threading.Thread(target=serve, args=(share, device), daemon=True)
        for share, device in zip(shares, devices, strict=True)
    ]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            item = results.get()
            if item is None:
                running -= 1
            elif isinstance(item, Result):
                yield item
            else:
                load, share, words = item
                shares_done[id(load)] = share
                done = sum(shares_done[i] * n for i, n in weights.items())
                progress(str(load), done / sum(weights.values()), words)
    finally:
        stop.set()  # after an interrupt the threads end by themselves, at their next tick,
        for thread in filter(threading.Thread.is_alive, threads):
            atexit.register(thread.join)  # an interpreter that exits must not pull jax away


class Stopped(BaseException):
    """Raised inside a worker by its tick when the fleet is stopped."""


def _serve_load(load: Load, work: Any, results: queue.Queue[Any], stop: threading.Event) -> None:
    def tick(share: float, words: str) -> None:
        if stop.is_set():
            raise Stopped
        results.put((load, share, words))

    finished = set()
    try:
        for result in work(load, tick):
            finished.add(result.job)
            results.put(result)
    except Stopped:
        return
    except Exception as error:
        for job in load.jobs:
            if job not in finished:
                results.put(Result(job, "failed", {}, reason=one_line(error, type(job.rule))))
    results.put((load, 1.0, "done"))


@functools.lru_cache(maxsize=256)  # asked once a job; it traces the step
def _traceable(rule: Integrator) -> bool:
    """Whether the rule's step can be traced with its float options as traced values."""
    names = traced_options(rule)
    if not names:
        return True

    def probe(values: dict[str, Any]) -> Any:
        free = rule.with_traced(values)
        x = jnp.zeros((2, 3))
        at = Step(0.0, 1.0, jnp.int32(0), 1, False, 0)
        state = free.init(x, lambda z: z, at)
        return free.position(free.step(state, lambda z: z, at, free.parameters(2)))

    try:
        jax.eval_shape(probe, {name: jnp.asarray(value) for name, value in names.items()})
    except Exception:  # it branches on a value, or is broken: then it says so where it runs
        return False
    return True
