"""Jobs as other users than OpenShift's, in images that were made for the public operator.

The jobs of this file run side by side; each test waits for its own.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Kubectl
from tests.e2e.manifests import Object
from tests.e2e.operator import Running, mpijob, submit
from tests.e2e.variants import Added, file_in, variant
from tools.cluster import images
from tools.cluster.spec import Spec
from tools.cluster.user_images import USER_IMAGES, build_image

CRIO = "localhost/mpi-openmpi:crio"
UPSTREAM = "localhost/mpi-openmpi:upstream"
WHO = 'echo "$(hostname) $(id -u) $(getent passwd "$(id -u)" | head -n 1 | cut -d: -f7)"'
SSHD = ["/usr/sbin/sshd", "-De"]

pytestmark = pytest.mark.timeout(400, func_only=True)


@pytest.fixture(scope="module")
def variants(cluster: Spec, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two images over ours.

    CRI-O shows every container a /etc/passwd that cannot be written, with a line for the user id
    that admission has set, whose shell is /sbin/nologin. No node here runs CRI-O: the line is in
    the image, where a container under containerd finds the same content and rights. That our own
    mount of the file would win over CRI-O's is not shown by this.
    """
    folder = tmp_path_factory.mktemp("images")
    ours = build_image(USER_IMAGES["mpi-openmpi"])
    line = b"1000740000:x:1000740000:0:1000740000 user:/:/sbin/nologin\n"
    passwd = Added(file_in(ours, "etc/passwd") + line)
    variant(ours, folder / "crio.tar", CRIO, {"etc/passwd": passwd}, "1000")
    variant(ours, folder / "upstream.tar", UPSTREAM, _upstream(folder), "0")
    images.load(cluster, [folder / "crio.tar", folder / "upstream.tar"])


def _upstream(folder: Path) -> dict[str, Added]:
    """As the public operator's base image: Debian's sshd on port 22, host keys in the image."""
    key = folder / "host_key"
    command = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(key)]
    subprocess.run(command, check=True, timeout=30)
    client = b"Host *\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n"
    return {
        "etc/ssh/sshd_config": Added(b"StrictModes no\nUsePAM no\n"),
        "etc/ssh/ssh_config": Added(client),
        "etc/ssh/ssh_host_ecdsa_key": Added(key.read_bytes(), 0o600),
        "etc/ssh/ssh_host_ecdsa_key.pub": Added(key.with_suffix(".pub").read_bytes()),
    }


@pytest.fixture(scope="module")
def plain(operator: object, cluster: Spec) -> Iterator[Kubectl]:
    """A namespace without rules, as on most clusters that run the public operator."""
    kubectl = Kubectl(cluster, f"test-plain-{secrets.token_hex(4)}")
    kubectl("create", "namespace", kubectl.namespace)
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def as_user(uid: int) -> Object:
    return {"securityContext": {"runAsUser": uid}}


def asking(name: str, image: str, *, root: bool = False, sshd: Any = None, **more: Any) -> Object:
    """Two ranks that say who they are.

    With an sshd of the image's own nobody waits for workers: mpirun may come before their names
    are known, and fail, as it does with the public operator; a further attempt mends it.
    """
    as_root = ["--allow-run-as-root"] if root else []
    job = mpijob(name, image, ["mpirun", *as_root, "-n", "2", "sh", "-c", WHO], slots=1, **more)
    if sshd:
        job["spec"]["runPolicy"]["backoffLimit"] = 6
        worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        worker["command"] = sshd
    return job


@pytest.fixture(scope="module")
def jobs(
    variants: None, image: Callable[[str], str], restricted_home: Kubectl, plain: Kubectl
) -> dict[str, Running]:
    ours = image("mpi-openmpi")
    home = "/home/mpiuser/.ssh"
    own = [*SSHD, "-f", "/home/mpiuser/.sshd_config"]
    made = (
        (restricted_home, asking("crio", CRIO)),
        (plain, asking("upstream", UPSTREAM, root=True, sshd=SSHD)),
        (plain, asking("root", ours, root=True, container=as_user(0))),
        (plain, asking("own-path", ours, sshd=own, container=as_user(1000), sshAuthMountPath=home)),
    )
    return {job["metadata"]["name"]: submit(space, job) for space, job in made}


def who(job: Running) -> dict[str, str]:
    """What each rank said: host -> user id and shell."""
    job.until("Succeeded", 300)
    return dict(line.split(" ", 1) for line in job.said("worker"))


def everywhere(job: Running, words: str) -> dict[str, str]:
    return {f"{job.name}-worker-{index}": words for index in range(2)}


def test_a_passwd_like_cri_o_s_with_nologin_is_no_obstacle(jobs: dict[str, Running]) -> None:
    """AC-20: the shell of the account that sshd looks up is one that can run a command."""
    assert who(jobs["crio"]) == everywhere(jobs["crio"], "1000740000 /bin/sh")


def test_an_upstream_style_image_runs_as_root_with_keys_in_root_s_home(
    jobs: dict[str, Running],
) -> None:
    """API-1, AC-3: its own sshd on port 22, upstream's mounts at /root/.ssh."""
    job = jobs["upstream"]
    assert {host: said.split()[0] for host, said in who(job).items()} == everywhere(job, "0")
    for role, waits in (("launcher", True), ("worker", False)):
        for pod in job.pods(role):
            mounts = {m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
            assert "/root/.ssh" in mounts
            assert ("/etc/mpi-agent" in mounts) == waits, "the launcher's command waits for names"


def test_root_without_a_command_for_workers_gets_the_agent_s_sshd(jobs: dict[str, Running]) -> None:
    """AC-19: managed keys for root, too."""
    assert who(jobs["root"]) == everywhere(jobs["root"], "0 /bin/sh")
    assert jobs["root"].summary().level == "full"


def test_keys_are_where_the_job_wants_them(jobs: dict[str, Running]) -> None:
    """API-1: `sshAuthMountPath` of an image with a user of its own."""
    job = jobs["own-path"]
    assert who(job) == everywhere(job, "1000 /bin/sh")
    for pod in job.pods():
        mounts = {m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
        assert "/home/mpiuser/.ssh" in mounts
