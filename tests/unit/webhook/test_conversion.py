"""API-4: the answer to a ConversionReview, whatever it holds."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from mpi_trainer.webhook.conversion import answer
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_legacy import V1

NEW = "kubeflow.org/v2beta1"


def asked(*objects: Any, to: str = NEW) -> dict[str, Any]:
    request = {"uid": "u", "desiredAPIVersion": to, "objects": list(objects)}
    body = json.dumps({"kind": "ConversionReview", "request": request}).encode()
    response: dict[str, Any] = json.loads(answer(body))["response"]
    assert response["uid"] == "u"
    return response


def test_objects_come_back_in_their_order_and_in_the_version_that_is_wanted() -> None:
    response = asked(base(), V1, base())
    assert response["result"] == {"status": "Success"}
    assert [one["apiVersion"] for one in response["convertedObjects"]] == [NEW] * 3
    assert response["convertedObjects"][0] == base()


@pytest.mark.parametrize(
    ("changed", "to", "words"),
    [
        ({"apiVersion": "kubeflow.org/v9"}, NEW, "kubeflow.org/v9 has no way to"),
        ({"kind": "TFJob"}, NEW, "TFJob kubeflow.org/v1 has no way to"),
        ({}, "kubeflow.org/v3", "no way to kubeflow.org/v3"),
        ({"spec": json.loads("[" * 900 + "]" * 900)}, NEW, "nested too deeply"),
    ],
)
def test_what_has_no_way_is_told(changed: dict[str, Any], to: str, words: str) -> None:
    response = asked({**copy.deepcopy(V1), **changed}, to=to)
    assert response["result"]["status"] == "Failure"
    assert words in response["result"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"request": 3}', b'{"request": {"objects": 1}}'])
def test_what_is_no_review_is_no_review(body: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        answer(body)
