"""API-4: the answer to a ConversionReview, whatever it holds."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from mpi_trainer.webhook.conversion import answer, handler
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


class _Endless:
    """A request whose body begins and does not end; `length` is what it says of its size."""

    def __init__(self, length: int | None) -> None:
        self.content_length = length
        self.content = self
        self.read = False

    async def iter_any(self) -> AsyncIterator[bytes]:
        self.read = True
        await asyncio.sleep(60)
        yield b""


@pytest.mark.parametrize(("length", "read"), [(100, 5), (10**6, 2), (None, 2)])
def test_only_two_large_reviews_are_held_at_once(length: int | None, read: int) -> None:
    """One that comes in chunks and does not say its length counts as large."""

    async def play() -> int:
        convert = handler()
        requests = [_Endless(length) for _ in range(5)]
        tasks = [asyncio.create_task(convert(one)) for one in requests]  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return sum(one.read for one in requests)

    assert asyncio.run(play()) == read
