"""Fields that need the user's own right, and which user's (S-4, S-6, C-3, W-1, W-2)."""

from __future__ import annotations

import copy
from pathlib import Path as File
from typing import Any

import pytest
import yaml

from mpi_trainer.api.errors import Path
from mpi_trainer.webhook import borrowed_rights as shared
from mpi_trainer.webhook.mpijob import borrowed_rights
from mpi_trainer.webhook.pod_fields import MAKE_PODS, Right
from mpi_trainer.webhook.trainjob.borrowed_rights import runtime_templates
from tests.unit.api.building import CONTAINER, LAUNCHER_POD, POD, job

Change = tuple[Path, Any]
ADMIN: Change = ((*LAUNCHER_POD, "serviceAccountName"), "admin")
HOST: Change = ((*POD, "volumes"), [{"name": "h", "hostPath": {"path": "/"}}])


def claims(*changes: Change) -> tuple[shared.RightClaim, ...]:
    return borrowed_rights.claims(job(*changes))


def added(old: tuple[Change, ...], new: tuple[Change, ...]) -> list[str]:
    before, after = (job(*copy.deepcopy(one)) for one in (old, new))
    found = borrowed_rights.added_claims(before, after).claims
    return [claim.refusal("eve").field for claim in found]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ((*LAUNCHER_POD, "serviceAccountName"), "deployer", "serviceAccountName"),
        ((*LAUNCHER_POD, "serviceAccount"), "deployer", "serviceAccount"),
        ((*POD, "nodeName"), "node1", "nodeName"),
        ((*POD, "volumes"), [{"name": "a", "hostPath": {"path": "/"}}], "volumes[0].hostPath"),
        ((*POD, "volumes"), [{"name": "a", "secret": {"secretName": "b-ssh"}}], "secretName"),
        ((*CONTAINER, "securityContext"), {"privileged": True}, "securityContext.privileged"),
        ((*CONTAINER, "envFrom"), [{"secretRef": {"name": "other-ssh"}}], "secretRef.name"),
    ],
)
def test_guarded_value_is_a_claim_on_its_field(path: Path, value: Any, field: str) -> None:
    found = claims((path, value))
    assert len(found) == 1
    assert found[0].refusal("eve").field.endswith(field)


def test_own_keys_are_no_claim() -> None:
    assert not claims(((*POD, "volumes"), [{"name": "a", "secret": {"secretName": "train-ssh"}}]))


def test_refusal_says_what_it_would_do_and_who_lacks_which_right() -> None:
    claim = claims(((*POD, "serviceAccountName"), "deployer"))[0]
    assert str(claim.refusal("eve")) == (
        "spec.mpiReplicaSpecs.Worker.template.spec.serviceAccountName: Forbidden: "
        '"deployer": the pods would act as this service account, and eve may not `create pods` or '
        "`impersonate serviceaccounts/deployer` in this namespace; remove it, or ask an "
        "administrator for one of these rights"
    )


def test_refusal_says_where_a_right_on_what_has_no_namespace_is_held() -> None:
    """A role of the namespace would not be enough: the API server is asked about the cluster."""
    claim = claims(((*POD, "priorityClassName"), "high"))[0]
    assert claim.refusal("eve").rule.endswith(
        "eve may not `create pods` in this namespace or "
        "`use priorityclasses.scheduling.k8s.io/high` for the whole cluster"
    )


def test_right_is_never_asked_for_under_a_name_that_cannot_be_one() -> None:
    for value in ("x" * 254, {"a": 1}, 5):
        (claim,) = claims(((*POD, "serviceAccountName"), value))
        assert claim.rights == (MAKE_PODS,)
    (claim,) = claims(((*POD, "priorityClassName"), "high"))
    assert claim.rights[1] == Right("use", "priorityclasses", "scheduling.k8s.io", "high", True)


@pytest.mark.parametrize("change", [ADMIN, HOST])
def test_change_adds_the_claims_that_were_not_there(change: Change) -> None:
    """S-4: created harmless, then patched."""
    assert len(added((), (change,))) == 1
    assert added((change,), ()) == []
    assert added((change,), (change,)) == []


