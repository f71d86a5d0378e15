"""Pictures of the studies: a matrix of rules, and measures along a dial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from . import style


def matrix(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], across: str, up: str
) -> Figure:
    """A square of numbers with their values written in, dark where they are high."""
    fig = Figure(figsize=(style.WIDTH, 1.6 + 0.5 * len(rows)), layout="constrained")
    ax = fig.add_subplot()
    sns.heatmap(
        values, ax=ax, annot=True, fmt=".1f", cmap="crest", cbar=False, linewidths=1.5,
        linecolor=style.mpl.rcParams["axes.facecolor"], annot_kws={"fontsize": 8},
    )  # fmt: skip
    ax.set_xticks(np.arange(len(columns)) + 0.5, [style.plain(c, 12, 3) for c in columns])
    ax.set_yticks(np.arange(len(rows)) + 0.5, [style.plain(r, 24) for r in rows], rotation=0)
    ax.tick_params(length=0)
    ax.set(xlabel=across, ylabel=up)
    return fig


Curve = tuple[Sequence[float], Sequence[tuple[float, float, float]]]
"""Values of the dial, and (mean, least, greatest) at each."""


def dial(curves: Mapping[str, Curve], across: str, logarithmic: Sequence[str] = ()) -> Figure:
    """One panel a measure along the same dial: mean, and a band from least to greatest."""
    fig = Figure(figsize=(style.WIDTH, 4.6), layout="constrained")
    axes = np.atleast_1d(fig.subplots(2, (len(curves) + 1) // 2)).ravel()
    color = style.looks(["dial"])["dial"].color
    for ax, (name, (places, found)) in zip(axes, curves.items(), strict=False):
        middle, low, high = np.array(found, float).T
        ax.plot(places, middle, "o-", color=color, markersize=4, linewidth=1.4)
        ax.fill_between(places, low, high, color=color, alpha=0.2, linewidth=0)
        ax.set(xlabel=across, title=name)
        if name in logarithmic:
            ax.set_yscale("log")
        sns.despine(ax=ax)
    for ax in axes[len(curves) :]:
        ax.remove()
    return fig
