"""A cluster as an installer sees it: which kinds it serves, what the caller may, what changes.

Everything is written by server-side apply in the name `odh-install`, without force: what somebody
else has set differently is named and not overwritten; what our own uninstall left halfway is.
Danger: an API server that was told to restart between two writes leaves a part; the same command
goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from mpi_trainer.api.errors import ExplainedError
from mpi_trainer.cli.installation.bundles import Object
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS, Resource

MANAGER: Final = "odh-install"
SCALER: Final = "odh-uninstall"
"""in whose name a Deployment was scaled by an uninstall, which may have stopped halfway"""
NOT_TRIED: Final = "judged by admission, which does not answer now"
CREATED, CHANGED, UNCHANGED = "created", "changed", "unchanged"
DRY: Final = (("dryRun", "All"),)
WRITING: Final = ("get", "create", "patch")
REMOVING: Final = ("get", "delete")
_OF_THE_SERVER: Final = ("managedFields", "resourceVersion", "generation", "uid")
_LOOK_SECONDS: Final = 0.5
_SERVED_SECONDS: Final = 60.0


class Right(msgspec.Struct, frozen=True, order=True):
    """One that the caller lacks."""

    resource: str
    namespace: str
    verbs: tuple[str, ...]

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {self.resource}{where}"


class Cluster:
    def __init__(self, server: OneShot) -> None:
        self._server = server
        self._kinds: dict[str, dict[str, Resource]] = {}

    # --- what is there -------------------------------------------------------------------------

    def resource(self, obj: Object) -> Resource | None:
        """Where objects of this kind are; None where the cluster does not know the kind."""
        version = obj["apiVersion"]
        if not self._kinds.get(version):
            self._kinds[version] = self._discovered(version)
        return self._kinds[version].get(obj["kind"])

    def serves(self, version: str, kind: str) -> bool:
        return self.resource({"apiVersion": version, "kind": kind}) is not None

    def _discovered(self, version: str) -> dict[str, Resource]:
        group, _, name = version.rpartition("/")
        try:
            found = self._server.call(
                Request("GET", f"/apis/{version}" if group else f"/api/{version}")
            )
        except NotFound:
            return {}
        return {
            one["kind"]: Resource(group, name, one["name"], one["kind"], one["namespaced"])
            for one in found["resources"]
            if "/" not in one["name"]
        }

    def until_served(self, definitions: Iterable[Object]) -> None:
        """A definition is served some time after it was written."""
        deadline = time.monotonic() + _SERVED_SECONDS
        for one in definitions:
            spec = one["spec"]
            kinds = [f"{spec['group']}/{v['name']}" for v in spec["versions"] if v["served"]]
            while not all(self.serves(version, spec["names"]["kind"]) for version in kinds):
                if time.monotonic() > deadline:
                    raise ExplainedError(
                        f"{one['metadata']['name']} is defined and not served after a minute",
                        "See the definition's conditions: `kubectl describe crd`.",
                    )
                time.sleep(_LOOK_SECONDS)
                self._kinds = {}

    def get(self, obj: Object) -> Object | None:
        resource = self._known(obj)
        try:
            found: Object = self._server.call(requests.get(resource, *_place(obj)))
        except NotFound:
            return None
        return found

    # --- what the caller may -------------------------------------------------------------------

    def lacking(self, objects: Sequence[Object], verbs: Sequence[str]) -> list[Right]:
        """Rights that the objects need and the caller has not."""
        places = {
            (resource.group, resource.plural, _place(one)[0] if resource.namespaced else "")
            for one in objects
            if (resource := self.resource(one)) is not None
        }
        found = []
        for group, plural, namespace in sorted(places):
            missing = tuple(v for v in verbs if not self._may(v, group, plural, namespace))
            if missing:
                found.append(Right(f"{plural}.{group}".rstrip("."), namespace, missing))
        return found

    def _may(self, verb: str, group: str, plural: str, namespace: str) -> bool:
        asked = {"verb": verb, "group": group, "resource": plural, "namespace": namespace}
        kind = SELF_SUBJECT_ACCESS_REVIEWS
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "spec": {"resourceAttributes": asked},
        }
        return bool(self._server.call(requests.create(kind, "", body))["status"]["allowed"])

    # --- changes -------------------------------------------------------------------------------

    def apply(self, obj: Object, *, dry_run: bool = False) -> str:
        """`created`, `changed` or `unchanged`."""
        before = self.get(obj)
        namespace, name = _place(obj)
        asked = requests.apply(self._known(obj), namespace, name, obj, MANAGER, force=False)
        if dry_run:
            asked = msgspec.structs.replace(asked, query=(*asked.query, *DRY))
        try:
            try:
                after = self._server.call(asked)
            except Conflict as error:
                if not _with_ourselves(error):
                    raise
                after = self._server.call(_forced(asked))
        except ApiError as error:
            raise refusal(obj, error) from error
        if before is None:
            return CREATED
        return UNCHANGED if _essence(before) == _essence(after) else CHANGED

    def delete(self, obj: Object) -> bool:
        """Whether it was there."""
        resource = self.resource(obj)
        if resource is None:
            return False
        try:
            self._server.call(requests.delete(resource, *_place(obj)), None)
        except NotFound:
            return False
        except ApiError as error:
            raise refusal(obj, error) from error
        return True

    def scale(self, deployment: Object, replicas: int) -> None:
        resource = self._known(deployment)
        change = {"spec": {"replicas": replicas}}
        asked = requests.patch(resource, *_place(deployment), change, "merge")
        named = msgspec.structs.replace(asked, query=(*asked.query, ("fieldManager", SCALER)))
        self._server.call(named, None)

    def until(self, what: str, look: Callable[[], str], say: Callable[[str], None]) -> None:
        """Waits until `look` finds nothing more to wait for; what it finds is said when it is new.
        ExplainedError where it does not end in time is the caller's, by `look`."""
        said = ""
        while now := look():
            if now != said:
                say(f"{what}: {now}")
                said = now
            time.sleep(_LOOK_SECONDS)

    def waiting_pods(self, namespace: str, selector: Mapping[str, str]) -> Iterator[str]:
        """Why pods do not run, in the kubelet's and the scheduler's words."""
        labels = ",".join(f"{k}={v}" for k, v in selector.items())
        kind = Resource("", "v1", "pods", "Pod")
        asked = requests.list_page(kind, namespace, labels=labels, limit=50)
        for pod in self._server.call(asked)["items"]:
            status = pod.get("status", {})
            for one in status.get("containerStatuses") or ():
                waiting = one.get("state", {}).get("waiting") or {}
                if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                    yield f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
            for one in status.get("conditions") or ():
                if one.get("reason") == "Unschedulable":
                    yield f"Unschedulable: {one.get('message', '')}"

    def _known(self, obj: Object) -> Resource:
        resource = self.resource(obj)
        if resource is None:
            raise ExplainedError(
                f"the cluster does not know {obj['kind']} ({obj['apiVersion']})",
                "Choose another --profile, or install what brings this kind.",
            )
        return resource


