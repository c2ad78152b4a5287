"""A dashboard as a value, and as the JSON that Grafana reads.

Panels of a row stand side by side and begin a new line where 24 columns are full. The data source
is a variable, so that a file suits every Grafana.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

COLUMNS: Final = 24
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
# What the format was when this was written; Grafana 10 and newer read it and make it newer.
SCHEMA: Final = 39
Json = dict[str, Any]


class Query(msgspec.Struct, frozen=True):
    """`legend` names a line by its labels; in a table it names the column."""

    expr: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True):
    """`values` are words and colours for numbers, and `limits` colours from a number on."""

    title: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    description: str = ""
    values: Mapping[int, tuple[str, str]] = {}
    limits: Mapping[float, str] = {}
    stacked: bool = False
    units: Mapping[str, str] = {}


class Row(msgspec.Struct, frozen=True):
    title: str
    panels: tuple[Panel, ...]


class Variable(msgspec.Struct, frozen=True):
    """What is chosen above the dashboard, out of what a query finds."""

    name: str
    label: str
    query: str


class Dashboard(msgspec.Struct, frozen=True):
    """`uid` stays the same for ever: links lead to it."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    since: str = "now-6h"

    def queries(self) -> Iterator[str]:
        for row in self.rows:
            for panel in row.panels:
                yield from (query.expr for query in panel.queries)

    def text(self) -> str:
        return json.dumps(_dashboard(self), indent=2, ensure_ascii=False) + "\n"


def _dashboard(given: Dashboard) -> Json:
    return {
        "uid": given.uid,
        "title": given.title,
        "description": given.description,
        "tags": ["mpi-trainer"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": given.since, "to": "now"},
        "templating": {"list": [_source(), *map(_variable, given.variables)]},
        "panels": list(_panels(given.rows)),
    }


def _source() -> Json:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }


def _variable(given: Variable) -> Json:
    return {
        "name": given.name,
        "label": given.label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": given.query, "refId": given.name},
        # Anew when the time range changes, so that ended jobs of that time can be chosen.
        "refresh": 2,
        "sort": 1,
    }


def _panels(rows: tuple[Row, ...]) -> Iterator[Json]:
    y, number = 0, 0
    for row in rows:
        number += 1
        place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": place, "panels": []}
        x, y, line = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, line = 0, y + line, 0
            number += 1
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            x, line = x + panel.width, max(line, panel.height)
        y += line


def _panel(given: Panel) -> Json:
    table = given.kind == "table"
    made: Json = {
        "type": given.kind,
        "title": given.title,
        "description": given.description,
        "datasource": SOURCE,
        "targets": [
            _target(query, chr(ord("A") + at), table) for at, query in enumerate(given.queries)
        ],
        "fieldConfig": {"defaults": _defaults(given), "overrides": _overrides(given)},
        "options": _options(given.kind),
    }
    if table:
        made["transformations"] = _joined(given)
    return made


def _target(query: Query, letter: str, table: bool) -> Json:
    made: Json = {"refId": letter, "datasource": SOURCE, "expr": query.expr}
    if table:
        return {**made, "format": "table", "instant": True}
    return {**made, "legendFormat": query.legend}


def _defaults(given: Panel) -> Json:
    made: Json = {"unit": given.unit}
    if given.kind == "timeseries":
        made["min"] = 0
        made["custom"] = {"fillOpacity": 10, "showPoints": "never"}
        if given.stacked:
            made["custom"] |= {"fillOpacity": 40, "stacking": {"mode": "normal"}}
    if given.values:
        options = {str(n): {"text": t, "color": c} for n, (t, c) in given.values.items()}
        made["mappings"] = [{"type": "value", "options": options}]
    if given.limits:
        steps = [{"value": value, "color": color} for value, color in given.limits.items()]
        steps = [{"value": None, "color": "green"}, *steps]
        made["thresholds"] = {"mode": "absolute", "steps": steps}
    return made


def _options(kind: str) -> Json:
    if kind == "timeseries":
        return {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
    if kind == "state-timeline":
        return {"mergeValues": True, "showValue": "never", "rowHeight": 0.8}
    return {}


def _overrides(given: Panel) -> list[Json]:
    """Columns of a table have units of their own."""
    return [
        {
            "matcher": {"id": "byName", "options": column},
            "properties": [{"id": "unit", "value": unit}],
        }
        for column, unit in given.units.items()
    ]


def _joined(given: Panel) -> list[Json]:
    """One row for each pod, and a column for each query."""
    names = {f"Value #{chr(ord('A') + at)}": q.legend for at, q in enumerate(given.queries)}
    hidden = {name: True for name, legend in names.items() if not legend}
    hidden |= {f"Time {at}": True for at in range(1, len(names) + 1)} | {"Time": True}
    return [
        {"id": "joinByField", "options": {"byField": "pod", "mode": "outer"}},
        {
            "id": "organize",
            "options": {
                "excludeByName": hidden,
                "renameByName": {name: legend for name, legend in names.items() if legend},
            },
        },
    ]
