"""Proxies are chosen as kubectl chooses them."""

from __future__ import annotations

import pytest

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.proxies import proxy_for

P = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "spared", "through"),
    [
        ("https://api.example.com:6443", "", True),
        ("https://api.example.com:6443", "example.com", False),
        ("https://api.example.com:6443", ".example.com", False),
        ("https://api.example.com:6443", "*.example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://example.com", "example.com", False),
        ("https://badexample.com", "example.com", True),
        ("https://api.example.com:6443", "api.example.com:6443", False),
        ("https://api.example.com:6443", "api.example.com:443", True),
        ("https://api.example.com", "a.b, API.EXAMPLE.COM ", False),
        ("https://api.example.com", "*", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.4", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8,nonsense/99", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("https://[::1]:6443", "", False),
    ],
)
def test_who_is_spared(server: str, spared: str, through: bool) -> None:
    assert proxy_for(server, {"HTTPS_PROXY": P, "NO_PROXY": spared}) == (P if through else "")


def test_small_letters_and_bare_hosts_count_too() -> None:
    assert proxy_for("https://a.b", {"https_proxy": "proxy:1"}) == "http://proxy:1"
    assert proxy_for("https://a.b", {"https_proxy": P, "no_proxy": "b"}) == ""
    assert proxy_for("http://a.b", {"HTTPS_PROXY": P}) == ""
    assert proxy_for("http://a.b", {"HTTP_PROXY": P}) == P


def test_what_we_cannot_use_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="socks5:// proxies are not supported") as caught:
        proxy_for("https://a.b", {"HTTPS_PROXY": "socks5://me:secret@proxy"})
    assert "secret" not in str(caught.value)