QUEUES: list[Change] = [
    ((*POD, "nodeSelector"), {"pool": "a"}),
    ((*POD, "tolerations"), [{"key": "gpu", "operator": "Exists"}]),
    ((*POD, "schedulingGates"), [{"name": "kueue.x-k8s.io/topology"}]),
    ((*POD[:-1], "metadata"), {"labels": {"a": "b"}, "annotations": {"c": "d"}}),
]


@pytest.mark.parametrize("change", QUEUES)
def test_queue_adds_no_claims_to_a_job_with_claims(change: Change) -> None:
    """C-4: Kueue has no right to the job's account, and needs none."""
    assert added((ADMIN, HOST), (ADMIN, HOST, change)) == []
    assert added((ADMIN, HOST, change), (ADMIN, HOST)) == []


def test_job_written_back_by_a_go_client_adds_no_claims() -> None:
    """Zeros and what its types do not know are gone, `1000m` has become `1`."""
    written = (
        ADMIN,
        ((*POD, "hostNetwork"), False),
        ((*POD, "someday"), "x"),
        ((*CONTAINER, "env"), [{"name": "A", "value": ""}]),
        ((*CONTAINER, "resources"), {"limits": {"cpu": "1000m"}}),
        ((*POD, "volumes"), [{"name": "h", "hostPath": {"path": "/", "type": ""}}]),
    )
    back = (
        ADMIN,
        HOST,
        ((*CONTAINER, "env"), [{"name": "A"}]),
        ((*CONTAINER, "resources"), {"limits": {"cpu": "1"}}),
        ((*POD[:-1], "metadata"), {"creationTimestamp": None}),
    )
    assert added(written, back) == []


@pytest.mark.parametrize(
    "change",
    [
        ((*CONTAINER, "image"), "example.com/evil:1"),
        ((*CONTAINER, "command"), ["cat", "/var/run/secrets/token"]),
        ((*CONTAINER, "env"), [{"name": "LD_PRELOAD", "value": "/x"}]),
        ((*POD, "initContainers"), [{"name": "mine", "image": "x"}]),
        ((*CONTAINER, "lifecycle"), {"postStart": {"exec": {"command": ["x"]}}}),
    ],
)
def test_who_changes_the_program_is_asked_for_all_that_it_could_use(change: Change) -> None:
    """The launcher's account belongs to whoever says what its workers run, and the other way."""
    assert added((ADMIN,), (ADMIN, change))
    assert added((), (change,)) == []


def test_claim_moves_neither_to_another_container_nor_to_another_role() -> None:
    def job_of(*privileged: str) -> tuple[Change, ...]:
        containers = [
            {"name": n, "image": "x", "securityContext": {"privileged": n in privileged}}
            for n in ("a", "b")
        ]
        return (((*POD, "containers"), containers),)

    assert len(added(job_of("a"), job_of("a", "b"))) == 2
    assert len(added(job_of("a"), job_of("b"))) == 1
    assert added(job_of("a", "b"), job_of("a")) == []
    worker = ((*POD, "serviceAccountName"), "admin")
    assert len(added((ADMIN,), (worker,))) == 1


def test_list_in_another_order_adds_no_claims() -> None:
    volumes = [{"name": n, "hostPath": {"path": f"/{n}"}} for n in ("a", "b")]
    one, other = ((*POD, "volumes"), volumes), ((*POD, "volumes"), volumes[::-1])
    assert added((one,), (other,)) == []


def test_mount_of_a_volume_that_needs_a_right_needs_it_too() -> None:
    mount = ((*CONTAINER, "volumeMounts"), [{"name": "h", "mountPath": "/h"}])
    assert [c.refusal("eve").field.rsplit(".", 1)[-1] for c in claims(HOST, mount)] == [
        "hostPath",
        "volumeMounts[0]",
    ]


ROOT = File(__file__).parents[3]
SHIPPED = [*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("src/mpi_trainer/local/runtimes/mpi*.yaml")]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_what_we_ship_needs_nobodys_rights(file: File) -> None:
    """CTL-7: examples and runtimes are for who holds `mpijob-user` and no more."""
    for data in yaml.safe_load_all(file.read_text()):
        templates = (*borrowed_rights.templates(data), *runtime_templates(data))
        assert shared.claims(templates) == ()
        assert templates or data["kind"] not in ("MPIJob", "ClusterTrainingRuntime")
