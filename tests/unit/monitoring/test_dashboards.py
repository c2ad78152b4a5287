"""Dashboards show what was asked for, out of metrics that exist, by queries that give something."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.promtool import why_not, why_unreadable
from tests.unit.monitoring.promql import filled, grouped, selectors
from tests.unit.monitoring.registries import ours
from tests.unit.monitoring.series import END, HEALTHY, cluster
from tools.monitoring import __main__ as made
from tools.monitoring.alerts import ALERTS
from tools.monitoring.grafana import COLUMNS, Dashboard
from tools.monitoring.overview import OVERVIEW, PODS
from tools.monitoring.sources import OTHERS, OURS, TARGET

_CHOICES = [
    re.sub(r"label_values\((.*), \w+\)", r"\1", variable.query) for variable in OVERVIEW.variables
]
SHOWN = sorted({filled(query) for one in made.DASHBOARDS for query in one.queries()})
QUERIES = [*SHOWN, *map(filled, _CHOICES), *(alert.expr for alert in ALERTS)]


def unknown(query: str, known: dict[str, frozenset[str]]) -> list[str]:
    """Metrics, and labels of one, that nobody exposes."""
    found, labels = [], TARGET
    for name, matchers in selectors(query):
        if name not in known:
            found.append(name)
            continue
        labels |= known[name]
        found += [f"{name}.{label}" for label in matchers - known[name] - TARGET]
    return [*found, *(grouped(query) - labels)]


def test_every_metric_of_a_query_is_one_that_a_process_exposes() -> None:
    """OBS-1: ours by our registries; of cAdvisor, kube-state-metrics and DCGM by a list."""
    known = ours()
    assert len(known) > 60
    assert not {*known} & {*OTHERS}
    for query in QUERIES:
        assert [*selectors(query)], query
        assert unknown(query, {**known, **OTHERS}) == [], query


def test_every_metric_of_others_that_is_listed_is_used() -> None:
    used = {name for query in QUERIES for name, _ in selectors(query)}
    assert {*OTHERS} <= used


def test_a_metric_or_label_that_nobody_exposes_is_found() -> None:
    known = {"up_total": frozenset({"code"}), "queue": frozenset({"name"})}
    assert unknown('sum by (name, pod) (queue{name=~"a.*",job="x"})', known) == []
    assert unknown("sum(rate(down_total[5m])) / sum(queue)", known) == ["down_total"]
    assert unknown('up_total{code!="200",host="a"}', known) == ["up_total.host"]
    assert unknown("sum by (kind) (up_total)", known) == ["kind"]
    assert unknown('queue unless on (name) (other{a="up_total"} > 1)', known) == ["other"]


@pytest.mark.parametrize("query", QUERIES)
def test_our_metrics_are_asked_of_our_own_pods(query: str) -> None:
    """Every controller of a cluster has a workqueue_depth."""
    bare = re.findall(r"([a-z_]\w+)\{([^}]*)\}", query)
    own = ours()
    named = {name for name, _ in selectors(query)} & {*own}
    assert {name for name, matchers in bare if OURS in matchers} >= named


def test_every_query_of_a_dashboard_is_read_by_promtool(tmp_path: Path) -> None:
    rules = [{"record": f"query:{n}", "expr": query} for n, query in enumerate(SHOWN)]
    assert why_unreadable(rules, tmp_path) == ""
    broken = {"record": "query:broken", "expr": SHOWN[0] + ")"}
    assert "parse error" in why_unreadable([*rules, broken], tmp_path)


def test_every_panel_shows_something_of_a_cluster_that_is_well(tmp_path: Path) -> None:
    """OBS-1: names and labels fit together, so that no join or filter leaves nothing."""
    none = tmp_path / "none.yml"
    none.write_text("groups: []\n")

    def asked(query: str) -> dict[str, Any]:
        samples = [{"labels": "{}", "value": 1}]
        expr = f"clamp_max(count(({query}) > -Inf), 1)"
        return {"expr": expr, "eval_time": END, "exp_samples": samples}

    tests = {**cluster(), "promql_expr_test": [asked(query) for query in SHOWN]}
    assert why_not(none, [tests], tmp_path) == ""
    empty = {**tests, "promql_expr_test": [asked('workqueue_depth{job="another"}')]}
    assert "FAILED" in why_not(none, [empty], tmp_path)


def test_the_series_of_the_tests_are_ones_that_processes_expose() -> None:
    known = {**ours(), **OTHERS}
    for series in HEALTHY:
        assert unknown(series, known) == []


def test_the_overview_has_the_rows_and_panels_that_were_asked_for() -> None:
    """OBS-1."""
    assert OVERVIEW.title == "MPIJob Overview"
    rows = {row.title: {panel.title for panel in row.panels} for row in OVERVIEW.rows}
    cluster_row, job, resources = rows.values()
    assert cluster_row >= {"Jobs by state", "GPU utilisation", "Average duration over 7 days"}
    assert job >= {
        "Status time line",
        "Workers",
        "GPU utilisation per worker",
        "Network throughput",
    }
    assert resources >= {"CPU per worker", "Memory per worker", "Disk I/O per worker"}


@pytest.mark.parametrize("dashboard", made.DASHBOARDS, ids=lambda one: one.uid)
def test_panels_stand_beside_and_not_upon_each_other(dashboard: Dashboard) -> None:
    panels = json.loads(dashboard.text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < COLUMNS
        taken |= cells


def test_variables_of_queries_are_those_of_the_dashboard_and_of_grafana() -> None:
    for dashboard in made.DASHBOARDS:
        chosen = {variable.name for variable in dashboard.variables}
        used = set(re.findall(r"\$([a-z_]\w*)", dashboard.text()))
        assert used - {"__rate_interval"} == chosen


def test_committed_files_are_those_that_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was edited, is missing or has no source is named."""
    assert made.stale() == []
    monkeypatch.setattr(made, "FOLDER", tmp_path)
    assert len(made.stale()) == len(made.files())
    assert made.main([]) == 0
    assert made.stale() == []
    (tmp_path / "rules.yaml").write_text("kind: PrometheusRule\n")
    (tmp_path / "dashboards/extra.json").write_text("{}\n")
    assert made.stale() == ["dashboards/extra.json", "rules.yaml"]
    assert made.main(["--check"]) == 1


