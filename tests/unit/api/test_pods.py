from __future__ import annotations

import msgspec
import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.kinds.pods import PodTemplate


def test_template_keeps_what_it_does_not_know() -> None:
    content = {"spec": {"new": {"x": [1, None]}, "containers": [{"name": "a", "env": None}]}}
    template = PodTemplate.of(content)
    assert template.content == content
    assert template.view.spec.containers[0].env == ()


def test_templates_are_equal_when_their_content_is() -> None:
    one, other = PodTemplate.of({"a": 1, "b": 2}), PodTemplate.of({"b": 2, "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one != PodTemplate.of({})
    assert one != "template"
    assert "PodTemplate" in repr(one)


def test_template_is_frozen() -> None:
    template = PodTemplate.of({})
    with pytest.raises(AttributeError, match="frozen"):
        template.json = b""


def test_view_of_wrong_types_raises() -> None:
    with pytest.raises(msgspec.ValidationError):
        _ = PodTemplate.of({"spec": 1}).view


def test_only_wire_types_have_a_wire_form() -> None:
    job = MPIJob(status=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no wire form for object"):
        to_wire(job)


def test_empty_job_has_empty_parts() -> None:
    job = MPIJob()
    assert (job.workers, job.slots, job.launcher.replicas, job.worker.replicas) == (0, 1, None, 0)
    assert (job.name, job.namespace) == ("", "")
    assert to_wire(job) == {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
