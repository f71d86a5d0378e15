"""Data sets, generated or fetched; each comes with a hash of what was used."""

from .corpus import Corpus, load_corpus
from .planar import PLANAR_SETS, PlanarData, planar_data

__all__ = ["PLANAR_SETS", "Corpus", "PlanarData", "load_corpus", "planar_data"]
