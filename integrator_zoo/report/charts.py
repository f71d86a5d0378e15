"""The two charts of the explorer, as Vega-Lite specifications.

The page fills their named data sets and the scales' domains. Colours are CSS variables, so that
the charts follow the reader's colour scheme as the page does.
"""

from __future__ import annotations

from typing import Any

CLASS = {"field": "class", "type": "nominal", "legend": None}
CLASS_COLORS = {"scale": {"domain": [0, 1], "range": ["var(--first)", "var(--second)"]}}


def path() -> dict[str, Any]:
    """Positions at the chosen depth (`heads`), the way so far (`ways`), its start, and `exact`."""
    x, y = _position("x", nice=False), _position("y", nice=False)
    color = {**CLASS, **CLASS_COLORS}
    line = {"type": "line", "strokeWidth": 1, "strokeOpacity": 0.55, "clip": True}
    order = {"field": "node", "type": "quantitative"}
    return {
        **_base("container"),
        "description": "Positions at the chosen depth, with the way there.",
        "layer": [
            {
                "data": {"name": "exact"},
                "mark": {**line, "stroke": "var(--ink)", "strokeDash": [4, 3], "aria": False},
                "encoding": {"x": x, "y": y, "order": order},
            },
            {
                "data": {"name": "ways"},
                "mark": {**line, "aria": False},
                "encoding": {
                    "x": x,
                    "y": y,
                    "order": order,
                    "color": color,
                    "detail": {"field": "point", "type": "nominal"},
                },
            },
            {
                "data": {"name": "starts"},
                "mark": {
                    "type": "point",
                    "size": 14,
                    "strokeWidth": 0.8,
                    "clip": True,
                    "aria": False,
                },
                "encoding": {"x": x, "y": y, "color": color},
            },
            {
                "name": "heads",
                "data": {"name": "heads"},
                "mark": {"type": "circle", "size": 26, "opacity": 0.95, "clip": True},
                "encoding": {"x": x, "y": y, "color": color},
            },
        ],
    }


def curve() -> dict[str, Any]:
    """One quantity of all chosen integrators (`lines`), a rule (`here`) and `values` at a place."""
    x, y = _position("x", nice=False), _position("y")
    color = {"field": "label", "type": "nominal", "legend": None, "scale": {}}
    dash = {"field": "label", "type": "nominal", "legend": None, "scale": {}}
    return {
        **_base(190),
        "description": "The chosen quantity of the chosen integrators.",
        "layer": [
            {
                "data": {"name": "here"},
                "mark": {"type": "rule", "stroke": "var(--accent)", "strokeWidth": 1.2},
                "encoding": {"x": x},
            },
            {
                "data": {"name": "lines"},
                "mark": {"type": "line", "strokeWidth": 1.6, "clip": True},
                "encoding": {"x": x, "y": y, "color": color, "strokeDash": dash},
            },
            {
                "name": "values",
                "data": {"name": "values"},
                "mark": {"type": "circle", "size": 42, "opacity": 1, "clip": True},
                "encoding": {"x": x, "y": y, "color": color},
            },
        ],
    }


def _position(name: str, **scale: Any) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", "scale": {"zero": False, **scale}, "title": None}


def _base(height: Any) -> dict[str, Any]:
    text = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "titleFontWeight": "normal"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": None,
        "config": {
            "font": "inherit",
            "view": {"stroke": None},
            "axis": {
                **text,
                "grid": True,
                "gridColor": "var(--line)",
                "domainColor": "var(--line)",
                "tickColor": "var(--line)",
                "tickCount": 4,
                "labelFontSize": 11,
                "titleFontSize": 11,
            },
        },
    }
