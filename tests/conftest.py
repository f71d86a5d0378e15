"""Shared fixtures. Two CPU devices, as the command has on a two-core machine."""

from __future__ import annotations

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)

from integrator_zoo.registry import current  # noqa: E402 - JAX must be told first

ALL = sorted(current().entries["integrator"])
"""Every registered integrator: nothing in the tests lists them by hand."""


@pytest.fixture
def scratch_registry(monkeypatch):
    """The registry of this process, put back as it was afterwards."""
    registry = current()
    kept = {kind: dict(entries) for kind, entries in registry.entries.items()}
    broken = list(registry.broken)
    yield registry
    registry.entries = kept
    registry.broken = broken


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Compiled programs of one module do not pile up in the next."""
    yield
    jax.clear_caches()
