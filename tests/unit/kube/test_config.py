"""kubeconfigs are read as kubectl reads them, and refused in words that name the field."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mpi_trainer.kube.config import Config, in_cluster, load
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.trust import Contexts


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


def one(tmp_path: Path, cluster: str = "", user: str = "") -> Path:
    """A kubeconfig with these lines in its cluster and its user, written in flow style."""
    return write(
        tmp_path / "config",
        f"""\
        current-context: c
        contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
        clusters: [{{name: k, cluster: {{server: "https://a:1", {cluster}}}}}]
        users: [{{name: u, user: {{{user}}}}}]
        """,
    )


def test_the_first_file_that_has_a_name_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(
        tmp_path / "one" / "config",
        """\
        contexts: [{name: c, context: {cluster: k, user: u}}]
        users: [{name: u, user: {tokenFile: token}}]
        clusters: null
        """,
    )
    second = write(
        tmp_path / "two" / "config",
        """\
        current-context: c
        contexts: [{name: c, context: {cluster: other, user: other, namespace: x}}]
        clusters: [{name: k, cluster: {server: "https://k", certificate-authority: ca.crt}}]
        users: [{name: u, user: {token: wrong}}]
        """,
    )
    missing = tmp_path / "missing"
    listed = [str(missing), str(first), "", str(second), str(first)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(listed))
    config = load()
    assert (config.server, config.namespace) == ("https://k", "default")
    assert config.trust.authority_file == str(tmp_path / "two" / "ca.crt")
    assert repr(config.credentials) == f"TokenFile({str(tmp_path / 'one' / 'token')!r})"


def test_the_file_in_the_home_folder_is_the_default(tmp_path: Path) -> None:
    path = one(tmp_path)
    target = tmp_path / "home" / ".kube" / "config"
    target.parent.mkdir(parents=True)
    path.rename(target)
    assert load().server == "https://a:1"


def test_context_and_namespace_can_be_chosen(tmp_path: Path) -> None:
    path = one(tmp_path)
    text = path.read_text().replace(
        "contexts: [", "contexts: [{name: d, context: {cluster: k, namespace: own}}, "
    )
    path.write_text(text)
    assert load(path, context="d").namespace == "own"
    assert load(path, context="d", namespace="mine").namespace == "mine"
    with pytest.raises(ConfigError, match=r"no context 'e'.*there are: d, c"):
        load(path, context="e")


@pytest.mark.parametrize(
    ("server", "more", "url"),
    [
        ("https://h:6443/", "", "https://h:6443"),
        ("https://h/k8s/clusters/c-1/", "", "https://h/k8s/clusters/c-1"),
        ("h:8080", "", "http://h:8080"),
        ("h:6443", "insecure-skip-tls-verify: true", "https://h:6443"),
        ("https://[fd00::1]:6443", "", "https://[fd00::1]:6443"),
    ],
)
def test_the_servers_address_is_understood(
    tmp_path: Path, server: str, more: str, url: str
) -> None:
    path = one(tmp_path, more)
    path.write_text(path.read_text().replace("https://a:1", server))
    assert load(path).server == url


def test_no_secret_goes_over_plain_http(tmp_path: Path) -> None:
    path = one(tmp_path, user="token: secret")
    path.write_text(path.read_text().replace("https://a:1", "http://a:1"))
    credential = load(path).credentials.ready()
    assert credential is not None
    assert credential.authorization == ""


REFUSED: list[Any] = [
    ("server: ftp://x", "", "cluster.server"),
    ("server: 'https://me:pw@x'", "", "cluster.server"),
    ("certificate-authority-data: '!!'", "", "certificate-authority-data: not base64"),
    ("certificate-authority: c, insecure-skip-tls-verify: true", "", "contradict"),
    ("proxy-url: 'socks5://x'", "", "proxy-url: socks5"),
    ("insecure-skip-tls-verify: maybe", "", "insecure-skip-tls-verify"),
    ("", "auth-provider: {name: gcp}", "auth-provider"),
    ("", "token: a, username: b", "two ways"),
    ("", 'token: "a\\nb"', "characters that no token has"),
    ("", "as-groups: [g]", "they need `as`"),
    ("", 'as: "a\\r\\nX: y"', "cannot be sent"),
    ("", "exec: {command: x}", "exec.apiVersion"),
    ("", "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}", "v1alpha1"),
    ("", "exec: {apiVersion: client.authentication.k8s.io/v1}", "exec.command"),
    ("", "exec: {command: x, apiVersion: client.authentication.k8s.io/v1}", "interactiveMode"),
]


@pytest.mark.parametrize(("cluster", "user", "words"), REFUSED)
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, cluster: str, user: str, words: str
) -> None:
    path = one(tmp_path, cluster, user)
    if cluster.startswith("server"):
        path.write_text(path.read_text().replace('server: "https://a:1", ', ""))
    with pytest.raises(ConfigError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_broken_file_is_named_with_its_line_and_not_quoted(tmp_path: Path) -> None:
    path = write(tmp_path / "config", "users:\n- token: secret\n  : [\n")
    with pytest.raises(ConfigError, match="config:") as caught:
        load(path)
    assert "secret" not in str(caught.value)
    path.write_text("users: [{name: u, user: {token: [secret]}}]")
    with pytest.raises(ConfigError, match=r"users\[0\].user.token") as caught:
        load(path)
    assert "secret" not in str(caught.value)


def test_without_any_configuration_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set KUBECONFIG, or log in"):
        load()
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="not in a pod"):
        in_cluster()


def test_a_file_without_a_current_context_asks_for_one(tmp_path: Path) -> None:
    path = one(tmp_path)
    path.write_text(path.read_text().replace("current-context: c", ""))
    with pytest.raises(ConfigError, match=r"choose a context \(there are: c\)"):
        load(path)


def test_a_key_that_is_not_one_is_refused_in_words(tmp_path: Path) -> None:
    data = base64.b64encode(b"nonsense").decode()
    path = one(tmp_path, user=f"client-certificate-data: {data}, client-key-data: {data}")
    config = load(path)
    credential = config.credentials.ready()
    assert credential is not None
    with pytest.raises(ConfigError, match="not a pair in PEM"):
        Contexts(config.trust).current(credential)


def test_a_program_that_is_missing_brings_its_hint(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1beta1"
    entry = f"exec: {{command: no-such-program, apiVersion: {version}, installHint: Get it.}}"
    config: Config = load(one(tmp_path, user=entry))
    with pytest.raises(ConfigError, match=r"(?s)no-such-program is not installed.*Get it"):
        config.credentials.fetch()
