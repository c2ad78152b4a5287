"""Where jobs go when nobody says where, and that somebody is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.client import connect as module
from mpi_trainer.sdk.client import workbench
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.errors import JobError

NOTHING = (
    *("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "OPENSHIFT_API_URL", "NOTEBOOK_USER_TOKEN"),
    *("MPI_TRAINER_BACKEND", "CF_SDK_CA_CERT_PATH", "SSL_CERT_FILE", "NB_PREFIX"),
)


@pytest.fixture(autouse=True)
def nothing_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NOTHING:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(module, "_said", [])
    return tmp_path


def kubeconfig(path: Path, server: str = "https://one:6443", namespace: str = "team") -> Path:
    content = {
        "current-context": "a",
        "clusters": [
            {"name": "c", "cluster": {"server": server}},
            {"name": "d", "cluster": {"server": "https://two:6443"}},
        ],
        "contexts": [
            {"name": "a", "context": {"cluster": "c", "namespace": namespace}},
            {"name": "b", "context": {"cluster": "d"}},
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_machine_is_taken_where_there_is_no_cluster_and_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [connect().name, connect().name] == ["local", "local"]
    said = capsys.readouterr().err
    assert said == "mpi-trainer: no cluster is configured here, so jobs run on this machine\n"


def test_cluster_that_is_demanded_and_not_there_is_an_error() -> None:
    with pytest.raises(JobError, match="no kubeconfig"):
        connect(local=False)
    with pytest.raises(JobError, match="no kubeconfig"):
        connect(context="prod")


def test_login_in_the_home_folder_is_found(tmp_path: Path) -> None:
    kubeconfig(tmp_path / ".kube/config")
    found = connect()
    assert (found.name, found.namespace) == ("https://one:6443", "team")


def test_variable_wins_over_home_and_words_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig(tmp_path / ".kube/config", "https://home:6443")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "other", "https://var:6443")))
    assert connect().name == "https://var:6443"
    assert connect(context="b", namespace="mine").namespace == "mine"
    said = kubeconfig(tmp_path / "said", "https://said:6443")
    assert connect(kubeconfig=said).name == "https://said:6443"
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    assert connect().name == "local"
    assert connect(kubeconfig=said).name == "https://said:6443", "words win over variables"
    assert connect(local=True).name == "local"


def test_variable_that_names_no_file_is_no_reason_to_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    with pytest.raises(JobError, match="gone: no such file"):
        connect()


def test_workbench_s_user_is_taken_with_its_project_and_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSHIFT_API_URL", "https://api.lab:6443/")
    monkeypatch.setenv("NOTEBOOK_USER_TOKEN", "sha256~secret\n")
    monkeypatch.setenv("NB_PREFIX", "/notebook/fraud/jane")
    authority = tmp_path / "ca.crt"
    authority.write_text("x")
    monkeypatch.setenv("CF_SDK_CA_CERT_PATH", str(authority))
    found = connect()
    assert isinstance(found, ClusterBackend)
    assert (found.name, found.namespace) == ("https://api.lab:6443", "fraud")
    assert found.config.trust.authority_file == str(authority) and not found.config.trust.insecure
    assert "secret" not in repr(found.config)
    kubeconfig(tmp_path / ".kube/config")
    assert connect().name == "https://one:6443", "a login of one's own wins"


def test_workbench_s_files_give_namespace_and_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSHIFT_API_URL", "https://api.lab:6443")
    monkeypatch.setenv("NOTEBOOK_USER_TOKEN", "t")
    (tmp_path / "namespace").write_text("project\n")
    (tmp_path / "ca.crt").write_text("x")
    config = workbench.config(account=tmp_path)
    assert config.namespace == "project"
    if not workbench.BUNDLE.exists():
        assert config.trust.authority_file == str(tmp_path / "ca.crt")


def test_address_without_tls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSHIFT_API_URL", "http://api.lab")
    monkeypatch.setenv("NOTEBOOK_USER_TOKEN", "t")
    with pytest.raises(ConfigError, match="must be a URL such as https"):
        workbench.config()
    with pytest.raises(JobError, match="OPENSHIFT_API_URL"):
        connect()
