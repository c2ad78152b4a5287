"""The pods of PyTorchJobs and TFJobs in our tests are the training operator's own (AC-17).

The operator runs as a process beside an API server without nodes. Its webhooks listen, because it
does not start without, and the configuration that it insists on names none of them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster import Kubectl, eventually, shared_cluster
from tests.older_kinds import Object, define_older, older_job, operators_pods
from tools.cluster.build import build
from tools.cluster.components import TRAINING_OPERATOR
from tools.cluster.ports import unused_port
from tools.cluster.spec import Spec

CONTAINER = {"image": "localhost/train:1", "command": ["true"]}
JOBS = {
    "torch": ("PyTorchJob", {"Master": 1, "Worker": 2}),
    "elastic": ("PyTorchJob", {"Worker": 2}),
    "chief": ("TFJob", {"Chief": 1, "PS": 1, "Worker": 2, "Evaluator": 1}),
    "plain": ("TFJob", {"PS": 1, "Worker": 2}),
}
# The certificates' folder cannot be chosen, so the process has a /tmp of its own.
START = """\
mount -t tmpfs none /tmp && mkdir -p /tmp/k8s-webhook-server/serving-certs &&
cp "$1/admin.crt" /tmp/k8s-webhook-server/serving-certs/tls.crt &&
cp "$1/admin.key" /tmp/k8s-webhook-server/serving-certs/tls.key &&
shift && exec "$@"
"""

pytestmark = [
    pytest.mark.timeout(300, func_only=True),
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Spec]:
    yield from shared_cluster(Spec(name="test-training-operator", profile="api"))


@pytest.fixture(scope="module")
def kubectl(server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A namespace in which the training operator makes the pods."""
    kubectl = Kubectl(server, f"older-{secrets.token_hex(4)}")
    kubectl("create", "namespace", kubectl.namespace)
    define_older(kubectl)
    webhooks = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validator.training-operator.kubeflow.org"},
    }
    certificate = {"metadata": {"name": "training-operator-webhook-cert"}, "kind": "Secret"}
    kubectl.apply(webhooks, {"apiVersion": "v1", **certificate})
    program = build([TRAINING_OPERATOR])["training-operator"].bin / "training-operator"
    flags = [
        f"--kubeconfig={server.kubeconfig}",
        f"--webhook-server-port={unused_port()}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--enable-scheme=pytorchjob",
        "--enable-scheme=tfjob",
    ]
    inside = ["sh", "-c", START, "start", str(server.state / "pki"), str(program), *flags]
    log = tmp_path_factory.mktemp("operator") / "log"
    env = {**os.environ, "MY_POD_NAMESPACE": kubectl.namespace}
    with (
        log.open("wb") as output,
        subprocess.Popen(["unshare", "-m", *inside], stdout=output, stderr=output, env=env) as one,
    ):
        try:
            yield kubectl
        except BaseException:
            print(log.read_text()[-4000:])
            raise
        finally:
            one.terminate()


@pytest.mark.parametrize("name", JOBS)
def test_pods_of_our_tests_are_the_operators(kubectl: Kubectl, name: str) -> None:
    kind, replicas = JOBS[name]
    kubectl.apply(older_job(kind, name, replicas, CONTAINER))
    stored = kubectl.get(f"{kind.lower()}s.kubeflow.org", name)
    expected = sorted(map(_identity, operators_pods(stored)), key=str)
    pods = f"api/v1/pods?labelSelector=training.kubeflow.org/job-name={name}"

    def made() -> list[Object]:
        return sorted(map(_identity, kubectl.read(pods)["items"]), key=str)

    eventually("its pods", lambda: len(made()) == len(expected), 60)
    assert made() == expected


def _identity(pod: Object) -> Object:
    meta = pod["metadata"]
    return {key: meta[key] for key in ("name", "labels", "ownerReferences")}
