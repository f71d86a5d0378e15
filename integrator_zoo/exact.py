"""Exact reversal: fixed point that loses nothing, at the price that information theory asks.

A state of integers undoes `x += y` by `x -= y`, bit for bit, as long as y is computed anew from
what is there. Friction is different: v *= n/d maps d/n integers onto one, and log2(d/n) bits are
gone. They are kept in a *remainder word* B beside each velocity. Division by d leaves a remainder,
which is appended to B as a digit of base d; then a digit of base n is taken out of B and becomes
the low digit of the new velocity:

    q, r = divmod(v, d);  B = B d + r;  B, s = divmod(B, n);  v' = q n + s

Every line can be undone, so the pair (v, B) goes to its image one to one, and B grows by the
factor d/n. Before B d could exceed 32 bits, its low 16 go onto a stack. When that happens follows
from n and d alone, so it is known before anything runs. (An asymmetric numeral system, whose
"message" is the lost digits; the first such multiplication: Maclaurin, Duvenaud, Adams 2015.)
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .contract import Drift, Fade, Integrator, Kick, Moving, MovingIntegrator
from .errors import ZooError
from .memory import REMEDY, Exact, require_inverse

if TYPE_CHECKING:
    from .course import Course
    from .reversible import Place

WORD, SPILL = 32, 16
"""Bits of a remainder word, and bits that are pushed on the stack at once."""
LARGEST_DENOMINATOR = 2 ** (WORD - SPILL)
"""What is left of a word after a spill, times the denominator, must fit a word."""
FRACTION = {32: 22, 64: 48}
"""Binary digits after the point, by the bits of the integers."""


class Code(NamedTuple):
    """A state in fixed point."""

    x: Array
    """Position times 2^fraction, int32 (int64 for 64-bit positions)."""
    v: Array
    """Velocity times 2^fraction."""
    remainder: Array | None
    """The remainder words B, uint32, one for each velocity; None for a rule without friction."""
    stack: Array | None
    """Spilled words, uint16 [words, ...]; only the first `top` of them mean anything."""
    top: Array
    """Number of words on the stack."""
    fault: Array
    """Whether a value ever left the range, or was not a number."""


class Spills(NamedTuple):
    """When the remainder words are spilled: known from n, d and the number of fades."""

    due: np.ndarray
    """[fades]: whether to push 16 bits before this fade."""
    words: int
    """How many 16-bit words the stack holds in the end."""

    @property
    def bits(self) -> int:
        """Bits an element that a whole walk keeps: the stack, and the remainder word."""
        return SPILL * self.words + WORD


def spills(keep: Fraction, fades: int) -> Spills:
    """The schedule for `fades` multiplications by `keep` = n/d, from the largest B there can be."""
    n, d = keep.numerator, keep.denominator
    due, largest = np.zeros(fades, bool), 0
    for i in range(fades):
        if largest * d + d - 1 >= 2**WORD:
            due[i], largest = True, largest >> SPILL
        largest = (largest * d + d - 1) // n
    return Spills(due, int(due.sum()))


def bound(keep: Fraction | float, fades: int) -> float:
    """Bits an element that friction forgets: fades times log2(1 / keep)."""
    return fades * math.log2(1 / keep)


def rational(keep: Any, name: str) -> Fraction:
    """The friction factor as n/d with d at most 2^16: what its decimals say, or the nearest.

    Raises:
        ZooError: it is a traced value, or so small that it is 0.
    """
    if not isinstance(keep, (float, int)):
        raise ZooError(
            f"integrator {name!r}: memory='exact' lays out its words before it runs and needs a "
            "plain number as friction, not a traced value.",
            "Give the option in the spec.",
        )
    found = Fraction(str(keep)).limit_denominator(LARGEST_DENOMINATOR)
    if not 0 < found <= 1:
        raise ZooError(
            f"integrator {name!r}: a velocity times {keep:g} cannot be undone.",
            f"{REMEDY} Factors from 1/{LARGEST_DENOMINATOR} to 1 can.",
        )
    return found


class FixedPoint:
    """The tape of integers: carries out a rule's `moves`, and takes them back bit for bit.

    The field is evaluated on the decoded position behind optimisation barriers, so that both
    directions run the same instructions; that it came back is checked all the same.

    Raises:
        ZooError: the rule has no exact moves, or cannot be undone.
    """

    def __init__(self, course: Course, mode: Exact, dtype: Any) -> None:
        rule = course.rule
        require_inverse(rule)
        moves = rule.moves(1.0) if isinstance(rule, MovingIntegrator) else ()
        if not moves:
            raise ZooError(
                f"integrator {rule.spec!r} does not say how to move in exact integers.",
                "Use memory='reversible' or 'remat', or let it define moves().",
            )
        self.course = course
        bits = 64 if jnp.finfo(dtype).bits == 64 else 32
        self.dtype, self.real = dtype, jnp.float64 if bits == 64 else jnp.float32
        self.integer = jnp.int64 if bits == 64 else jnp.int32
        self.fraction = mode.fraction or FRACTION[bits]
        if self.fraction > bits - 4:
            raise ZooError(
                f"fraction={self.fraction}: {bits}-bit words leave no room before the point.",
                f"Give at most {bits - 4}.",
            )
        self.unit = 2.0**-self.fraction
        self.limit = 2.0 ** (bits - 1) * (1 - 2.0**-10)
        fades = [rational(move.by, rule.name) for move in moves if isinstance(move, Fade)]
        if len(fades) > 1:
            raise ZooError(f"integrator {rule.spec!r} fades twice in a step.", REMEDY)
        self.keep = fades[0] if fades and fades[0] < 1 else None
        self.spills = spills(self.keep, course.count) if self.keep else None
        self.rows = None
        if self.spills and self.spills.words:
            self.rows = jnp.asarray(self.spills.due.reshape(course.depth, len(course.parts)))

    @property
    def reach(self) -> float:
        """The largest magnitude that a position or velocity may have."""
        return self.limit * self.unit

    def encode(self, state: Any) -> Code:
        (x, ok_x), (v, ok_v) = self._integers(state.x), self._integers(state.v)
        remainder = stack = None
        if self.spills:
            remainder = jnp.zeros(v.shape, jnp.uint32)
            if self.spills.words:
                stack = jnp.zeros((self.spills.words, *v.shape), jnp.uint16)
        return Code(x, v, remainder, stack, jnp.int32(0), ~(ok_x & ok_v))

    def decode(self, code: Code) -> Moving:
        return Moving(self._floats(code.x), self._floats(code.v))

    def forward(self, part: int, code: Code, at: Place, row: Any) -> Code:
        for move in self._moves(at):
            code = (
                self._fade(code, row)
                if isinstance(move, Fade)
                else self._shift(part, code, at, move, 1)
            )
        return code

    def backward(self, part: int, code: Code, at: Place, row: Any) -> Code:
        for move in reversed(self._moves(at)):
            code = (
                self._unfade(code, row)
                if isinstance(move, Fade)
                else self._shift(part, code, at, move, -1)
            )
        return code

    def witness(self, code: Code) -> Any:
        return code.x, code.v

    def came_back(self, code: Code, witness: Any) -> Array:
        """Whether the start was recovered bit for bit, and no remainder is left over."""
        same = (code.x == witness[0]).all() & (code.v == witness[1]).all() & (code.top == 0)
        return same if code.remainder is None else same & (code.remainder == 0).all()

    def _moves(self, at: Place) -> tuple[Any, ...]:
        rule: Any = self.course.rule
        return rule.moves(self.course.at(at.index).h)

    def _shift(self, part: int, code: Code, at: Place, move: Kick | Drift, sign: int) -> Code:
        """Add to x or v what the other one gives; sign -1 takes it off again."""
        if isinstance(move, Kick):
            push, ok = self._integers(move.by * self._force(part, code.x, at).astype(self.real))
            v, fits = self._add(code.v, push, sign)
            return code._replace(v=v, fault=code.fault | ~(ok & fits))
        push, ok = self._integers(move.by * (code.v.astype(self.real) * self.unit))
        x, fits = self._add(code.x, push, sign)
        return code._replace(x=x, fault=code.fault | ~(ok & fits))

    def _force(self, part: int, x: Array, at: Place) -> Array:
        x = lax.optimization_barrier(self._floats(x))
        return lax.optimization_barrier(self.course.field(part, at.weights, at.index)(x))

    def _fade(self, code: Code, due: Any) -> Code:
        if self.keep is None:
            return code
        n, d = self.keep.numerator, self.keep.denominator
        word, stack, top = code.remainder, code.stack, code.top
        assert word is not None
        if stack is not None:
            slot = jnp.minimum(top, stack.shape[0] - 1)
            low = (word & (2**SPILL - 1)).astype(jnp.uint16)
            stack = stack.at[slot].set(jnp.where(due, low, stack[slot]))
            word, top = jnp.where(due, word >> SPILL, word), top + due
        q, r = jnp.divmod(code.v, d)
        word = word * jnp.uint32(d) + r.astype(jnp.uint32)
        word, s = jnp.divmod(word, jnp.uint32(n))
        return Code(code.x, q * n + s.astype(self.integer), word, stack, top, code.fault)

    def _unfade(self, code: Code, due: Any) -> Code:
        if self.keep is None:
            return code
        n, d = self.keep.numerator, self.keep.denominator
        word, stack, top = code.remainder, code.stack, code.top
        assert word is not None
        q, s = jnp.divmod(code.v, n)
        word = word * jnp.uint32(n) + s.astype(jnp.uint32)
        word, r = jnp.divmod(word, jnp.uint32(d))
        if stack is not None:  # read, never written: a write here would copy it at every step
            top = top - due
            word = jnp.where(due, (word << SPILL) | stack[top], word)
        return Code(code.x, q * d + r.astype(self.integer), word, stack, top, code.fault)

    def _integers(self, values: Array) -> tuple[Array, Array]:
        """Values in units of the last digit, rounded, and whether they all fit (NaN does not)."""
        scaled = values.astype(self.real) / self.unit
        return jnp.round(scaled).astype(self.integer), (jnp.abs(scaled) < self.limit).all()

    def _add(self, value: Array, push: Array, sign: int) -> tuple[Array, Array]:
        total = value + push if sign > 0 else value - push
        wrapped = (value < 0) != (total < 0)
        wrapped &= (value < 0) == ((push < 0) if sign > 0 else (push >= 0))
        return total, ~wrapped.any()

    def _floats(self, code: Array) -> Array:
        return (code.astype(self.real) * self.unit).astype(self.dtype)


def report_overflow(rule: Integrator, tape: FixedPoint, fault: Array) -> None:
    """Raise where a fault can be seen; inside a compiled function positions are NaN instead.

    Raises:
        ZooError: a value left the range of the words.
    """
    if not isinstance(fault, jax.core.Tracer) and bool(jnp.any(fault)):
        raise ZooError(
            f"integrator {rule.spec!r}: a position, velocity or force left the range of "
            f"+-{tape.reach:.4g} that memory='exact' has with {tape.fraction} binary digits after "
            "the point, or was not a number.",
            f"Give fewer: memory='exact:fraction={max(1, tape.fraction - 4)}'.",
        )
