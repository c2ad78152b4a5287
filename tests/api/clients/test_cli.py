"""The command line against a real API server: every verb that needs no node, and every bad day.

SC-004, AC-1, AC-6, AC-8, AC-17. What needs pods that really run is in tests/e2e.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.accounts import account
from tests.api.admin import JOBS, Admin
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import CRD, admin, controller, kubelet, served
from tests.api.odh import ODH, Odh
from tests.api.running import Controller, job
from tests.cluster import Kubectl, define, eventually

__all__ = ["admin", "controller", "kubelet", "served"]

TRAIN = "apis/trainer.kubeflow.org/v1alpha1"
RUN = ("--image", "registry.example.com/train:1", "-w", "2", "--", "python", "train.py")


@pytest.fixture
def odh(admin: Admin) -> Odh:
    return Odh(admin.spec.kubeconfig, admin.namespace)


def someone(admin: Admin, folder: Path, role: str = "") -> Odh:
    """The program in the hands of an account with that ClusterRole in the namespace."""
    who = account(Kubectl(admin.spec, admin.namespace), f"u{secrets.token_hex(3)}", role)
    return Odh(who.kubeconfig(folder), admin.namespace)


@pytest.fixture
def viewer(admin: Admin) -> Iterator[str]:
    """A role that sees jobs and nothing else."""
    name = f"viewer-{secrets.token_hex(3)}"
    rules = [{"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"],
              "verbs": ["get", "list", "watch"]}]  # fmt: skip
    body = {"metadata": {"name": name}, "rules": rules}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    admin.call("POST", path, body)
    yield name
    admin.call("DELETE", f"{path}/{name}")


# --- the life of a job ---------------------------------------------------------------------------


def test_a_job_is_made_seen_changed_and_removed(odh: Odh, admin: Admin) -> None:
    """AC-1, AC-6, AC-8: the id and the time of submission; the six states by the same words."""
    made = odh("mpijob", "create", "train", *RUN)
    stored = admin.job("train")
    assert made.stdout == (
        f"mpijob.kubeflow.org/train created at {stored['metadata']['creationTimestamp']}, "
        f"id {stored['metadata']['uid']}\n"
    )
    assert f"logs --follow train -n {admin.namespace}" in made.stderr
    listed = odh("mpijob", "list").stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATE", "WORKERS", "PROGRESS", "AGE", "DURATION"]
    assert listed[1].split()[:3] == ["train", "Created", "2"]
    assert odh("mpijob", "get", "train").stdout.splitlines()[1].split()[:3] == listed[1].split()[:3]
    got = odh.json("mpijob", "get", "train")
    assert got["metadata"]["uid"] == stored["metadata"]["uid"]
    assert "managedFields" not in got["metadata"]
    odh("mpijob", "suspend", "train")
    assert admin.job("train")["spec"]["runPolicy"]["suspend"] is True
    odh("mpijob", "resume", "train")
    assert admin.job("train")["spec"]["runPolicy"]["suspend"] is False
    assert odh("mpijob", "delete", "train").stdout == "mpijob.kubeflow.org/train deleted\n"
    assert admin.get(f"{JOBS}/mpijobs/train") is None


def test_a_file_goes_as_it_is_with_its_config_map(odh: Odh, admin: Admin) -> None:
    manifest = {**job(1, "filed"), "spec": {**job(1)["spec"], "slotsPerWorker": 2}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
                "data": {"a": "1"}}  # fmt: skip
    text = "\n---\n".join(map(json.dumps, (settings, manifest)))
    odh("mpijob", "create", "-f", "-", data=text)
    assert admin.job("filed")["spec"]["slotsPerWorker"] == 2
    found = admin.get("api/v1/configmaps/settings")
    assert found is not None
    assert found["data"] == {"a": "1"}
    again = odh("mpijob", "create", "other", "-f", "-", data=text)
    assert "configmap/settings exists already and is used as it is" in again.stderr


def test_a_copy_of_a_job_goes_to_the_cluster_with_its_changes(odh: Odh, admin: Admin) -> None:
    odh("mpijob", "create", "train", *RUN)
    made = odh("mpijob", "clone", "train", "train-3", "--workers", "3", "-e", "SEED=1")
    stored = admin.job("train-3")
    assert stored["metadata"]["uid"] in made.stdout
    worker = stored["spec"]["mpiReplicaSpecs"]["Worker"]
    container = worker["template"]["spec"]["containers"][0]
    assert (worker["replicas"], container["image"]) == (3, RUN[RUN.index("--image") + 1])
    assert {"name": "SEED", "value": "1"} in container["env"]
    odh("mpijob", "delete", "train", "train-3")


def test_the_log_of_a_job_whose_pods_are_gone_says_so(odh: Odh, admin: Admin) -> None:
    odh("mpijob", "create", "train", *RUN)
    waiting = odh("mpijob", "logs", "train")
    assert (waiting.stdout, waiting.stderr) == ("", "nothing was printed; train is Created\n")
    ended = {"type": "Succeeded", "status": "True", "reason": "R", "message": "m"}
    admin.patch(f"{JOBS}/mpijobs/train/status", {"status": {"conditions": [ended]}})
    assert "its pods are gone, and what they printed" in odh("mpijob", "logs", "train").stderr
    odh("mpijob", "delete", "train")


def test_wait_ends_with_the_job_and_says_meanwhile_why_it_waits(
    odh: Odh, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-8, SC-012: one watch; the reason has numbers."""
    kubelet.why = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    kubelet.hold = lambda pod: not held.is_set()
    held = _Flag()
    with subprocess.Popen(
        odh.command("mpijob", "create", "train", "--wait", "--timeout", "100s", *RUN),
        env=odh.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as waiting:  # fmt: skip
        assert waiting.stderr is not None
        said = next(line for line in waiting.stderr if "waits:" in line and "3 of 3" in line)
        assert "3 of 3 pods have no node" in said
        assert "of 4 nodes 4 have too little nvidia.com/gpu left" in said
        held.set()
        kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
        assert waiting.wait(60) == 0
        assert "Succeeded after" in waiting.stderr.read()


class _Flag:
    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set


def test_a_failed_job_ends_the_wait_at_once_with_its_reason(
    odh: Odh, kubelet: Kubelet, controller: Controller, admin: Admin
) -> None:
    kubelet.finish = lambda pod: 3 if is_launcher(pod) else None
    admin.create(f"{JOBS}/mpijobs", job(1, "bad", backoffLimit=0))
    ended = odh("mpijob", "wait", "bad", "--timeout", "60s", code=1)
    assert "Failed after" in ended.stderr


def test_describe_says_why_a_job_waits(odh: Odh, admin: Admin) -> None:
    odh("mpijob", "create", "train", *RUN)
    assert "nothing seems to serve it" in odh("mpijob", "describe", "train").stdout
    odh("mpijob", "suspend", "train")
    assert "starts when somebody resumes it" in odh("mpijob", "describe", "train").stdout


def test_every_kind_that_the_cluster_has_is_in_one_list(odh: Odh, admin: Admin) -> None:
    """AC-17: kinds that are not there are no error, unless one is asked for by its name."""
    odh("mpijob", "create", "train", *RUN)
    rows = odh("training", "list").stdout.splitlines()
    assert rows[0].split()[:3] == ["KIND", "NAME", "STATE"]
    assert rows[1].split()[:3] == ["MPIJob", "train", "Created"]
    assert "does not know pytorchjobs" in odh("training", "list", "pytorchjob", code=2).stderr
    assert "is not a kind of training job" in odh("training", "list", "cronjob", code=2).stderr


def test_a_trainjob_is_made_seen_and_removed_by_the_same_verbs(odh: Odh, admin: Admin) -> None:
    """AC-17, by both grammars."""
    _trainjobs_are_served(admin)
    text = _trainjob("tune", admin.namespace)
    made = odh("trainjob", "create", "-f", "-", data=json.dumps(text)).stdout
    assert made.startswith("trainjob.trainer.kubeflow.org/tune created at ")
    for words in (("trainjob", "list"), ("training", "list", "trainjobs"), ("training", "list")):
        assert odh(*words).stdout.splitlines()[1].split()[:3] == ["TrainJob", "tune", "Created"]
    heads, row = odh("trainjob", "list", "-o", "wide").stdout.splitlines()
    assert heads.split()[-1] == "MESSAGE" and "tune" in row
    assert odh("trainjob", "list", "--state", "Created", "--no-headers").stdout.count("\n") == 1
    assert "no jobs" in odh("trainjob", "list", "--state", "Running").stderr
    named = odh("training", "list", "-o", "name").stdout
    assert named == "trainjob.trainer.kubeflow.org/tune\n"
    assert odh.json("training", "get", "trainjob", "tune")["spec"]["trainer"]["numNodes"] == 2
    assert "Id:" in odh("trainjob", "describe", "tune").stdout
    odh("training", "suspend", "trainjob", "tune")
    gone = odh("training", "delete", "trainjob", "tune").stdout
    assert gone == "trainjob.trainer.kubeflow.org/tune deleted\n"


def test_completion_offers_the_jobs_of_the_kind_that_is_typed(odh: Odh, admin: Admin) -> None:
    """In the namespace that is named."""
    _trainjobs_are_served(admin)
    odh("mpijob", "create", "train", *RUN)
    odh("trainjob", "create", "-f", "-", data=json.dumps(_trainjob("tune", admin.namespace)))

    def offered(*words: str) -> str:
        typed = " ".join(("odh", "--kubeconfig", str(odh.kubeconfig), *words))
        env = {"COMP_WORDS": f"{typed} ", "COMP_CWORD": str(len(typed.split()))}
        completing = {**odh.environment(), **env, "_ODH_COMPLETE": "bash_complete"}
        ended = subprocess.run(
            [str(ODH)], env=completing, capture_output=True, text=True, timeout=60, check=False
        )
        return ended.stdout

    here = ("-n", admin.namespace)
    assert offered(*here, "trainjob", "describe") == "plain,tune\n"
    assert offered(*here, "mpijob", "describe") == "plain,train\n"


def test_a_verb_touches_no_job_of_another_kind(odh: Odh, admin: Admin) -> None:
    _trainjobs_are_served(admin)
    odh("mpijob", "create", "both", *RUN)
    for name in ("both", "tune"):
        odh("trainjob", "create", "-f", "-", data=json.dumps(_trainjob(name, admin.namespace)))
    hint = odh("mpijob", "describe", "tune", code=2).stderr
    assert "There is a TrainJob of that name" in hint
    odh("mpijob", "delete", "--all", "--yes")
    assert admin.get(f"{JOBS}/mpijobs/both") is None
    assert {job["metadata"]["name"] for job in admin.every(f"{TRAIN}/trainjobs")} == {
        "both",
        "tune",
    }
    odh("mpijob", "create", "both", *RUN)
    odh("trainjob", "delete", "both")
    assert admin.job("both")["kind"] == "MPIJob"
    assert admin.get(f"{TRAIN}/trainjobs/both") is None
    ended = {"type": "Complete", "status": "True", "reason": "R", "message": "m",
             "lastTransitionTime": "2026-01-31T12:00:00Z"}  # fmt: skip
    admin.patch(f"{TRAIN}/trainjobs/tune/status", {"status": {"conditions": [ended]}})
    assert "tune deleted" in odh("trainjob", "prune", "--older-than", "0").stdout
    assert "nothing to prune" in odh("trainjob", "prune", "--older-than", "0").stderr
    assert admin.job("both")["kind"] == "MPIJob"


def _trainjobs_are_served(admin: Admin) -> None:
    define(Kubectl(admin.spec), CRD.parent, "trainjobs", "clustertrainingruntimes")


def _trainjob(name: str, namespace: str) -> dict[str, Any]:
    spec = {"runtimeRef": {"name": "mpi-openmpi-cpu"}, "trainer": {"numNodes": 2}}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec}  # fmt: skip


