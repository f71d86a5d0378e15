"""The conformance kit: is an integrator what it declares to be?

report = check_integrator(MyRule())
print(report)
report.raise_if_failed()
"""

from . import contract, transforms, accuracy, inverse, geometry, limits, learning, documentation  # noqa: F401, I001 (in the order in which they run)
from .base import CHECKS, MINIMUM, Check, Finding, Measured, Subject
from .runner import Report, check_integrator, parametrize_with_checks

__all__ = [
    "CHECKS",
    "MINIMUM",
    "Check",
    "Finding",
    "Measured",
    "Report",
    "Subject",
    "check_integrator",
    "parametrize_with_checks",
]
