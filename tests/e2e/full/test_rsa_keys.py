"""SSH by RSA keys of 4096 bits between real nodes, where the administrator wants them (AC-19)."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually, images_of, restricted, shared_cluster
from tests.e2e.operator import Running, mpijob, serving, submit
from tests.e2e.test_mpijob import PLACES, environment
from tools.cluster.spec import Spec

# The keys are read before the job ends and takes them along, so its ranks stay for a while.
PLACE = "import platform, time; print('on', platform.node(), flush=True); time.sleep(10)"

pytestmark = pytest.mark.timeout(600, func_only=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Spec]:
    """A cluster of its own, since one controller serves all of it."""
    yield from shared_cluster(Spec(name="test-rsa", profile="full", addons=("dns", "scc")))


@pytest.fixture(scope="module")
def operator(cluster: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    yield from serving(cluster, tmp_path_factory.mktemp("operator"), "--ssh-key-type=rsa-4096")


def test_ranks_of_every_mpi_run_on_workers_that_are_reached_by_rsa_keys(
    operator: Controller, cluster: Spec
) -> None:
    kubectl = Kubectl(cluster, f"test-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    running: dict[str, Running] = {}
    image = images_of(cluster)
    for directory, implementation in PLACES.items():
        command = ["mpirun", "-n", "2", "python3", "-c", PLACE]
        made = mpijob(
            directory,
            image(directory),
            command,
            slots=1,
            mpiImplementation=implementation,
            container={"env": environment()},
        )
        running[directory] = submit(kubectl, made)
    for name in running:
        secret = ("get", "secret", f"{name}-ssh")
        eventually("it has keys", lambda s=secret: kubectl.attempt(*s).returncode == 0)  # type: ignore[misc]
        for key in ("ssh-publickey", "ssh-host-publickey"):
            data = kubectl.get("secret", f"{name}-ssh")["data"][key]
            public = load_ssh_public_key(base64.b64decode(data))
            assert isinstance(public, RSAPublicKey) and public.key_size == 4096
    for name, job in running.items():
        job.until("Succeeded", 300)
        assert {f"on {name}-worker-0", f"on {name}-worker-1"} <= {
            line.rpartition(":")[2].strip() for line in job.log().splitlines()
        }, job.log()
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
