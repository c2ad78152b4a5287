"""`odh mpijob create -f` on a cluster: what is sent, what is said, and what it does not import.

SC-004, AC-1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.api.accounts import account
from tests.api.admin import Admin, Object
from tests.api.lab import admin, served
from tests.api.odh import ODH, Odh
from tests.api.running import job
from tests.cluster import Kubectl

__all__ = ["admin", "served"]

SLOW = {"aiohttp", "mpi_trainer.kube.client"}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"a": "1"}}  # fmt: skip
RECEIPT = r"mpijob\.kubeflow\.org/made-\w+ created at \d{4}-[-\d]+T[\d:]+Z, id [-0-9a-f]{36}"


@pytest.fixture
def odh(admin: Admin) -> Odh:
    return Odh(admin.spec.kubeconfig, admin.namespace)


def text(*objects: Object) -> str:
    return "\n---\n".join(map(json.dumps, objects))


def unnamed(**changes: object) -> Object:
    made = job(1)
    return {**made, "metadata": {"generateName": "made-", **changes}}


def with_policy(**policy: object) -> Object:
    made = unnamed()
    return {**made, "spec": {**made["spec"], "runPolicy": policy}}


def outcome(odh: Odh, *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    ended = subprocess.run(
        odh.command(*words), env=odh.environment(), capture_output=True, text=True, timeout=60
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("content", "words", "code", "said"),
    [
        (text(unnamed()), (), 0, "follow it with `odh mpijob logs --follow made-"),
        (text(unnamed(), unnamed()), (), 0, "follow it with"),
        (text(unnamed(), {**SETTINGS, "metadata": {"name": "there"}}), (), 0,
         "configmap/there exists already and is used as it is"),
        (text(with_policy(cleanPodPolicy="Sometimes")), (), 2, "cleanPodPolicy"),
        (text(with_policy(cleanPodPolicies="All")), (), 2, "no such field; the fields here are"),
        (text(unnamed(labels={"a": "not a label!"})), (), 2, "label"),
        (text(unnamed(namespace="elsewhere")), (), 2, "the file says namespace elsewhere"),
        (text(unnamed(ownerReferences=[{"nonsense": 1}])), (), 2, "ownerReferences"),
        (text(job(1, "taken")), (), 2, "taken"),
        (text(unnamed()), ("-n", "no-such-namespace"), 2, "no-such-namespace"),
        (text(unnamed()), ("-n", "Not_A_Name"), 2, "Not_A_Name"),
        (text(unnamed()), ("--as", "nobody"), 2, "nobody"),
        (text(unnamed()), ("--context", "nowhere"), 2, "nowhere"),
        (text(unnamed()), ("--kubeconfig", "/no/such/file"), 2, "/no/such/file"),
        (text(SETTINGS), (), 2, "the file holds no MPIJob"),
        ("a: [", (), 2, "job.yaml:2:1: Syntax error"),
        ("", (), 2, "the file holds no document"),
    ],
)  # fmt: skip
def test_what_is_said_and_the_exit_code(  # noqa: PLR0913 - a table of cases
    odh: Odh, admin: Admin, tmp_path: Path, content: str, words: tuple[str, ...], code: int,
    said: str,
) -> None:  # fmt: skip
    admin.create("apis/kubeflow.org/v2beta1/mpijobs", job(1, "taken"))
    admin.create("api/v1/configmaps", {**SETTINGS, "metadata": {"name": "there"}})
    file = tmp_path / "job.yaml"
    file.write_text(content)
    found, out, err = outcome(odh, "mpijob", "create", "-f", str(file), *words)
    assert (found, said in err) == (code, True), err
    receipts = [line for line in out.splitlines() if re.fullmatch(RECEIPT, line)]
    assert len(receipts) == (0 if code else content.count("made-")), out


def test_a_warning_is_said(odh: Odh, tmp_path: Path) -> None:
    made = unnamed()
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["imag"] = "x"
    file = tmp_path / "job.yaml"
    file.write_text(text(made))
    code, _, err = outcome(odh, "mpijob", "create", "-f", str(file))
    assert (code, err.count("did you mean `image`?")) == (2, 1)  # the server refuses it too


def test_the_job_is_stored_as_it_is_written(odh: Odh, admin: Admin, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text(job(2, "written")))
    odh("mpijob", "create", "-f", str(file))
    wanted = job(2, "written")["spec"]["mpiReplicaSpecs"]
    stored = admin.job("written")["spec"]["mpiReplicaSpecs"]
    assert {role: one["template"] for role, one in stored.items()} == {
        role: one["template"] for role, one in wanted.items()
    }


def test_who_may_not_is_told_so(admin: Admin, tmp_path: Path) -> None:
    who = account(Kubectl(admin.spec, admin.namespace), "nobody", "")
    odh = Odh(who.kubeconfig(tmp_path), admin.namespace)
    file = tmp_path / "job.yaml"
    file.write_text(text(unnamed()))
    code, out, err = outcome(odh, "mpijob", "create", "-f", str(file))
    assert (code, out) == (2, "")
    assert "may not create mpijobs.kubeflow.org" in err


def test_a_server_that_is_away_is_told_of(odh: Odh, tmp_path: Path) -> None:
    config = json.loads(odh.kubeconfig.read_text())
    for cluster in config["clusters"]:
        cluster["cluster"]["server"] = "https://127.0.0.1:1"
    away = tmp_path / "kubeconfig"
    away.write_text(json.dumps(config))
    file = tmp_path / "job.yaml"
    file.write_text(text(unnamed()))
    nowhere = Odh(away, odh.namespace)
    code, out, err = outcome(nowhere, "mpijob", "create", "-f", str(file))
    assert (code, out) == (2, "")
    assert "is it running?" in err


@pytest.mark.parametrize("before", [True, False], ids=["before the kind", "after the verb"])
@pytest.mark.parametrize("verb", ["create", "list", "get"])
def test_short_commands_do_not_import_the_large_client(
    odh: Odh, admin: Admin, tmp_path: Path, verb: str, before: bool
) -> None:
    """It takes longer to import than a short command may take in all."""
    admin.create("apis/kubeflow.org/v2beta1/mpijobs", job(1, "there"))
    file = tmp_path / "job.yaml"
    file.write_text(text(unnamed()))
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(json.loads(odh.kubeconfig.read_text())))
    where = ("--kubeconfig", str(config), "-n", odh.namespace)
    more = {"create": ("-f", str(file)), "list": (), "get": ("there",)}[verb]
    call = ("mpijob", verb, *more)
    assert not SLOW & imported(odh, *((*where, *call) if before else (*call, *where)))


def imported(odh: Odh, *words: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", ODH, *words],
        env=odh.environment(), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(re.findall(r"^import time:.*\| +(\S+)$", ended.stderr, re.M))


def test_a_pipe_is_read_once(odh: Odh) -> None:
    words = " ".join([str(ODH), *odh.command("mpijob", "create", "-f", '<(printf "a: [")')[1:]])
    ended = subprocess.run(
        ["bash", "-c", words], env=odh.environment(), capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert "while parsing a flow node" in ended.stderr


def test_config_maps_go_where_the_job_goes(odh: Odh, admin: Admin, tmp_path: Path) -> None:
    """Also where the context's own namespace is another one."""
    file = tmp_path / "job.yaml"
    file.write_text(text(SETTINGS, unnamed()))
    plain = [str(ODH), "--kubeconfig", str(odh.kubeconfig), "mpijob", "create", "-f", str(file)]
    subprocess.run([*plain, "-n", admin.namespace], env=odh.environment(), timeout=60, check=True)
    assert admin.get("api/v1/configmaps/settings") is not None
