"""Training: steps scanned in one compiled call, runs split over the devices."""

from .fleet import Load, Once, run_fleet, share_out
from .loop import Progression, advance, begin, first_bad_step, fit, parameter_count

__all__ = [
    "Load",
    "Once",
    "Progression",
    "advance",
    "begin",
    "first_bad_step",
    "fit",
    "parameter_count",
    "run_fleet",
    "share_out",
]
