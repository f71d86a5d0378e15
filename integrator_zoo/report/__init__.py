"""The report: one offline page about some runs. `write_report` is all that others need."""

from __future__ import annotations

from .page import write_report
from .studies import find_runs, studies

__all__ = ["find_runs", "studies", "write_report"]
