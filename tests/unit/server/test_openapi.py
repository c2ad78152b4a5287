"""docs/openapi.json is current, and what would break the programs of others is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from mpi_trainer.server.endpoints import ENDPOINTS, STREAMS
from mpi_trainer.server.openapi import document
from tools.openapi import FILE, breaking, text

LIST = "/api/v1/namespaces/{namespace}/mpijobs"
Object = dict[str, Any]


def test_the_committed_description_is_the_servers_own() -> None:
    assert FILE.read_text() == text(document()), "run `python -m tools.openapi`"


def test_every_path_is_described_once_under_a_name_of_its_own() -> None:
    paths = document()["paths"]
    described = [one for each in paths.values() for one in each.values()]
    assert len(described) == len(ENDPOINTS) + len(STREAMS)
    assert len({one["operationId"] for one in described}) == len(described)
    for one in described:
        assert one["summary"] and "default" in one["responses"]


def test_every_reference_leads_somewhere() -> None:
    made = json.loads(text(document()))
    names = {part.split('"')[0] for part in text(made).split("#/components/schemas/")[1:]}
    assert names == set(made["components"]["schemas"])


def removed(*path: str) -> Callable[[Object], None]:
    def change(made: Object) -> None:
        *above, last = path
        for part in above:
            made = made[part]
        del made[last]

    return change


def without_parameter(made: Object) -> None:
    made["paths"][LIST]["get"]["parameters"].pop(1)


def with_required_parameter(made: Object) -> None:
    new = {"name": "team", "in": "query", "required": True, "schema": {"type": "string"}}
    made["paths"][LIST]["get"]["parameters"].append(new)


def smaller_limit(made: Object) -> None:
    limit = next(p for p in made["paths"][LIST]["get"]["parameters"] if p["name"] == "limit")
    limit["schema"]["maximum"] = 10


def other_type(made: Object) -> None:
    made["components"]["schemas"]["JobItem"]["properties"]["workers"] = {"type": "string"}


def may_be_missing(made: Object) -> None:
    made["components"]["schemas"]["JobItem"]["required"].remove("state")


def must_be_sent(made: Object) -> None:
    made["components"]["schemas"]["CloneRequest"]["required"].append("image")


def state_is_no_filter(made: Object) -> None:
    made["paths"][LIST]["get"]["parameters"][1]["schema"]["items"]["enum"].remove("Failed")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (removed("paths", LIST), f"GET {LIST}: is gone"),
        (removed("paths", LIST, "post"), f"POST {LIST}: is gone"),
        (without_parameter, f"GET {LIST}: parameter state is gone"),
        (with_required_parameter, f"GET {LIST}: parameter team is new and required"),
        (smaller_limit, f"GET {LIST}: parameter limit: maximum is 10 now"),
        (
            removed("components", "schemas", "JobItem", "properties", "reason"),
            f"GET {LIST}: answer 200.items[].reason: is gone",
        ),
        (other_type, f"GET {LIST}: answer 200.items[].workers: type integer became string"),
        (may_be_missing, f"GET {LIST}: answer 200.items[].state: can be missing now"),
        (must_be_sent, f"POST {LIST}/{{name}}/clone: body.image: is required now"),
        (state_is_no_filter, f"GET {LIST}: parameter state[]: Failed is no longer taken"),
        (
            removed("paths", f"{LIST}/{{name}}/logs", "get", "responses", "200", "content",
                    "text/plain"),
            f"GET {LIST}/{{name}}/logs: answer 200: text/plain is gone",
        ),
    ],
)  # fmt: skip
def test_a_change_that_breaks_programs_is_named(
    change: Callable[[Object], None], said: str
) -> None:
    old = json.loads(text(document()))
    new = copy.deepcopy(old)
    change(new)
    assert said in breaking(old, new)


def test_what_is_only_added_breaks_nothing() -> None:
    old = json.loads(text(document()))
    new = copy.deepcopy(old)
    new["paths"]["/api/v1/more"] = new["paths"]["/api/v1"]
    new["components"]["schemas"]["JobItem"]["properties"]["more"] = {"type": "string"}
    new["components"]["schemas"]["JobItem"]["required"].append("more")
    assert breaking(old, new) == []
    assert breaking(old, old) == []
