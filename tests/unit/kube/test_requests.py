"""Requests are values: their paths, queries and bodies are the API server's own words."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import pytest

from mpi_trainer.kube import requests
from mpi_trainer.kube.requests import LogOptions
from mpi_trainer.kube.resources import JOBS, MPIJOBS, NODES, PODS, SECRETS


def test_paths_follow_group_namespace_name_and_part() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("n", "p", "log") == "/api/v1/namespaces/n/pods/p/log"
    assert JOBS.path("n") == "/apis/batch/v1/namespaces/n/jobs"
    assert NODES.path("ignored", "a") == "/api/v1/nodes/a"
    assert MPIJOBS.api_version == "kubeflow.org/v2beta1"
    assert PODS.route("n", "p", "log") == "/api/v1/namespaces/{namespace}/pods/{name}/log"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "%2e%2e", "a/../../secrets"])
def test_a_name_cannot_leave_its_place(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        requests.get(PODS, "n", name)
    with pytest.raises(ValueError, match="cannot be a name"):
        requests.get(PODS, name, "p")


def test_a_name_cannot_add_to_the_query() -> None:
    assert requests.get(PODS, "n", "a?x=1#y z").path.endswith("/pods/a%3Fx%3D1%23y%20z")


def test_a_request_for_one_object_never_becomes_one_for_all() -> None:
    with pytest.raises(ValueError, match="name is missing"):
        requests.delete(PODS, "n", "")
    with pytest.raises(ValueError, match="namespace is missing"):
        requests.delete(PODS, "", "p")


def test_a_page_after_the_first_takes_its_version_from_the_token() -> None:
    first = requests.list_page(PODS, labels="a=b,c in (d)", resource_version="0")
    assert first.target == (
        "/api/v1/pods?labelSelector=a%3Db%2Cc+in+%28d%29&limit=500&resourceVersion=0"
    )
    second = requests.list_page(PODS, continue_="t", resource_version="0")
    assert second.query == (("limit", "500"), ("continue", "t"))


def test_a_deletion_names_the_very_object() -> None:
    request = requests.delete(PODS, "n", "p", uid="u", grace=0, propagation="Foreground")
    assert json.loads(request.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
    }
    assert "preconditions" not in json.loads(requests.delete(PODS, "n", "p").body)


def test_an_apply_names_its_manager_and_whether_it_may_take_fields() -> None:
    request = requests.apply(MPIJOBS, "n", "j", {"a": 1}, "me", force=False, sub="status")
    assert request.content_type == "application/apply-patch+yaml"
    assert request.target.endswith("/mpijobs/j/status?fieldManager=me&force=false")


def test_each_kind_of_patch_has_its_content_type() -> None:
    kinds = [requests.patch(PODS, "n", "p", {}, kind) for kind in ("merge", "json", "strategic")]
    assert [kind.content_type for kind in kinds] == [
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
    ]


def test_values_are_written_as_their_type_says() -> None:
    class Value(msgspec.Struct, rename="camel"):
        some_field: int

    assert requests.create(PODS, "n", Value(1)).body == b'{"someField":1}'


def test_a_watch_without_bookmarks_may_be_silent_until_its_end() -> None:
    assert requests.watch(PODS).timeout == 75
    assert requests.watch(PODS, seconds=400, bookmarks=False).timeout == 415


def test_only_reads_are_repeatable_by_themselves() -> None:
    create = requests.create(PODS, "n", {})
    assert requests.get(PODS, "n", "p").repeatable
    assert not create.repeatable
    assert msgspec.structs.replace(create, safe=True).repeatable


def test_a_request_does_not_show_what_it_carries() -> None:
    request = requests.create(SECRETS, "n", {"data": {"k": "aGlkZGVu"}})
    assert "aGlkZGVu" not in repr(request)


def test_words_of_a_command_stay_apart() -> None:
    request = requests.execute("n", "p", ["sh", "-c", "a b&c=d"], container="c")
    assert [value for key, value in request.query if key == "command"] == ["sh", "-c", "a b&c=d"]
    assert "command=a+b%26c%3Dd" in request.target


def test_following_a_log_has_no_time_out_of_its_own() -> None:
    request = requests.logs("n", "p", LogOptions(container="c", follow=True, tail=0))
    assert request.timeout == 0
    assert request.query == (("container", "c"), ("follow", "true"), ("tailLines", "0"))


def test_requests_and_configuration_load_no_event_loop() -> None:
    """The CLI builds requests before it knows whether it needs a transport."""
    program = (
        "import sys\n"
        "from mpi_trainer.kube import requests, resources, errors, retries, config, users\n"
        "print([m for m in ('aiohttp', 'asyncio') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[]"
