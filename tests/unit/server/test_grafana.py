"""The address of a Grafana, to which pages lead a browser."""

from __future__ import annotations

import pytest

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.server.grafana import checked


@pytest.mark.parametrize(
    "url",
    [
        "",
        "grafana:3000",
        "javascript:alert(1)",
        "https://",
        "https://user:password@grafana",
        "https://grafana/d/x?orgId=1",
        "https://grafana/d/x#a",
        "https://grafana/<script>",
        "https://grafana/\nx",
        "https://grafana:port/",
    ],
)
def test_what_is_no_plain_address_of_a_page_is_refused_with_what_one_looks_like(url: str) -> None:
    with pytest.raises(ConfigError, match=r"--grafana .* is no address such as https://HOST/d/"):
        checked(url)


def test_an_address_is_kept_without_its_last_slash() -> None:
    assert checked("https://grafana.example.com/d/mpijob-overview/") == (
        "https://grafana.example.com/d/mpijob-overview"
    )
    assert checked("http://127.0.0.1:3000") == "http://127.0.0.1:3000"
