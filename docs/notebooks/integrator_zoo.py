# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which integrator is your residual network?
#
# The whole study, block by block, with its mathematics. On two cores it takes about a minute; no GPU is
# needed. Settings are reduced: the full ones are in `zoo compare --preset published`.

# %%
import importlib.metadata
import sys

from packaging.version import Version

NEEDED = {"jax": "0.10", "flax": "0.12.8", "optax": "0.2.8", "diffrax": "0.7.2"}


def installed(name):
    try:
        return Version(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return None


NONE = Version("0")
missing = {n: least for n, least in NEEDED.items() if (installed(n) or NONE) < Version(least)}
if sys.version_info < (3, 11):
    raise SystemExit("Python 3.11 or newer is needed; choose another runtime.")
if missing or installed("integrator-zoo") is None:
    wanted = " ".join(f'"{name}>={least}"' for name, least in missing.items())
    raise SystemExit(
        "On a hosted notebook (Colab, Kaggle), where packages are often older than these:\n"
        f"  1. in a cell of its own:  %pip install -U {wanted} PATH-OR-URL-OF-INTEGRATOR_ZOO\n"
        "  2. restart the runtime (Runtime > Restart session), or the old versions stay loaded\n"
        "  3. run this cell again"
    )
print(f"Python {sys.version.split()[0]},", ", ".join(f"{n} {installed(n)}" for n in NEEDED))

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from flax import nnx

import integrator_zoo as zoo
from integrator_zoo.data import planar_data
from integrator_zoo.figures import style

COLOR = {spec: look.color for spec, look in style.looks(["euler", "leapfrog", "ledger"]).items()}
SMALL = (8, 3.2)

# %% [markdown]
# ## 1. The orbit
#
# A planet obeys $\ddot r = F(r) = -r / |r|^3$. Its energy $E = \tfrac12 |v|^2 - 1/|r|$ is constant.
# **Euler** takes
#
# $$r' = r + h\,v, \qquad v' = v + h\,F(r),$$
#
# and **leapfrog**
#
# $$w = v + \tfrac h2 F(r), \qquad r' = r + h\,w, \qquad v' = w + \tfrac h2 F(r').$$
#
# Both ask for F once a step (leapfrog's closing force is the next opening one). Leapfrog is *symplectic*:
# it preserves the area $dr \wedge dv$, and with it, for exponentially long times, an energy close to $E$.
# Euler stretches that area by $1 + O(h^2)$ at each step: nothing holds the energy.

# %%
planet = zoo.problems.Kepler()
steps = round(20 * planet.period() / 0.02)
fig, (left, right) = plt.subplots(1, 2, figsize=SMALL, layout="constrained")
drift = {}
for spec in ("euler", "leapfrog"):
    found = zoo.problems.solve(zoo.get(spec), planet, h=0.02, steps=steps)
    energy = planet.energy(found.x, found.v)
    deviation = (energy - energy[0]) / abs(energy[0])
    drift[spec] = deviation[-1]
    left.plot(*found.x.T, color=COLOR[spec], lw=0.7, label=spec)
    right.semilogy(found.times, np.abs(deviation) + 1e-12, color=COLOR[spec], lw=0.7)
    print(f"{spec:9} energy at the end {deviation[-1]:+.1e}, largest {np.abs(deviation).max():.1e}")
left.set(aspect="equal", xlabel="x", ylabel="y")
left.legend()
right.set(xlabel="time", ylabel="relative energy deviation")
plt.show()
assert drift["euler"] > 0.5
assert abs(drift["leapfrog"]) < 1e-6

# %% [markdown]
# ## 2. A residual block is one step of Euler
#
# Write layer $l$ of a residual network as $x_{l+1} = x_l + h F_l(x_l)$. This is Euler's step for
# $\dot x = F(x, t)$ with time $t = l h$: depth is time. `ResidualStack` does nothing else, which we check
# against the loop written by hand.

# %%
net = zoo.ResNet(depth=6, integrator=zoo.get("euler"), total_time=6.0, rngs=nnx.Rngs(0))
points = jax.random.normal(jax.random.key(1), (100, 2))
graph, weights = nnx.split(net.stack.parts)
x = points.T  # the planar network keeps features on the first axis
for layer in range(6):
    (branch,) = nnx.merge(graph, jax.tree.map(lambda leaf, i=layer: leaf[i], weights))
    x = x + branch(x)
print("equal:", bool(jnp.allclose(net.stack(points.T), x, atol=1e-6)))
assert jnp.allclose(net.stack(points.T), x, atol=1e-6)

# %% [markdown]
# ## 3. The ledger
#
# The heavy ball of Sander et al. (2021) keeps a velocity:
#
# $$v_{l+1} = \mu v_l + (1-\mu) F_l(x_l), \qquad x_{l+1} = x_l + h\, v_{l+1}, \qquad v_0 = 0.$$
#
# Unrolled, $v_{l+1} = (1-\mu)\sum_{k \le l} \mu^{l-k} F_k(x_k)$: an exponential mean of all branches so far.
# What layer $k$ says is paid out over the next $1/(1-\mu)$ layers; of it, $1-\mu^{n-k}$ arrives at the
# output of $n$ layers. At $\mu = 0$ it *is* Euler.

# %%
rule = zoo.get("ledger")
_, path = net.stack(points.T, collect=True, integrator=rule)
print(rule.traits.equation)
print("it keeps:", sorted(path.observed), "of shape", path.observed["velocity"].shape)
same = net.stack(points.T, integrator=zoo.get("ledger:mu=0"))
print("mu = 0 is Euler, bit for bit:", bool((same == net.stack(points.T)).all()))
assert (same == net.stack(points.T)).all()

# %% [markdown]
# ## 4. Rings
#
# A disk inside an annulus, and a network of width 2 with a *linear* read-out. A flow of the plane is a
# homeomorphism: it cannot take the disk out of the annulus, so no line can separate the two. Euler escapes
# only by coarse steps. The ledger's flow lives in $(x, v)$, four dimensions: paths may cross in the plane.

# %%
data = planar_data("rings", seed=0)
nets, losses = {}, {}
for spec in ("euler", "ledger"):
    nets[spec] = zoo.ResNet(depth=16, integrator=zoo.get(spec), rngs=nnx.Rngs(0))
    losses[spec] = zoo.fit(nets[spec], data.train_x, data.train_y, steps=500)

paths = {}
fig, axes = plt.subplots(1, 3, figsize=(8, 2.9), layout="constrained")
for ax, (spec, net) in zip(axes, nets.items(), strict=False):
    logits, paths[spec] = net(data.test_x, collect=True)
    accuracy = float((logits.argmax(-1) == data.test_y).mean())
    some = np.linspace(0, len(data.test_x) - 1, 60).astype(int)
    for i in some:
        color = style.CLASSES[data.test_y[i]]
        ax.plot(*np.asarray(paths[spec].nodes[:, i]).T, color=color, lw=0.6)
        ax.plot(*np.asarray(paths[spec].nodes[-1, i]), ".", color=color, ms=3)
    ax.set_title(f"{spec}: {accuracy:.1%}")
    axes[2].semilogy(losses[spec], color=COLOR[spec], label=spec)
    assert accuracy > 0.95
axes[2].set(xlabel="optimiser step", title="training loss (nats)")
axes[2].legend()
plt.show()

# %% [markdown]
# ## 5. How a point travels
#
# With displacements $d_l = x_{l+1} - x_l$, the **turning angle** is $\angle(d_l, d_{l+1})$, the **path
# length** $\sum |d_l|$, the **straightness** $|x_n - x_0| / \sum |d_l|$. A velocity with memory $\mu$ can
# turn only slowly.

# %%
fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
turns = {}
for spec, path in paths.items():
    angles = zoo.trajectory.turning_angles(path)
    turns[spec] = float(angles.mean())
    ax.plot(range(1, len(angles) + 1), angles.mean(1), "o-", ms=3, color=COLOR[spec], label=spec)
    length, straight = zoo.trajectory.path_length(path), zoo.trajectory.straightness(path)
    print(
        f"{spec:7} {turns[spec]:5.1f} deg, path {length.mean():.1f}, straight {straight.mean():.2f}"
    )
ax.set(xlabel="layer", ylabel="turning angle (degrees)", ylim=(0, None))
ax.legend()
plt.show()
assert turns["ledger"] < turns["euler"] / 2

# %% [markdown]
# ## 6. Rewind
#
# The ledger's step can be solved for its past:
#
# $$x_l = x_{l+1} - h\,v_{l+1}, \qquad v_l = \frac{v_{l+1} - (1-\mu) F_l(x_l)}{\mu}.$$
#
# So the input follows from the output, and activations need not be stored. But the division magnifies
# rounding by $1/\mu$ a layer. `memory="exact"` works in integers and keeps the $\log_2(1/\mu)$ bits that
# friction would lose in each layer: what comes back is equal, bit for bit.

# %%
stack = nets["ledger"].stack
start = jnp.asarray(data.test_x[:64]).T
back = stack.rewind(stack.passage(start))
print("floating point, largest error:", float(jnp.abs(back.position - start).max()))
stack.memory = "exact"
there = stack.passage(start)
back = stack.rewind(there)
print("exact, largest error:", float(jnp.abs(back.position - start).max()), "(the grid is 2^-22)")
assert jnp.abs(back.position - start).max() <= 2.0**-23
stack.memory = "store"

# %% [markdown]
# ## 7. On the sphere
#
# nGPT keeps every token at the length $\sqrt D$. The zoo's `ngpt-lite` moves, and then *retracts*:
#
# $$x' = R(x + h\,\alpha \odot F(x)), \qquad R(z) = \sqrt D \, z / |z|,$$
#
# with $\alpha$ learned for each sub-update and feature. `ngpt-ledger` puts the ledger there.


# %%
class Branch(nnx.Module):
    """F(x) = W2 tanh(W1 x)."""

    def __init__(self, rngs):
        self.up, self.down = nnx.Linear(16, 32, rngs=rngs), nnx.Linear(32, 16, rngs=rngs)

    def __call__(self, x):
        return self.down(jnp.tanh(self.up(x)))


x = jax.random.normal(jax.random.key(2), (200, 16))
for spec in ("euler", "ngpt-lite", "ngpt-ledger"):
    moved = zoo.ResidualStack(Branch, 8, 16, zoo.get(spec), h=1.0, rngs=nnx.Rngs(0))
    norms = zoo.trajectory.norms(moved(x, collect=True)[1])
    print(f"{spec:11} length: {norms[0].mean():.2f} at first, {norms[-1].mean():.2f} at last")
    if spec != "euler":
        assert jnp.allclose(norms, 4.0, atol=1e-4)

# %% [markdown]
# ## 8. A small GPT
#
# Each layer is two sub-updates, attention and MLP, and a ledger's velocity runs through all of them. The
# text is one that the zoo makes itself. The published comparison trains 6 layers of width 192 for 12,000
# steps on Shakespeare; this one is for looking only.

# %%
from integrator_zoo.backbones.sampling import generate
from integrator_zoo.data.corpus import decode, encode, load_corpus
from integrator_zoo.training.recipe import windows

corpus = load_corpus("generated")
text = jnp.asarray(windows(corpus.train, 32, 48))
held_out = jnp.asarray(windows(corpus.validation, 32, 32))
size = {"context": 32, "width": 32, "depth": 2, "heads": 2, "mlp_hidden": 64}
fig, (left, right) = plt.subplots(1, 2, figsize=SMALL, layout="constrained")
for spec in ("euler", "ledger"):
    gpt = zoo.GPT(len(corpus.vocabulary), **size, integrator=zoo.get(spec), rngs=nnx.Rngs(0))
    gpt.eval()  # without dropout
    loss = zoo.fit(gpt, text[:, :-1], text[:, 1:], steps=100)
    _, path = gpt(held_out[:, :-1], collect=True)
    angles = zoo.trajectory.turning_angles(path).reshape(path.nodes.shape[0] - 2, -1).mean(1)
    left.plot(loss, color=COLOR[spec], label=spec)
    right.plot(range(1, len(angles) + 1), angles, "o-", ms=3, color=COLOR[spec])
    print(f"{spec}: loss {loss[-1]:.2f}, turns {angles.mean():.0f} degrees a sub-update")
    assert loss[-1] < 0.7 * loss[0]
left.set(xlabel="optimiser step", ylabel="training loss (nats/character)")
left.legend()
right.set(xlabel="sub-update", ylabel="turning angle (degrees)", ylim=(0, None))
plt.show()

# %% [markdown]
# It has learned 48 windows by heart; where it leaves them, it babbles:

# %%
prompt = encode("The night ", corpus.vocabulary)
drawn = np.concatenate(list(generate(gpt, prompt, 96, temperature=0.5)))
print("The night " + decode(drawn, corpus.vocabulary))

# %% [markdown]
# ## 9. A rule of your own
#
# An integrator is a frozen dataclass with a `step`. Registered, it runs in everything above.


# %%
@zoo.register
@zoo.integrator(
    "nesterov",
    equation="v' = mu v + (1 - mu) F(x + h mu v);  x' = x + h v'",
    reference="Nesterov (1983)",
    order=1,
)
class Nesterov(zoo.MovingIntegrator):
    """Heavy ball that looks ahead before it asks for the force."""

    mu: float = zoo.option(0.9, "memory of the velocity", low=0.0, below=1.0)

    def step(self, state, field, at, params):
        force = field(state.x + at.h * self.mu * state.v)
        v = self.mu * state.v + (1 - self.mu) * force
        return zoo.Moving(state.x + at.h * v, v)


own = zoo.ResNet(depth=16, integrator=zoo.get("nesterov"), rngs=nnx.Rngs(0))
zoo.fit(own, data.train_x, data.train_y, steps=200)
logits, path = own(data.test_x, collect=True)
accuracy = float((logits.argmax(-1) == data.test_y).mean())
print(f"accuracy {accuracy:.1%}, {zoo.trajectory.turning_angles(path).mean():.0f} degrees a layer")
assert accuracy > 0.9

# %% [markdown]
# What next: `zoo compare rings` for the comparison with seeds and pictures, `zoo check` for whether a rule
# is what it says, and the how-to pages beside this notebook.