def called(obj: Object) -> str:
    """An object in a line for people."""
    return f"{obj['kind'].lower()}/{obj['metadata']['name']}"


def refusal(obj: Object, error: ApiError) -> ExplainedError:
    """What the cluster said against an object, and what to do."""
    hint = "Mend what the message names and run the same command again; it goes on from there."
    if isinstance(error, Conflict):
        hint = (
            "Somebody else has set this field. Take your value into a kustomization and install by"
            " `kubectl apply -k`, or take theirs away, then run the command again."
        )
    elif isinstance(error, Forbidden):
        hint = "Ask a cluster administrator to run the command, or for the right that it names."
    elif isinstance(error, Invalid) and "storedVersions" in str(error):
        hint = 'See "A cluster that had the training operator" in docs/install.md.'
    return ExplainedError(f"{called(obj)} was refused: {error}", hint)


def _with_ourselves(error: Conflict) -> bool:
    causes = error.details.get("causes") or ()
    return bool(causes) and all(f'"{SCALER}"' in str(one.get("message")) for one in causes)


def _forced(asked: Request) -> Request:
    query = tuple((name, "true" if name == "force" else value) for name, value in asked.query)
    return msgspec.structs.replace(asked, query=query)


def _place(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _essence(obj: Object) -> Object:
    """Without what the server writes by itself."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _OF_THE_SERVER}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}
