"""Fixtures for tests against the real thing: an API server, or a cluster of three nodes.

A test names what it needs; all tests of a run share one cluster of each kind, and a cluster that
was up before the run is used and left up. Where nodes cannot run the test is skipped with the
reason, and under `CI=true` it fails instead. After a failure the logs of every component are
kept as files, and the report says where.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tools.cluster import debian, images
from tools.cluster.client import Client
from tools.cluster.down import down
from tools.cluster.paths import cache_root
from tools.cluster.report import environment, log_files
from tools.cluster.spec import Spec, load
from tools.cluster.up import up, why_unhealthy
from tools.cluster.user_images import USER_IMAGES, build_image

ADDONS: Final = ("dns", "jobset", "kueue", "netpol", "scc")
MPI_IMAGES: Final = frozenset({"mpi-openmpi", "mpi-openmpi5", "mpi-mpich", "mpi-intel"})
UID_RANGE: Final = "1000740000/10000"
_KEEP: Final = "MPI_TRAINER_KEEP_CLUSTER"
_KUBERNETES: Final = "MPI_TRAINER_KUBERNETES"
_APART: Final = "MPI_TRAINER_APART"
"""a word for the names of clusters, so that two runs at once share none"""
_PATHS: Final = {
    "pod": "api/v1/pods",
    "job": "apis/batch/v1/jobs",
    "jobset": "apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "mpijob": "apis/kubeflow.org/v2beta1/mpijobs",
    "trainjob": "apis/trainer.kubeflow.org/v1alpha1/trainjobs",
}
"""what tests look at again and again, without kubectl"""
_running: list[Spec] = []

Object = dict[str, Any]


class Kubectl(msgspec.Struct, frozen=True):
    """The cluster's own kubectl, in one namespace."""

    spec: Spec
    namespace: str = "default"

    def __call__(self, *arguments: str, data: str | None = None, seconds: float = 120) -> str:
        """Run kubectl to its end; its output, or an AssertionError with what it said."""
        answer = self.attempt(*arguments, data=data, seconds=seconds)
        assert answer.returncode == 0, f"kubectl {' '.join(arguments)}: {answer.stderr}"
        return answer.stdout

    def attempt(
        self, *arguments: str, data: str | None = None, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, whatever comes of it."""
        return subprocess.run(
            ["kubectl", f"--namespace={self.namespace}", *arguments],
            input=data,
            env=environment(self.spec),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def apply(self, *objects: Object) -> None:
        """Apply objects as they are."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self("apply", "-f", "-", data=json.dumps(document))

    def get(self, kind: str, name: str) -> Object:
        """One object."""
        if kind in _PATHS:
            return self.read(f"{_PATHS[kind]}/{name}")
        found: Object = json.loads(self("get", kind, name, "-o", "json"))
        return found

    def read(self, path: str) -> Object:
        """What the API server has at a path of this namespace, such as `api/v1/pods`. For looks in
        a row: kubectl takes a tenth of a second of the machine for each."""
        where = re.sub(r"^(apis?/(?:[^/]+/)?v[^/]+)/", rf"/\1/namespaces/{self.namespace}/", path)
        found: Object = Client(self.spec).get(where)
        assert found, f"there is no {where}"
        return found

    def wait(self, *arguments: str, seconds: int = 150) -> None:
        """`kubectl wait`, with a limit."""
        self("wait", f"--timeout={seconds}s", *arguments, seconds=seconds + 10)

    def run_in(self, pod: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a pod, whatever comes of it."""
        return self.attempt("exec", pod, "--", *command)


def eventually(what: str, check: Callable[[], bool], seconds: float = 90) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"{what}: not after {seconds} s"
        time.sleep(0.2)  # a look; the loop has a deadline


def define(kubectl: Kubectl, folder: Path, *kinds: str) -> None:
    """Apply a folder of definitions and wait until the kinds are served, unless they are already:
    to apply them takes seconds."""
    if not kubectl.attempt("get", ",".join(kinds)).returncode:
        return
    kubectl("apply", "-k", str(folder))
    for kind in kinds:
        # Not `kubectl wait`: it fails where a definition has no conditions yet.
        eventually(kind, lambda kind=kind: not kubectl.attempt("get", kind).returncode)  # type: ignore[misc]


def shared_cluster(wanted: Spec) -> Iterator[Spec]:
    """The running cluster as asked; ended after the run only if the run started it."""
    require(wanted)
    before = load(wanted.name)
    was_up = before is not None and not why_unhealthy(before)
    spec = up(wanted)
    _running.append(spec)
    yield spec
    _running.remove(spec)
    if not was_up and os.environ.get(_KEEP) != "1":
        down(spec.name)


def require(wanted: Spec) -> None:
    """Skip where this cluster cannot run; fail there under `CI=true`."""
    reason = _why_not(wanted)
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"needs a real cluster: {reason}")
    if reason:
        pytest.skip(f"needs a real cluster: {reason}")


def _why_not(wanted: Spec) -> str:
    """Why this cluster cannot run here; empty if it can."""
    if not shutil.which("go"):
        return "Go is not installed"
    if not wanted.needs_root:
        return ""
    packages = debian.missing(debian.NODE_PROGRAMS)
    if packages and not debian.why_no_nodes():
        return f"missing {', '.join(packages)}; see `python -m tools.cluster setup`"
    return debian.why_no_nodes()


def api_spec(name: str, audit_users: tuple[str, ...] = ()) -> Spec:
    """An API server without nodes; the oldest one that we support, if the run asks for it."""
    oldest = os.environ.get(_KUBERNETES) == "oldest"
    words = (name, os.environ.get(_APART, ""), "oldest" if oldest else "")
    return Spec(
        name="-".join(filter(None, words)),
        profile="api",
        audit=bool(audit_users),
        audit_users=audit_users,
        oldest=oldest,
    )


@pytest.fixture(scope="session")
def api_server() -> Iterator[Spec]:
    """A real API server with etcd and the controller manager; no nodes, no root."""
    yield from shared_cluster(api_spec("test-api"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Spec]:
    """Three real nodes with cluster DNS, JobSet, Kueue, network policies and OpenShift's SCC."""
    name = "-".join(filter(None, ("test", os.environ.get(_APART, ""))))
    yield from shared_cluster(Spec(name=name, profile="full", addons=ADDONS))


def restricted(name: str) -> Object:
    """A namespace as OpenShift makes them: restricted, with a range of user ids."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            "annotations": {
                "openshift.io/sa.scc.uid-range": UID_RANGE,
                "openshift.io/sa.scc.supplemental-groups": UID_RANGE,
            },
        },
    }


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a fresh namespace under OpenShift's rules; deleted after the test."""
    name = f"test-{secrets.token_hex(4)}"
    client, path = Client(kubectl.spec), f"/api/v1/namespaces/{name}"
    client.apply(path, restricted(name))
    yield Kubectl(kubectl.spec, name)
    client.delete(path)


@pytest.fixture(scope="session")
def image(cluster: Spec) -> Callable[[str], str]:
    return images_of(cluster)


def images_of(cluster: Spec) -> Callable[[str], str]:
    """Gives the reference of an image in `images/`, built and loaded on first use: those of the
    MPIs together, since they have most in common."""
    loaded: set[str] = set()

    def reference(directory: str) -> str:
        if directory not in loaded:
            wanted = MPI_IMAGES if directory in MPI_IMAGES else {directory}
            images.load(cluster, [build_image(USER_IMAGES[one]) for one in sorted(wanted)])
            loaded.update(wanted)
        return USER_IMAGES[directory].reference

    return reference


def keep_logs(test: str) -> list[Path]:
    """Copy the logs of every component of every cluster in use; where they are."""
    kept = []
    for spec in _running:
        target = cache_root() / "test-logs" / f"{time.strftime('%Y%m%d-%H%M%S')}-{test}" / spec.name
        target.mkdir(parents=True, exist_ok=True)
        for path in log_files(spec):
            shutil.copy(path, target)
        everything = Kubectl(spec)
        for file, arguments in {
            "objects.txt": ("get", "nodes,pods,jobs", "--all-namespaces", "-o", "wide"),
            "events.txt": ("get", "events", "--all-namespaces"),
            "pods.yaml": ("get", "pods", "--all-namespaces", "-o", "yaml"),
        }.items():
            (target / file).write_text(everything.attempt(*arguments).stdout)
        kept.append(target)
    return kept


def limit_tests_alone(items: list[pytest.Item], folder: Path) -> None:
    """Time limits count for tests, not for the fixture that may have to build a cluster first."""
    for item in items:
        if folder in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300, func_only=True))


def report_failure(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A wrapper for pytest's `pytest_runtest_makereport`: keeps logs of a failed test."""
    report = yield
    if report.failed and _running and call.when in ("setup", "call"):
        name = "".join(c if c.isalnum() else "-" for c in item.name)
        for path in keep_logs(name):
            report.sections.append(("cluster logs", str(path)))
    return report


__all__ = [
    "Kubectl",
    "api_server",
    "api_spec",
    "cluster",
    "eventually",
    "image",
    "limit_tests_alone",
    "namespace",
    "report_failure",
    "require",
    "restricted",
    "shared_cluster",
]
