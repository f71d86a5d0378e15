"""Runge-Kutta references: diffrax's solvers on each sub-update's frozen field x' = F(x)."""

from __future__ import annotations

from typing import ClassVar

from integrator_zoo.contract import Integrator, integrator, option
from integrator_zoo.hookspecs import hookimpl

_KIDGER = "Kidger (2021), On neural differential equations (diffrax)"
SOLVERS = (  # name, diffrax class, order, evaluations of one isolated step, source
    ("euler", "Euler", 1, 1, "Euler (1768)"),
    ("heun", "Heun", 2, 2, "Heun (1900)"),
    ("midpoint", "Midpoint", 2, 2, "Runge (1895)"),
    ("ralston", "Ralston", 2, 2, "Ralston (1962)"),
    ("bosh3", "Bosh3", 3, 4, "Bogacki, Shampine (1989)"),
    ("tsit5", "Tsit5", 5, 7, "Tsitouras (2011)"),
    ("dopri5", "Dopri5", 5, 7, "Dormand, Prince (1980)"),
    ("dopri8", "Dopri8", 8, 14, "Prince, Dormand (1981)"),
)


def _term(field):
    import diffrax

    return diffrax.ODETerm(lambda t, y, args: field(y))


class FixedStep(Integrator):
    """One step of a diffrax solver. The field is new at every sub-update, so nothing is reused."""

    solver: ClassVar[str]

    def step(self, state, field, at, params):
        import diffrax
        import jax.numpy as jnp

        solver, term = getattr(diffrax, self.solver)(), _term(field)
        # The field does not depend on t: each step starts its own clock, in a real dtype.
        t0, t1 = jnp.zeros((), state.dtype), jnp.asarray(at.h, state.dtype)
        memory = solver.init(term, t0, t1, state, None)
        after, *_ = solver.step(term, t0, t1, state, None, memory, made_jump=True)
        return after.astype(state.dtype)


def _fixed(name: str, solver: str, order: int, evaluations: int, source: str) -> type[Integrator]:
    doc = (
        f"One step of diffrax's `{solver}` on x' = F(x). Order {order}, "
        f"{evaluations} evaluation{'s' if evaluations > 1 else ''} of the sub-update's own field."
    )
    cls = type(solver, (FixedStep,), {"__doc__": doc, "__module__": __name__, "solver": solver})
    return integrator(
        f"diffrax-{name}",
        equation=f"x' = one {solver} step of size h of x' = F(x)",
        reference=f"{source}; {_KIDGER}",
        order=order,
        evaluations=evaluations,
    )(cls)


@integrator(
    "diffrax-adaptive",
    equation="x' = flow of x' = F(x) over time h, to the tolerance",
    reference=f"Tsitouras (2011), PI-controlled steps; {_KIDGER}",
    order=None,
    evaluations=None,
)
class DiffraxAdaptive(Integrator):
    """The exact flow of each sub-update's frozen field, to a tolerance (Tsit5, PID control).

    The number of evaluations varies with the field. Adaptive steps give up symplecticity and
    time reversal. Where `max_steps` do not suffice the position becomes NaN, and the run is
    reported as diverged instead of being wrong.
    """

    rtol: float = option(1e-4, "relative tolerance", above=0.0, below=1.0)
    atol: float = option(1e-6, "absolute tolerance", above=0.0)
    max_steps: int = option(512, "most inner steps for one sub-update", low=1)

    def step(self, state, field, at, params):
        import diffrax
        import jax.numpy as jnp

        # Half precision is integrated in float32, to no finer a tolerance than the field has.
        precise = jnp.promote_types(state.dtype, jnp.float32)
        rtol = jnp.maximum(self.rtol, 4 * float(jnp.finfo(state.dtype).eps))
        solution = diffrax.diffeqsolve(
            _term(lambda y: field(y.astype(state.dtype)).astype(precise)),
            diffrax.Tsit5(),
            t0=jnp.zeros((), precise),
            t1=jnp.asarray(at.h, precise),
            dt0=None,
            y0=state.astype(precise),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=self.atol),
            max_steps=self.max_steps,
            throw=False,
        )
        reached = solution.result == diffrax.RESULTS.successful
        assert solution.ys is not None
        return jnp.where(reached, solution.ys[0], jnp.nan).astype(state.dtype)


@hookimpl
def zoo_integrators():
    return [*(_fixed(*row) for row in SOLVERS), DiffraxAdaptive]
