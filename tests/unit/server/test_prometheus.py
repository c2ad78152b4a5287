"""Queries: fixed, with namespace and pods quoted whatever they hold; settings that are sound."""

from __future__ import annotations

import pytest

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.server.prometheus import (
    QUERIES,
    PrometheusSettings,
    Window,
    query_text,
    quoted,
)


def test_every_query_names_namespace_and_pods_in_each_selector() -> None:
    for query, unit in QUERIES.values():
        text = query_text(query, "team", frozenset({"a-worker-1", "a.b"}))
        assert text.count('namespace="team",') == text.count('pod=~"a-worker-1|a[.]b"')
        assert text.count("{") == text.count('namespace="team"') == text.count("}")
        assert unit and "{here}" not in text and "{there}" not in text


@pytest.mark.parametrize("name", ['x"} or up{a="', "a\\", "a\nb", 'a\\" or up'])
def test_a_name_cannot_leave_its_quotes(name: str) -> None:
    inner = quoted(name)[1:-1]
    assert "\n" not in inner
    rest = inner.replace("\\\\", "").replace('\\"', "")
    assert '"' not in rest
    assert inner.replace("\\\\", "\0").replace('\\"', '"').replace("\\n", "\n").replace(
        "\0", "\\"
    ) == name  # fmt: skip


def test_settings_that_would_show_a_token_are_refused() -> None:
    for url in ("", "prometheus:9090", "ftp://x", "https://", "https://a:b@x", "https://x?a=b"):
        with pytest.raises(ConfigError, match="no address"):
            PrometheusSettings(url).checked()
    with pytest.raises(ConfigError, match="https"):
        PrometheusSettings("http://thanos:9092", tenancy=True).checked()
    for url in ("https://thanos:9092/", "http://127.0.0.1:9"):
        assert PrometheusSettings(url, tenancy=True).checked()
    assert PrometheusSettings("http://prometheus:9090").checked()


def test_there_are_never_more_points_than_a_chart_shows() -> None:
    for minutes in (1, 60, 7 * 24 * 60):
        window = Window(0, minutes * 60)
        assert 60 * minutes / window.step <= 240 and window.step >= 5
