"""The report: one offline page about some runs. `write_report` is all that others need."""

from __future__ import annotations

from .chapters import chapters
from .page import write_report

__all__ = ["chapters", "write_report"]
