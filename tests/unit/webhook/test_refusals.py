"""The API server's words about a pod, put where the job's author can mend them."""

from __future__ import annotations

import pytest

from mpi_trainer.api.validation.compatibility import in_pods
from mpi_trainer.webhook import refusals

RESTRICTED = (
    'pods "admission-x" is forbidden: violates PodSecurity "restricted:latest": '
    'allowPrivilegeEscalation != false (container "main" must set '
    "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
    '"main" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or '
    'container "main" must set securityContext.runAsNonRoot=true)'
)


def test_each_violation_of_pod_security_is_an_error_with_its_own_remedy() -> None:
    """AC-20."""
    found = refusals.in_role("Worker", RESTRICTED)
    assert [error.rule.rsplit(": ", 1)[1] for error in found] == [
        "allowPrivilegeEscalation != false",
        "unrestricted capabilities",
        "runAsNonRoot != true",
    ]
    assert str(found[1]) == (
        "spec.mpiReplicaSpecs.Worker.template.spec.securityContext: Forbidden: the namespace "
        'allows restricted pods only: unrestricted capabilities; container "main" must set '
        'securityContext.capabilities.drop=["ALL"]'
    )


@pytest.mark.parametrize(
    ("message", "field", "words"),
    [
        (
            'pods "x" is forbidden: failed quota: team: must specify limits.cpu for: main',
            "containers[0].resources",
            "quota `team` counts limits.cpu for: main",
        ),
        (
            "failed quota: team: must specify limits.cpu for: mpi,mpi-prepare; limits.memory for: "
            "mpi,mpi-prepare",
            "containers[0].resources",
            "quota `team` counts limits.cpu for: mpi; limits.memory for: mpi, so every",
        ),
        (
            'admission webhook "policy.example.com" denied the request: image not signed',
            "template.spec",
            "the admission webhook policy.example.com refuses the pods: image not signed",
        ),
        (
            'pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
            "containers[0].resources",
            "the namespace's LimitRange: maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            'pods "x" is forbidden: unable to validate against any security context constraint: []',
            "securityContext",
            "no security context constraint allows such pods",
        ),
        (
            'Pod "x" is invalid: spec.containers[0].image: Required value',
            "template.spec.containers[0].image",
            "Required value",
        ),
        ("something new", "template.spec", "the API server refuses the pods: something new"),
    ],
)
def test_refusal_is_put_at_its_field(message: str, field: str, words: str) -> None:
    found = refusals.in_role("Launcher", message)
    assert len(found) == 1
    assert found[0].field.endswith(field)
    assert words in found[0].rule
    assert found[0].remedy


def test_each_of_several_fields_is_an_error_of_its_own() -> None:
    """W-8: they were one, with the bracket of the server's list at its end."""
    message = (
        'Pod "x" is invalid: [spec.containers[0].ports[0].containerPort: Invalid value: 70000: '
        "must be between 1 and 65535, inclusive, spec.containers[0].ports[1].name: Invalid value: "
        '"a-long-name[0]": must be no more than 15 characters, spec.dnsPolicy: Unsupported value: '
        '"x": supported values: "Default", "None"]'
    )
    remedy = "; see the Pod's API reference for this field"
    assert [str(error) for error in refusals.at((), message)] == [
        "containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
        f"inclusive{remedy}",
        'containers[0].ports[1].name: Invalid value: "a-long-name[0]": must be no more than 15 '
        f"characters{remedy}",
        'dnsPolicy: Invalid value: Unsupported value: "x": supported values: "Default", "None"'
        f"{remedy}",
    ]


def test_a_quota_that_is_used_up_now_refuses_nothing() -> None:
    full = 'pods "x" is forbidden: exceeded quota: t, requested: pods=1, used: pods=3, limited: 3'
    assert refusals.about_quota(full)
    assert not refusals.about_quota(RESTRICTED)


def test_refusal_of_a_whole_pod_names_the_job_and_no_empty_field() -> None:
    (error,) = refusals.at((), 'pods "a" is forbidden: no such account')
    assert in_pods("node", error).rule == (
        'in the pods of `node`: the API server refuses the pods: pods "a" is forbidden: '
        "no such account"
    )


NO_ACCOUNT = (
    'pods "admission-x" is forbidden: error looking up service account ns/trainer: serviceaccount '
    '"trainer" not found'
)


def test_service_account_that_is_missing_is_warned_about() -> None:
    """U-4: the public controllers take such a job, and the account may come later."""
    errors, warnings = refusals.errors_and_warnings(refusals.in_role("Worker", NO_ACCOUNT))
    assert errors == ()
    assert [str(warning) for warning in warnings] == [
        "spec.mpiReplicaSpecs.Worker.template.spec.serviceAccountName: Suspicious value: "
        '"trainer": there is no such service account, and the pods wait until there is; create it: '
        "`kubectl create serviceaccount trainer`"
    ]
    (warning,) = (in_pods("node", warning) for warning in refusals.at((), NO_ACCOUNT))
    assert warning.rule.startswith("in the pods of `node`, serviceAccountName: there is no such")
    assert refusals.errors_and_warnings([warning]) == ((), (warning,))
