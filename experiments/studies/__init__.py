"""Questions beyond the published study: the runs that answer each, and its page."""

from __future__ import annotations

from collections.abc import Mapping

from integrator_zoo.claims import Study

from .ceiling import CEILING
from .friction import FRICTION
from .inertia import INERTIA
from .transfer import TRANSFER

STUDIES: Mapping[str, tuple[Study, ...]] = {"rings": (CEILING, INERTIA, TRANSFER, FRICTION)}
"""By the experiment that offers them."""
