"""What REST and gRPC answer to the same calls: one table, run over both, in every place where there
are jobs. Places say what is there: a job `there` that waits, with the label team=t."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from google.protobuf.json_format import MessageToDict

from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from tests.rest import Reply, Rest
from tests.rpc import Refusal, Rpc

Object = dict[str, Any]


class Outcome(msgspec.Struct, frozen=True):
    """`problem` is its kind, and empty where the call did what it should; `code` is the status of
    HTTP, or the name of gRPC's."""

    code: int | str
    data: Any = None
    problem: str = ""
    says: str = ""
    fields: tuple[str, ...] = ()


class Way(Protocol):
    """One of the two; a manifest is an object, or text that should be one."""

    def create(self, manifest: Object | str, *, yaml: bool = False) -> Outcome: ...
    def get(self, name: str) -> Outcome: ...
    def list(self, **filters: Any) -> Outcome: ...
    def delete(self, name: str, etag: str = "") -> Outcome: ...
    def status(self, name: str) -> Outcome: ...
    def logs(self, name: str, **which: Any) -> Outcome: ...


class ByRest(msgspec.Struct, frozen=True):
    server: Rest
    namespace: str

    @property
    def _jobs(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/mpijobs"

    def create(self, manifest: Object | str, *, yaml: bool = False) -> Outcome:
        kind = {"Content-Type": "application/yaml"} if yaml else {}
        return _of_rest(self.server.ask("POST", self._jobs, _text(manifest).encode(), kind))

    def get(self, name: str) -> Outcome:
        reply = self.server.ask("GET", f"{self._jobs}/{name}")
        found = _of_rest(reply)
        if found.problem:
            return found
        etag = reply.headers["ETag"].strip('"')
        return msgspec.structs.replace(found, data=found.data | {"etag": etag})

    def list(self, **filters: Any) -> Outcome:
        words = ((name, ",".join(v) if isinstance(v, tuple) else v) for name, v in filters.items())
        query = "&".join(f"{name}={str(value).replace('=', '%3D')}" for name, value in words)
        return _of_rest(self.server.ask("GET", f"{self._jobs}?{query}"))

    def delete(self, name: str, etag: str = "") -> Outcome:
        match = {"If-Match": f'"{etag}"'} if etag else {}
        return _of_rest(self.server.ask("DELETE", f"{self._jobs}/{name}", headers=match))

    def status(self, name: str) -> Outcome:
        return _of_rest(self.server.ask("GET", f"{self._jobs}/{name}/status"))

    def logs(self, name: str, **which: Any) -> Outcome:
        query = "&".join(f"{key}={value}" for key, value in which.items())
        path = f"{self._jobs}/{name}/logs?{query}"
        found = _of_rest(self.server.ask("GET", path, headers={"Accept": "application/json"}))
        return found if found.problem else msgspec.structs.replace(found, data=found.data["items"])


class ByRpc(msgspec.Struct, frozen=True):
    server: Rpc
    namespace: str

    def create(self, manifest: Object | str, *, yaml: bool = False) -> Outcome:
        which = {"manifest_yaml" if yaml else "manifest_json": _text(manifest)}
        request = v1.CreateMPIJobRequest(namespace=self.namespace, **which)
        return _of_rpc(self.server.ask("CreateMPIJob", request))

    def get(self, name: str) -> Outcome:
        return self._about("GetMPIJob", v1.GetMPIJobRequest, name)

    def list(self, **filters: Any) -> Outcome:
        names = {
            "labelSelector": "label_selector",
            "sortBy": "sort_by",
            "continue": "continue_token",
        }
        given = {names.get(name, name): value for name, value in filters.items()}
        if "state" in given:
            given["state"] = [getattr(v1, f"JOB_STATE_{one.upper()}") for one in given["state"]]
        request = v1.ListMPIJobsRequest(namespace=self.namespace, **given)
        found = _of_rpc(self.server.ask("ListMPIJobs", request))
        if found.problem:
            return found
        token = found.data.pop("continueToken")
        return msgspec.structs.replace(found, data=found.data | {"continue": token})

    def delete(self, name: str, etag: str = "") -> Outcome:
        return self._about("DeleteMPIJob", v1.DeleteMPIJobRequest, name, etag=etag)

    def status(self, name: str) -> Outcome:
        return self._about("GetMPIJobStatus", v1.GetMPIJobStatusRequest, name)

    def logs(self, name: str, **which: Any) -> Outcome:
        found = self._about("GetMPIJobLogs", v1.GetMPIJobLogsRequest, name, **which)
        if found.problem:
            return found
        lines = [line for answer in found.data for line in answer["lines"]]
        return msgspec.structs.replace(found, data=lines)

    def _about(self, method: str, kind: Any, name: str, **more: Any) -> Outcome:
        request = kind(namespace=self.namespace, name=name, **more)
        return _of_rpc(self.server.ask(method, request))


def _text(manifest: Object | str) -> str:
    return manifest if isinstance(manifest, str) else json.dumps(manifest)


def _of_rest(reply: Reply) -> Outcome:
    if reply.status < 400:
        return Outcome(reply.status, reply.data if reply.body else None)
    found = reply.data
    return Outcome(
        reply.status,
        problem=found["type"].rpartition(":")[2],
        says=f"{found['detail']} {found['hint']}",
        fields=tuple(one["field"] for one in found["errors"]),
    )


def _of_rpc(answer: Any) -> Outcome:
    if isinstance(answer, Refusal):
        found = answer.problem
        return Outcome(
            answer.code.name,
            problem=found.type.rpartition(":")[2],
            says=f"{found.detail} {found.hint}",
            fields=tuple(one.field for one in found.errors),
        )
    if isinstance(answer, list):
        return Outcome("OK", [plain(one) for one in answer])
    return Outcome("OK", plain(answer))


def plain(message: Any) -> Object:
    """A message as REST would write it."""
    found = MessageToDict(message, always_print_fields_with_no_presence=True)
    return {name: _as_rest(name, value) for name, value in found.items()} | (
        {"manifest": json.loads(found["manifestJson"])} if "manifestJson" in found else {}
    )


def _as_rest(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {inner: _as_rest(inner, one) for inner, one in value.items()}
    if isinstance(value, list):
        return [_as_rest(name, one) for one in value]
    if name == "state":
        return value.removeprefix("JOB_STATE_").capitalize()
    return int(value) if name == "lost" else value


class Case(msgspec.Struct, frozen=True):
    """`run` makes the calls, the last of which counts; `has` are fields of what comes."""

    name: str
    run: Callable[[Way], Outcome]
    http: int = 200
    grpc: str = "OK"
    problem: str = ""
    says: str = ""
    fields: tuple[str, ...] = ()
    has: Callable[[Any], bool] = lambda data: True


def check(case: Case, way: Way) -> None:
    found = case.run(way)
    code = case.http if isinstance(way, ByRest) else case.grpc
    assert (found.code, found.problem) == (code, case.problem), (case.name, found)
    assert case.says in found.says, (case.name, found)
    assert found.fields == case.fields, (case.name, found)
    assert case.problem or case.has(found.data), (case.name, found)


def manifest(name: str, **spec: Any) -> Object:
    """A job that waits."""
    pods = {"containers": [{"name": "mpi", "image": "x", "command": ["true"]}]}
    replica = {"template": {"spec": pods}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "labels": {"team": name[0]}},
        "spec": {
            "runPolicy": {"suspend": True},
            "mpiReplicaSpecs": {"Launcher": replica, "Worker": replica | {"replicas": 3}},
        }
        | spec,
    }


def _paged(way: Way) -> Outcome:
    made = way.create(manifest("more"))
    assert made.problem == "", made
    first = way.list(limit=1, sortBy="name")
    assert (first.data["total"], len(first.data["items"])) == (2, 1), first
    return way.list(limit=1, sortBy="name", **{"continue": first.data["continue"]})


def _changed(way: Way) -> Outcome:
    """Whoever deletes has seen another job of this name."""
    etag = way.get("there").data["etag"]
    gone = way.delete("there", etag)
    assert gone.problem == "", gone
    made = way.create(manifest("there"))
    assert made.problem == "", made
    return way.delete("there", etag)


def _yaml(way: Way) -> Outcome:
    return way.create("kind: MPIJob\nspec: {slotsPerWorker: 2, slotPerWorker: 2}\n", yaml=True)


def _names(*wanted: str) -> Callable[[Any], bool]:
    return lambda data: [one["name"] for one in data["items"]] == [*wanted]


INVALID: Any = {"http": 422, "grpc": "INVALID_ARGUMENT", "problem": "invalid-job"}
BAD: Any = {"http": 400, "grpc": "INVALID_ARGUMENT", "problem": "bad-request"}
MISSING: Any = {"http": 404, "grpc": "NOT_FOUND", "problem": "not-found", "says": "not found"}

CASES = [
    Case("a job is created", lambda way: way.create(manifest("new")), http=201,
         has=lambda job: (job["name"], job["workers"], job["suspend"]) == ("new", 3, True)),
    Case("what is created is there", lambda way: (way.create(manifest("new")), way.get("new"))[1],
         has=lambda job: job["manifest"]["metadata"]["labels"]["team"] == "n"),
    Case("a name that is taken", lambda way: way.create(manifest("there")),
         409, "ALREADY_EXISTS", "exists", "already exists"),
    Case("an invalid job", lambda way: way.create(manifest("new", slotsPerWorker=0)),
         **INVALID, says="slotsPerWorker", fields=("spec.slotsPerWorker",)),
    Case("an unknown field", lambda way: way.create(manifest("new", slotPerWorker=1)),
         **INVALID, says="slotPerWorker", fields=("spec.slotPerWorker",)),
    Case("another kind", lambda way: way.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
        **INVALID, says="kind", fields=("kind",)),
    Case("no JSON", lambda way: way.create("{"), 400, "INVALID_ARGUMENT", "malformed",
         "cannot be read", fields=("",)),
    Case("a job that is too large", lambda way: way.create("x" * (2**20 + 1)),
         413, "RESOURCE_EXHAUSTED", "too-large", "larger than 1 MiB"),
    Case("no such job", lambda way: way.get("none"), **MISSING),
    Case("no status of no job", lambda way: way.status("none"), **MISSING),
    Case("no log of no job", lambda way: way.logs("none"), **MISSING),
    Case("no job to delete", lambda way: way.delete("none"), **MISSING),
    Case("a name that is none", lambda way: way.get("-x"), **BAD, fields=("name",)),
    Case("a job that has changed", _changed, 412, "ABORTED", "changed", "has changed since"),
    Case("a list by state", lambda way: way.list(state=("Suspended", "Created")),
         has=_names("there")),
    Case("a list by another state", lambda way: way.list(state=("Failed",)), has=_names()),
    Case("a list by label", lambda way: way.list(labelSelector="team=t"), has=_names("there")),
    Case("a list by another label", lambda way: way.list(labelSelector="team=x"), has=_names()),
    Case("a list by name", lambda way: way.list(name="here"), has=_names("there")),
    Case("the second page", _paged, has=_names("there")),
    Case("a page of another list", lambda way: way.list(**{"continue": "nonsense"}),
         **BAD, says="token", fields=("continue",)),
    Case("a list that is too long", lambda way: way.list(limit=501), **BAD,
         says="from 1 to 500", fields=("limit",)),
    Case("an unknown order", lambda way: way.list(sortBy="color"), **BAD,
         says="must be one of created", fields=("sortBy",)),
    Case("a selector that is none", lambda way: way.list(labelSelector="=="), **BAD,
         fields=("labelSelector",)),
    Case("a status", lambda way: way.status("there"),
         has=lambda found: (found["workers"]["wanted"], found["name"]) == (3, "there")),
    Case("a level that is none", lambda way: way.logs("there", level="loud"), **BAD,
         says="must be one of debug", fields=("level",)),
]  # fmt: skip
