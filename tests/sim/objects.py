"""Objects in memory with resourceVersions and a history, by the API server's rules.

What is kept: optimistic locking, generations, the status part apart, finalizers, preconditions
of deletion, writes that change nothing make no event. What is not: validation, defaults, field
ownership (an apply is a merge), strategic lists, garbage collection.
"""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

Object = dict[str, Any]
Key = tuple[str, str, str]  # collection such as "apis/batch/v1/jobs", namespace, name
WITH_STATUS = frozenset({"pods", "jobs", "mpijobs", "trainjobs", "jobsets", "namespaces", "nodes"})


class Refusal(Exception):
    """What the server answers instead."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


class Change(msgspec.Struct, frozen=True):
    """One event of the history; `before` tells watches when an object leaves their selection."""

    version: int
    type: str
    key: Key
    object: Object
    before: Object | None


class Objects:
    """The store. `listen` hears of every change at once."""

    def __init__(self) -> None:
        self.version = 100
        self.oldest = 100
        self.objects: dict[Key, Object] = {}
        self.history: list[Change] = []
        self.listeners: list[Callable[[Change], None]] = []

    def compact(self) -> None:
        """Forget the history: watches from before now are told that they are too old."""
        self.history.clear()
        self.version += 1
        self.oldest = self.version

    def get(self, key: Key) -> Object:
        if key not in self.objects:
            raise Refusal(404, "NotFound", f'{key[0].split("/")[-1]} "{key[2]}" not found')
        return self.objects[key]

    def select(
        self, collection: str, namespace: str, labels: str, fields: str
    ) -> Iterator[tuple[Key, Object]]:
        for key in sorted(self.objects):
            if key[0] == collection and namespace in ("", key[1]):
                found = self.objects[key]
                if matches(found, labels, fields):
                    yield key, found

    def create(self, collection: str, namespace: str, given: Object) -> Object:
        made = copy.deepcopy(given)
        meta = made.setdefault("metadata", {})
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise Refusal(422, "Invalid", "metadata.name: Required value")
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        key = (collection, namespace, meta["name"])
        if key in self.objects:
            kind = collection.split("/")[-1]
            raise Refusal(409, "AlreadyExists", f'{kind} "{meta["name"]}" already exists')
        if meta.get("resourceVersion"):
            raise Refusal(400, "BadRequest", "resourceVersion should not be set on a new object")
        if namespace:
            meta["namespace"] = namespace
        meta |= {
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        if collection.split("/")[-1] in WITH_STATUS - {"pods", "nodes"}:
            made.pop("status", None)
        return self._commit("ADDED", key, made)

    def write(self, key: Key, given: Object, sub: str = "") -> Object:
        """Put `given` in the place of what is there; only its status, or all but its status."""
        old = self.get(key)
        version = given.get("metadata", {}).get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        if given.get("metadata", {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise Refusal(409, "Conflict", "Precondition failed: UID in precondition")
        new = copy.deepcopy(old if sub == "status" else given)
        source = given if sub == "status" else old
        if sub == "status" or key[0].split("/")[-1] in WITH_STATUS:
            new.pop("status", None)
            new |= {"status": copy.deepcopy(source["status"])} if "status" in source else {}
        meta = new.setdefault("metadata", {})
        for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
            if name in old["metadata"]:
                meta[name] = old["metadata"][name]
        meta["generation"] = old["metadata"]["generation"] + (new.get("spec") != old.get("spec"))
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return old
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            return self._commit("DELETED", key, new)
        return self._commit("MODIFIED", key, new)

    def delete(self, key: Key, uid: str = "", version: str = "") -> Object:
        old = self.get(key)
        meta = old["metadata"]
        if uid not in ("", meta["uid"]) or version not in ("", meta["resourceVersion"]):
            raise Refusal(409, "Conflict", "Precondition failed")
        new = copy.deepcopy(old)
        if not meta.get("finalizers"):
            return self._commit("DELETED", key, new)
        if meta.get("deletionTimestamp"):
            return old
        new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z"
        return self._commit("MODIFIED", key, new)

    def _commit(self, kind: str, key: Key, new: Object) -> Object:
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        before = self.objects.get(key)
        if kind == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = new
        change = Change(self.version, kind, key, new, before)
        self.history.append(change)
        for listener in list(self.listeners):
            listener(change)
        return new


def matches(found: Object, labels: str, fields: str) -> bool:
    """Whether an object is selected; selectors of equality, presence and sets."""
    own: Mapping[str, str] = found.get("metadata", {}).get("labels") or {}
    return all(_label(own, part) for part in _terms(labels)) and all(
        _field(found, part) for part in _terms(fields)
    )


def _terms(selector: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def _label(own: Mapping[str, str], term: str) -> bool:
    if among := re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", term):
        values = {value.strip() for value in among[3].split(",")}
        return (own.get(among[1]) in values) == (among[2] == "in")
    if "!=" in term:
        key, value = term.split("!=", 1)
        return own.get(key) != value
    if "=" in term:
        key, value = re.split("==?", term, maxsplit=1)
        return own.get(key) == value
    return (term.lstrip("!") in own) != term.startswith("!")


def _field(found: Object, term: str) -> bool:
    key, value = re.split("[!=]=?", term, maxsplit=1)
    node: Any = found
    for part in key.split("."):
        node = node.get(part, {}) if isinstance(node, dict) else {}
    return (str(node or "") == value) != ("!=" in term)
