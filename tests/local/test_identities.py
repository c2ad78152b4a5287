"""Jobs in images and as users that a cluster may force upon them: all MPIs start all ranks.

Four ranks on two workers, in containers made from the Layout's own words (`containers.py`): no
privilege, no passwd entry, no writable root, another shell, or an image made for upstream.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from mpi_trainer.local.mpi.distributions import Distribution, install, named
from tests.faults.injected import COMPILERS, compiled
from tests.faults.scene import state_folder
from tests.local.containers import APP, MPI, Image, applets, ran
from tests.local.matrix import mpis
from tests.local.scenario import needs_root

pytestmark = needs_root

# Of the range that OpenShift gives to a namespace: no image has heard of it.
UID = 1000740000
ROOTS_ENTRY = "root:x:0:0:root:/root:/bin/sh\n"
CRIO_ENTRY = f"{UID}:x:{UID}:0:{UID} user:/:/sbin/nologin\n"
STRANGER = Image(uid=UID)
NO_LOGIN = Image(uid=UID, over=(("/etc/passwd", ROOTS_ENTRY + CRIO_ENTRY),))
READ_ONLY = Image(uid=UID, read_only=True)
ROOT = Image()
LIBRARIES = ("/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
SSH = ("/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen")
BUSYBOX = Image(
    uid=UID,
    tree="",
    binds=(*((path, path) for path in (*LIBRARIES, *SSH)), ("/usr/bin/busybox", "/bin/busybox")),
    links=(
        ("/lib", "usr/lib"),
        ("/lib64", "usr/lib64"),
        *((f"/bin/{name}", "busybox") for name in applets() if name != "busybox"),
    ),
    files=(("/etc/passwd", ROOTS_ENTRY, 0o644), ("/etc/group", "root:x:0:\n", 0o644)),
    own=("/tmp",),
)


@pytest.fixture(scope="module")
def host_keys() -> Iterator[Path]:
    """What an image built for upstream holds: host keys of its own, the same in every pod."""
    with state_folder() as folder:
        key = folder / "host_key"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(key)], check=True, timeout=20
        )
        yield key


# Such images have MPI where every session finds it.
FOUND = f"SetEnv PATH={MPI}/bin:/usr/bin:/bin LD_LIBRARY_PATH={MPI}/lib OPAL_PREFIX={MPI}\n"


def upstream(host_key: Path) -> Image:
    """As upstream's own base image: sshd of root on port 22, clients that trust whom they meet."""
    client = (
        "Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    server = "HostKey /etc/ssh/key\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n" + FOUND
    return Image(
        files=(
            ("/etc/ssh/ssh_config", client, 0o644),
            ("/etc/ssh/sshd_config", server, 0o644),
            ("/etc/ssh/key", host_key.read_text(), 0o600),
            ("/etc/shadow", "root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n", 0o600),
        ),
        own=("/run/sshd",),
        worker_port=22,
    )


def upstream_user(host_key: Path) -> Image:
    """As upstream's image for an ordinary user: sshd of that user on port 2222."""
    home = "/home/mpiuser"
    client = "Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  Port 2222\n"
    server = f"PidFile {home}/pid\nHostKey {home}/key\nStrictModes no\nPort 2222\nUsePAM no\n"
    server += FOUND
    entries = f"{ROOTS_ENTRY}mpiuser:x:1000:1000::{home}:/bin/sh\nsshd:x:100:65534::/run/sshd:/x\n"
    return Image(
        uid=1000,
        gid=1000,
        files=(
            ("/etc/passwd", entries, 0o644),
            ("/etc/ssh/ssh_config", client, 0o644),
            (f"{home}/.sshd_config", server, 0o644),
            (f"{home}/key", host_key.read_text(), 0o644),
        ),
        own=(home,),
        env=(("HOME", home),),
    )


def job(mpi: Distribution, worker: dict[str, Any], **spec: Any) -> MPIJob:
    command = ["mpirun", "-n", "4", f"{APP}/rank"]
    found = load.job(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "who", "namespace": "default"},
            "spec": {
                "slotsPerWorker": 2,
                "mpiImplementation": mpi.implementation,
                **spec,
                "mpiReplicaSpecs": {
                    "Launcher": {"template": _template(command=command)},
                    "Worker": {"replicas": 2, "template": _template(**worker)},
                },
            },
        }
    )
    assert isinstance(found.value, MPIJob), found.errors
    return found.value


def _template(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "mpi", "image": "any", **container}]}}


def assert_four_ranks_on_two_hosts(mpi: str, image: Image, **changes: Any) -> None:
    distribution = named(mpi)
    assert distribution is not None
    install(distribution, lambda seconds: None)
    worker = changes.pop("worker", {})
    with state_folder() as app:
        app.chmod(0o755)
        shutil.copy(compiled(COMPILERS.get(mpi, COMPILERS[""])), app / "rank")
        ended = ran(job(distribution, worker, **changes), image, distribution, app)
    assert ended.code == 0, ended
    lines = [line.rpartition(">:")[2].strip() for line in ended.output.splitlines()]
    assert Counter(lines) == {"4 on who-worker-0": 2, "4 on who-worker-1": 2}, ended


@mpis
def test_a_user_that_the_image_does_not_know(mpi: str) -> None:
    """SEC, AC-19: OpenShift's random UID, no entry in /etc/passwd, no privilege."""
    assert_four_ranks_on_two_hosts(mpi, STRANGER)


@mpis
def test_a_user_that_may_not_log_in(mpi: str) -> None:
    """A container runtime's own /etc/passwd, read-only, with nologin as the user's shell."""
    assert_four_ranks_on_two_hosts(mpi, NO_LOGIN)


@mpis
def test_a_root_file_system_that_cannot_be_written(mpi: str) -> None:
    assert_four_ranks_on_two_hosts(mpi, READ_ONLY)


@mpis
def test_an_image_with_nothing_but_busybox_and_ssh(mpi: str) -> None:
    assert_four_ranks_on_two_hosts(mpi, BUSYBOX)


@mpis
def test_root_with_its_own_ssh_folder(mpi: str) -> None:
    assert_four_ranks_on_two_hosts(mpi, ROOT)


@mpis
def test_an_image_made_for_upstream(mpi: str, host_keys: Path) -> None:
    """Compatible mode: the worker's command and the keys exactly as upstream has them."""
    worker = {"command": ["/usr/sbin/sshd"], "args": ["-De"]}
    assert_four_ranks_on_two_hosts(mpi, upstream(host_keys), worker=worker)


@mpis
def test_an_image_made_for_upstream_with_a_user_of_its_own(mpi: str, host_keys: Path) -> None:
    worker = {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]}
    assert_four_ranks_on_two_hosts(
        mpi, upstream_user(host_keys), worker=worker, sshAuthMountPath="/home/mpiuser/.ssh"
    )
