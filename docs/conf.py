"""Sphinx configuration. Build: python -m sphinx -W docs docs/_build/html"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "integrator_zoo"
author = "the integrator_zoo authors"
release = importlib.metadata.version("integrator-zoo")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",
    "generate",
]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings write `name`, as in Markdown

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebook is executed by CI, see CONTRIBUTING.md

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "integrator_zoo"
html_static_path: list[str] = []
html_show_copyright = False
