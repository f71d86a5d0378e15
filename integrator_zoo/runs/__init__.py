"""Run folders: what was asked, what came out, found again instead of repeated."""

from .perform import perform
from .store import Record, Store

__all__ = ["Record", "Store", "perform"]