def test_every_dashboard_is_in_the_config_map() -> None:
    kustomization = yaml.safe_load((made.FOLDER / "dashboards/kustomization.yaml").read_text())
    (config_map,) = kustomization["configMapGenerator"]
    assert config_map["files"] == [f"{one.uid}.json" for one in made.DASHBOARDS]
    assert kustomization["generatorOptions"]["labels"] == {"grafana_dashboard": "1"}


def test_queries_find_the_services_whose_metrics_are_read() -> None:
    """The name of a Service is the `job` of what Prometheus reads there."""
    pattern = re.search('"(.*)"', OURS)
    assert pattern is not None
    for file in ("base", "webhook", "server/base"):
        services = yaml.safe_load_all((made.FOLDER.parent / file / "service.yaml").read_text())
        read = [one for one in services if "metrics" in {p["name"] for p in one["spec"]["ports"]}]
        assert len(read) == 1
        assert re.fullmatch(pattern[1], read[0]["metadata"]["name"])


def test_series_about_jobs_keep_the_namespace_of_the_jobs() -> None:
    """Prometheus' operator would write our pod's namespace over it."""
    monitors = yaml.safe_load_all((made.FOLDER / "service-monitor.yaml").read_text())
    (endpoint,) = next(monitors)["spec"]["endpoints"]
    assert endpoint["honorLabels"] is True


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        ("train-worker-0", True),
        ("train-worker-12", True),
        ("train-launcher-x7k2p", True),
        ("train-launcher", True),
        ("train-worker-0-worker-0", False),
        ("train-launcher-a-worker-0", False),
        ("other-train-worker-0", False),
    ],
)
def test_pods_of_a_job_are_shown_and_no_others(pod: str, shown: bool) -> None:
    pattern = re.search('pod=~"(.*)"', filled(PODS))
    assert pattern is not None
    assert bool(re.fullmatch(pattern[1], pod)) is shown
