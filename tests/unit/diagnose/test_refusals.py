"""What an API server refuses, as a reader can use it. The messages are real ones."""

from __future__ import annotations

from mpi_trainer.diagnose.refusals import lines


def test_each_field_has_its_line() -> None:
    causes = [
        {"field": "spec.slotsPerWorker", "reason": "FieldValueTypeInvalid",
         "message": 'Invalid value: "string": spec.slotsPerWorker in body must be of type integer: '
         '"string"'},
        {"field": "spec.mpiImplementation", "reason": "FieldValueNotSupported",
         "message": 'Unsupported value: "LAM": supported values: "OpenMPI", "Intel", "MPICH"'},
    ]  # fmt: skip
    message = 'MPIJob.kubeflow.org "x" is invalid: [spec.slotsPerWorker: …, …]'
    assert lines(message, causes) == (
        'spec.slotsPerWorker: must be of type integer: "string"',
        'spec.mpiImplementation: Unsupported value: "LAM": supported values: "OpenMPI", "Intel", '
        '"MPICH"',
    )


def test_unknown_fields_are_named_with_what_was_meant() -> None:
    message = (
        'MPIJob in version "v2beta1" cannot be handled as a MPIJob: strict decoding error: '
        'unknown field "spec.slotPerWorker", duplicate field "spec.runPolicy"'
    )
    assert lines(message, known=["slotsPerWorker"]) == (
        "spec.slotPerWorker: there is no such field; did you mean slotsPerWorker?",
        "spec.runPolicy: is there twice; keep one",
    )


def test_our_admission_s_own_lines_stay_as_they_are() -> None:
    message = (
        'admission webhook "mpijobs.mpi-trainer.opendatahub.io" denied the request: '
        "spec.a: Forbidden: x; do y\nspec.b: Required value: z"
    )
    assert lines(message) == ("spec.a: Forbidden: x; do y", "spec.b: Required value: z")


def test_a_webhook_that_is_away_is_told_from_one_that_refuses() -> None:
    message = (
        'Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: '
        'Post "https://w.ns.svc:443/?timeout=10s": no endpoints available for service "w"'
    )
    (said,) = lines(message)
    assert "webhook m.example.com does not answer" in said
    assert "no endpoints available" in said


def test_a_quota_is_told_with_its_numbers() -> None:
    message = (
        'mpijobs.kubeflow.org "x" is forbidden: exceeded quota: few, requested: '
        "count/mpijobs.kubeflow.org=1, used: count/mpijobs.kubeflow.org=3, limited: "
        "count/mpijobs.kubeflow.org=3"
    )
    (said,) = lines(message)
    assert said == (
        "quota exceeded: `few` has no room: 3 of 3 count/mpijobs.kubeflow.org in use, and 1 more "
        "asked for"
    )


def test_what_nobody_knows_stays_as_it_was() -> None:
    assert lines("the sky is falling") == ("the sky is falling",)
