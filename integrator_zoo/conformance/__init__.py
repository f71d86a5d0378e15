"""The conformance kit: is an integrator what it declares to be?

report = check_integrator(MyRule())
print(report)
report.raise_if_failed()
"""

import importlib

from .base import CHECKS, MINIMUM, Check, Finding, Measured, Subject
from .runner import Report, check_integrator, parametrize_with_checks

for _family in (  # in this order the checks run and are listed
    "contract",
    "transforms",
    "accuracy",
    "inverse",
    "recomputation",
    "geometry",
    "limits",
    "learning",
    "documentation",
):
    importlib.import_module(f".{_family}", __name__)

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
