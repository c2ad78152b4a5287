"""What an API server refuses, line by line in the words that help. Pure.

A refusal speaks of schemas, webhooks and decoders; whoever wrote the job wants the field, what is
wrong with it, and what to do. Whatever is not recognised stays as the server said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mpi_trainer.api.spelling import nearest

_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<why>.*)', re.S)
_BROKEN_WEBHOOK = re.compile(r'failed calling webhook "(?P<name>[^"]+)": (?P<why>.*)', re.S)
_STRICT = re.compile(r'(?P<what>unknown|duplicate) field "(?P<field>[^"]+)"')
_QUOTA = re.compile(
    r"exceeded quota: (?P<quota>[^,]+), requested: (?P<asked>.*), used: (?P<used>.*), "
    r"limited: (?P<hard>[^;\n]*)"
)
_OBJECT = re.compile(r'^\S+ "[^"]*" is (?:invalid|forbidden): ')
_WRITTEN = re.compile(r"^Invalid value: .*?: (?=\S+ in body )", re.S)


def lines(
    message: str, causes: Sequence[Mapping[str, Any]] = (), known: Sequence[str] = ()
) -> tuple[str, ...]:
    """What is to be mended, one line each; `known` are fields that a misspelt one may mean."""
    return tuple(dict.fromkeys(_lines(message.strip(), causes, known))) or (message,)


def over_quota(message: str) -> str:
    """What a quota without room has, in numbers; empty where the message is of another kind."""
    found = _QUOTA.search(message)
    if found is None:
        return ""
    asked, used, hard = (_pairs(found[name]) for name in ("asked", "used", "hard"))
    numbers = (
        f"{used.get(name, '0')} of {hard[name]} {name} in use, and {asked.get(name, '0')} more "
        "asked for"
        for name in hard
    )
    return f"quota exceeded: `{found['quota']}` has no room: {'; '.join(numbers)}"


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.replace(" ", "").split(",") if "=" in part)


def _lines(
    message: str, causes: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> Iterator[str]:
    if found := _BROKEN_WEBHOOK.search(message):
        yield (
            f"the cluster's admission webhook {found['name']} does not answer, and nothing gets "
            f"in without it: {shortened(found['why'])}"
        )
    elif found := _WEBHOOK.search(message):
        yield from (line.strip() for line in found["why"].splitlines() if line.strip())
    elif full := over_quota(message):
        yield full
    elif listed := list(_STRICT.finditer(message)):
        for one in listed:
            yield _strict(one["what"], one["field"], known)
    elif causes:
        for cause in causes:
            yield _cause(str(cause.get("field") or ""), str(cause.get("message") or ""))
    else:
        yield _OBJECT.sub("", message)


def _strict(what: str, field: str, known: Sequence[str]) -> str:
    if what == "duplicate":
        return f"{field}: is there twice; keep one"
    meant = nearest(field.rpartition(".")[2], known)
    return f"{field}: there is no such field" + (f"; did you mean {meant}?" if meant else "")


def _cause(field: str, message: str) -> str:
    text = shortened(_WRITTEN.sub("", message))
    for words in (f"{field} in body ", "in body "):
        text = text.replace(words, "")
    return f"{field}: {text}" if field and field != "<nil>" else text


def shortened(text: str) -> str:
    """One line of it, and no more than a message has room for."""
    line = " ".join(text.split())
    return line if len(line) <= 400 else f"{line[:399]}…"