def test_a_copy_has_a_life_of_its_own(odh: Odh, admin: Admin) -> None:
    """Neither the old job's record nor its restarts; and code in a ConfigMap of its own."""
    odh("mpijob", "create", "train", *RUN[:4], "--workdir", str(Path(__file__).parents[1] / "full"),
        *RUN[4:])  # fmt: skip
    ours = "mpi-trainer.opendatahub.io"
    notes = {f"{ours}/record": "{}", f"{ours}/restarts": "2"}
    admin.patch(f"{JOBS}/mpijobs/train", {"metadata": {"annotations": notes}})
    odh("mpijob", "clone", "train", "copy")
    copy = admin.job("copy")
    code = copy["metadata"]["annotations"][f"{ours}/code"]
    assert not notes.keys() & copy["metadata"]["annotations"].keys()
    stored = admin.get(f"api/v1/configmaps/{code}")
    assert stored is not None
    assert stored["metadata"]["ownerReferences"][0]["uid"] == copy["metadata"]["uid"]
    spec = copy["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert [v["configMap"]["name"] for v in spec["volumes"] if "configMap" in v] == [code]
    odh("mpijob", "delete", "train", "copy")


def test_what_a_cluster_could_not_heed_is_refused(odh: Odh, admin: Admin, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    train = _trainjob("tune", admin.namespace)
    file.write_text(json.dumps(train))
    for words in (("--mpi", "mpich"), ("--runtime", str(file)), ("--claim", "a=/b")):
        said = odh("trainjob", "create", "-f", str(file), *words, code=2).stderr
        assert "cluster" in said
    file.write_text(json.dumps(job(1, "filed")))
    said = odh("mpijob", "create", "-f", str(file), "--mpi", "mpich", code=2).stderr
    assert "spec.mpiImplementation" in said
    file.write_text(json.dumps({**train, "metadata": {"name": "tune", "namespace": "elsewhere"}}))
    said = odh("trainjob", "create", "-f", str(file), code=2).stderr
    assert f"the file says namespace elsewhere, -n says {admin.namespace}" in said


def test_the_context_s_namespace_gives_way_to_the_file_s(
    odh: Odh, admin: Admin, tmp_path: Path
) -> None:
    """As with kubectl; and what the job mounts goes where the job goes."""
    place = {"namespace": admin.namespace}
    manifest = {**job(1, "filed"), "metadata": {"name": "filed", **place}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"},
                "data": {"a": "1"}}  # fmt: skip
    file = tmp_path / "job.yaml"
    file.write_text("\n---\n".join(map(json.dumps, (settings, manifest))))
    config = ("--kubeconfig", str(odh.kubeconfig))
    for more in ((), ("-o", "name")):  # the short way, and the long one
        words = [str(ODH), *config, "mpijob", "create", "-f", str(file), *more]
        subprocess.run(words, env=odh.environment(), check=True, timeout=60)
        assert admin.job("filed")["spec"]
        assert admin.get("api/v1/configmaps/beside") is not None
        odh("mpijob", "delete", "filed")


def test_waiting_for_the_end_of_a_job_that_is_gone_is_over(odh: Odh) -> None:
    assert "nobody is deleted" in odh("mpijob", "wait", "nobody", "--for", "Deleted").stderr


# --- refusals ------------------------------------------------------------------------------------


def test_a_taken_name_and_a_missing_job_say_what_to_do(odh: Odh) -> None:
    odh("mpijob", "create", "train", *RUN)
    assert "already exists" in odh("mpijob", "create", "train", *RUN, code=2).stderr
    assert "Did you mean `train`?" in odh("mpijob", "get", "trian", code=2).stderr
    assert "not found" in odh("mpijob", "delete", "nobody", code=2).stderr


def test_the_server_s_own_refusal_is_readable(odh: Odh, admin: Admin) -> None:
    """A quota on the number of jobs, which no check on this side can know."""
    few = {"metadata": {"name": "few"}, "spec": {"hard": {"count/mpijobs.kubeflow.org": "0"}}}
    admin.create("api/v1/resourcequotas", few)
    quota = "api/v1/resourcequotas/few"
    eventually(
        "the quota is counted",
        lambda: bool(((admin.get(quota) or {}).get("status") or {}).get("hard")),
    )
    text = json.dumps(job(1, "much"))
    said = odh("validate", "--server", "-f", "-", data=text, code=2).stderr
    assert "quota exceeded: `few` has no room" in said
    assert (
        "quota exceeded: `few` has no room"
        in odh("mpijob", "create", "-f", "-", data=text, code=2).stderr
    )
    assert admin.get(f"{JOBS}/mpijobs/much") is None


def test_validate_asks_the_server_and_makes_nothing(odh: Odh, admin: Admin) -> None:
    text = json.dumps(job(1, "fine"))
    said = odh("validate", "--server", "-f", "-", data=text).stdout
    assert said == "-: valid (fine), and the cluster would take it\n"
    assert admin.get(f"{JOBS}/mpijobs/fine") is None


def test_validate_asks_the_server_about_a_trainjob_too(odh: Odh, admin: Admin) -> None:
    _trainjobs_are_served(admin)
    fine = json.dumps(_trainjob("fine", admin.namespace))
    said = odh("validate", "--server", "-f", "-", data=fine)
    assert said.stdout == "-: valid (fine), and the cluster would take it\n"
    assert admin.get(f"{TRAIN}/trainjobs/fine") is None
    lost = json.dumps(_trainjob("lost", "nowhere"))
    refused = odh("validate", "--server", "-f", "-", data=lost, code=2).stderr
    assert "nowhere" in refused


def test_whoever_may_not_is_told_which_right_is_missing(
    admin: Admin, viewer: str, tmp_path: Path
) -> None:
    someone_else = someone(admin, tmp_path, viewer)
    assert "no jobs in namespace" in someone_else("mpijob", "list").stderr
    refused = someone_else("mpijob", "create", "train", *RUN, code=2).stderr
    assert f"may not create mpijobs.kubeflow.org in namespace {admin.namespace}" in refused
    assert "the role mpijob-user has it" in refused
    elsewhere = someone_else("mpijob", "list", "-n", "kube-system", code=2).stderr
    assert "may not list mpijobs.kubeflow.org in namespace kube-system" in elsewhere


def test_an_administrator_acts_as_somebody_else(odh: Odh) -> None:
    refused = odh("mpijob", "list", "--as", "nobody-at-all", code=2).stderr
    assert "you (nobody-at-all) may not list mpijobs" in refused


def test_a_refused_login_says_log_in_again(odh: Odh, admin: Admin, tmp_path: Path) -> None:
    stranger = someone(admin, tmp_path)
    text = stranger.kubeconfig.read_text()
    config = json.loads(text)
    config["users"][0]["user"]["token"] = "expired"
    stranger.kubeconfig.write_text(json.dumps(config))
    for verb in (("list",), ("create", "x", *RUN), ("delete", "x")):
        assert "Log in again" in stranger("mpijob", *verb, code=2).stderr, verb


def test_a_wrong_context_and_a_missing_file_are_told(odh: Odh) -> None:
    wrong = odh("mpijob", "list", "--context", "nope", code=2).stderr
    assert "there is no context 'nope'; choose another one (there are: default)" in wrong
    absent = odh("mpijob", "list", "--kubeconfig", "/nowhere/config", code=2).stderr
    assert "/nowhere/config: no such file" in absent


def test_a_server_that_is_not_there_is_told_at_once(odh: Odh, tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [], "contexts": [{"name": "it", "context": {"cluster": "it"}}],
    }  # fmt: skip
    (tmp_path / "config").write_text(json.dumps(config))
    for verb in (("list",), ("delete", "x")):
        began = time.monotonic()
        said = odh("mpijob", *verb, "--kubeconfig", str(tmp_path / "config"), code=2).stderr
        assert "no connection to https://127.0.0.1:1" in said
        assert time.monotonic() - began < 20


def test_two_who_delete_at_once_do_no_harm(odh: Odh, admin: Admin) -> None:
    odh("mpijob", "create", "train", *RUN)
    both = [
        subprocess.Popen(
            odh.command("mpijob", "delete", "train", "--ignore-not-found"),
            env=odh.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for one in both:
        _, said = one.communicate(timeout=60)
        assert one.returncode == 0, said
    assert admin.get(f"{JOBS}/mpijobs/train") is None


def test_a_job_deleted_while_it_is_waited_for_ends_the_waiting(odh: Odh, admin: Admin) -> None:
    odh("mpijob", "create", "train", *RUN)
    with subprocess.Popen(
        odh.command("mpijob", "wait", "train", "--verbose"),
        env=odh.environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert "train is Created" in waiting.stderr.readline()
        admin.delete(f"{JOBS}/mpijobs/train")
        assert waiting.wait(60) == 2
        assert "was deleted before it was Succeeded" in waiting.stderr.read()


# --- the cluster itself --------------------------------------------------------------------------


def test_the_plugin_names_call_the_same_program(odh: Odh) -> None:
    for name in ("oai-cli", "kubectl-odh", "oc-odh"):
        words = odh.command("mpijob", "get", "nobody")
        words[0] = str(ODH.with_name(name))
        ended = subprocess.run(
            words, env=odh.environment(), capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 2
        assert name.replace("-odh", " odh") in ended.stderr


def test_local_jobs_stay_reachable_beside_a_cluster(odh: Odh, tmp_path: Path) -> None:
    local = Odh(odh.kubeconfig, odh.namespace, {"XDG_STATE_HOME": str(tmp_path)})
    assert "no jobs in namespace" in local("mpijob", "list", "--backend", "local").stderr
