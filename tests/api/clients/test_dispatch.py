"""`odh mpijob create -f` has a short way and a long way, and nobody can tell which it took.

SC-004, AC-1. Every case runs twice: as people write it, and with `--backend cluster`, which the
short way does not know, so that the command itself does the work.
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

LONG_WAY = ("--backend", "cluster")
SLOW = {"click", "asyncio", "aiohttp", "inspect", "tempfile", "subprocess", "yaml"}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
            "data": {"a": "1"}}  # fmt: skip


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
    """Exit code, output and errors, without what differs between two jobs."""
    ended = subprocess.run(
        odh.command(*words), env=odh.environment(), capture_output=True, text=True, timeout=60
    )
    return ended.returncode, _alike(ended.stdout), _alike(ended.stderr)


def _alike(told: str) -> str:
    return re.sub(r"made-\w+|\d{4}-[-\d]+T[\d:]+Z|id [-0-9a-f]{36}", "…", told)


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        (text(unnamed()), (), 0),
        (text(unnamed(), unnamed()), (), 0),
        (text(unnamed(), {**SETTINGS, "metadata": {"name": "there"}}), (), 0),
        (text(with_policy(cleanPodPolicy="Sometimes")), (), 2),
        (text(with_policy(cleanPodPolicies="All")), (), 2),
        (text(unnamed(labels={"a": "not a label!"})), (), 2),
        (text(unnamed(namespace="elsewhere")), (), 2),
        (text(unnamed(ownerReferences=[{"nonsense": 1}])), (), 2),
        (text(job(1, "taken")), (), 2),
        (text(unnamed()), ("-n", "no-such-namespace"), 2),
        (text(unnamed()), ("-n", "Not_A_Name"), 2),
        (text(unnamed()), ("--as", "nobody"), 2),
        (text(unnamed()), ("--context", "nowhere"), 2),
        (text(unnamed()), ("--kubeconfig", "/no/such/file"), 2),
        (text(SETTINGS), (), 2),
        ("a: [", (), 2),
        ("", (), 2),
    ],
)
def test_both_ways_say_the_same(
    odh: Odh, admin: Admin, tmp_path: Path, content: str, words: tuple[str, ...], code: int
) -> None:
    admin.create("apis/kubeflow.org/v2beta1/mpijobs", job(1, "taken"))
    admin.create("api/v1/configmaps", {**SETTINGS, "metadata": {"name": "there"}})
    file = tmp_path / "job.yaml"
    file.write_text(content)
    call = ("mpijob", "create", "-f", str(file), *words)
    short = outcome(odh, *call)
    assert short == outcome(odh, *call, *LONG_WAY)
    assert short[0] == code


def test_a_warning_is_said_either_way(odh: Odh, tmp_path: Path) -> None:
    made = unnamed()
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["imag"] = "x"
    file = tmp_path / "job.yaml"
    file.write_text(text(made))
    short = outcome(odh, "mpijob", "create", "-f", str(file))
    assert short == outcome(odh, "mpijob", "create", "-f", str(file), *LONG_WAY)
    assert "did you mean `image`?" in short[2]


def test_both_ways_send_the_same(odh: Odh, admin: Admin, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    stored = []
    for way in ((), LONG_WAY):
        file.write_text(text(job(2, f"job-{len(way)}")))
        odh("mpijob", "create", "-f", str(file), *way)
        stored.append(admin.job(f"job-{len(way)}")["spec"])
    assert stored[0] == stored[1]


def test_who_may_not_is_told_so_either_way(admin: Admin, tmp_path: Path) -> None:
    who = account(Kubectl(admin.spec, admin.namespace), "nobody", "")
    odh = Odh(who.kubeconfig(tmp_path), admin.namespace)
    file = tmp_path / "job.yaml"
    file.write_text(text(unnamed()))
    short = outcome(odh, "mpijob", "create", "-f", str(file))
    assert short == outcome(odh, "mpijob", "create", "-f", str(file), *LONG_WAY)
    assert "may not create mpijobs.kubeflow.org" in short[2]


def test_a_server_that_is_away_is_told_of_either_way(odh: Odh, tmp_path: Path) -> None:
    config = json.loads(odh.kubeconfig.read_text())
    for cluster in config["clusters"]:
        cluster["cluster"]["server"] = "https://127.0.0.1:1"
    away = tmp_path / "kubeconfig"
    away.write_text(json.dumps(config))
    file = tmp_path / "job.yaml"
    file.write_text(text(unnamed()))
    nowhere = Odh(away, odh.namespace)
    short = outcome(nowhere, "mpijob", "create", "-f", str(file))
    assert short == outcome(nowhere, "mpijob", "create", "-f", str(file), *LONG_WAY)
    assert short[0] == 2
    assert "is it running?" in short[2]


@pytest.mark.parametrize("before", [True, False], ids=["before the kind", "after the verb"])
def test_the_short_way_imports_nothing_slow(odh: Odh, tmp_path: Path, before: bool) -> None:
    """Each of them costs what kubectl takes in all, or a good part of it."""
    file = tmp_path / "job.yaml"
    file.write_text(text(unnamed()))
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(json.loads(odh.kubeconfig.read_text())))
    where = ("--kubeconfig", str(config), "-n", odh.namespace)
    call = ("mpijob", "create", "-f", str(file))
    words = (*where, *call) if before else (*call, *where)
    assert not SLOW & imported(odh, *words)
    assert "click" in imported(odh, *words, *LONG_WAY)


def imported(odh: Odh, *words: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", ODH, *words],
        env=odh.environment(), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(re.findall(r"^import time:.*\| +(\S+)$", ended.stderr, re.M))


def test_a_pipe_is_read_once(odh: Odh) -> None:
    """The long way could not read it again after the short way had."""
    words = " ".join(odh.command("mpijob", "create", "-f", '<(printf "a: [")'))
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
    for way in ((), LONG_WAY):
        subprocess.run(
            [*plain, "-n", admin.namespace, *way], env=odh.environment(), timeout=60, check=True
        )
        assert admin.get("api/v1/configmaps/settings") is not None
        admin.delete("api/v1/configmaps/settings")
