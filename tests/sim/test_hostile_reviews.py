"""Admission over HTTP with reviews that nobody sends in good faith: a refusal, never a fault."""

from __future__ import annotations

import asyncio
import io
from typing import Any, cast

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from mpi_trainer.webhook.endpoints import Endpoints, Settings, app
from mpi_trainer.webhook.server_checks import ServerChecks
from tests.unit.api.building import job as mpi_job

KIND = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}


def asked(
    new: dict[str, Any], old: dict[str, Any] | None = None, path: str = "/validate-mpijob"
) -> tuple[int, Any]:
    """The answer to a review of this object; nothing beyond the object is asked."""
    request = {
        "uid": "u",
        "kind": KIND,
        "operation": "UPDATE" if old else "CREATE",
        "namespace": "n",
        "name": "j",
        "object": new,
        "oldObject": old,
    }

    async def run() -> tuple[int, Any]:
        no_server = cast(ServerChecks, None)
        endpoints = Endpoints(no_server, "", lambda: False, Settings("us"))
        async with TestClient(TestServer(app(endpoints))) as client:
            body = io.BytesIO(msgspec.json.encode({"request": request}))
            async with client.post(path, data=body) as answer:
                text = await answer.read()
                return answer.status, msgspec.json.decode(text) if answer.ok else text

    return asyncio.run(run())


def nested(levels: int, last: bytes = b"1") -> msgspec.Raw:
    return msgspec.Raw(b'{"a":' * levels + last + b"}" * levels)


def with_template(field: Any, **more: Any) -> dict[str, Any]:
    data = mpi_job()
    data["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["x"] = field
    return {**data, **more}


@pytest.mark.parametrize("levels", [150, 600, 930, 1100, 9000])
def test_job_nested_too_deeply_is_refused_in_words(levels: int) -> None:
    """S-3: a fault would be a 500, which a failurePolicy of Ignore takes for a yes."""
    code, answer = asked(with_template(nested(levels)))
    assert code == 200
    response = answer["response"]
    assert not response["allowed"]
    assert response["status"]["code"] == 422
    assert "levels deep, and at most 100 are read" in response["status"]["message"]


def test_mutation_leaves_a_job_nested_too_deeply_to_the_refusal() -> None:
    code, answer = asked(with_template(nested(1100)), path="/mutate-mpijob")
    assert code == 200
    assert answer["response"] == {"uid": "u", "allowed": True}


def test_stored_job_nested_too_deeply_keeps_changing_in_its_metadata() -> None:
    old = with_template(nested(1100))
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert asked(labelled, old)[1]["response"]["allowed"]
    changed = with_template(nested(1100, b"2"))
    assert not asked(changed, old)[1]["response"]["allowed"]


def test_job_of_1400_kb_is_refused_with_size_and_limit() -> None:
    """W-7, S-15."""
    code, answer = asked(with_template("y" * 1_400_000))
    assert code == 200
    message = answer["response"]["status"]["message"]
    assert "spec: Too long: has 1400" in message
    assert "at most 262144 (256 KiB) are read; move scripts and data into" in message


def test_stored_large_job_keeps_changing_in_its_metadata() -> None:
    old = with_template("y" * 300_000)
    finalized = {**old, "metadata": {**old["metadata"], "finalizers": []}}
    assert asked(finalized, old)[1]["response"]["allowed"]
