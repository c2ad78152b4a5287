"""The SDK's public surface, read from the code: as a page for people, and as a list for a test.

    python -m tools.sdkdocs             writes docs/sdk.md and tests/unit/sdk/surface.txt
    python -m tools.sdkdocs --check     names the one that is out of date, and fails

A change of the list is a change that users see: read its diff before committing it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from openshift_ai_sdk import training

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs/sdk.md"
SURFACE: Final = ROOT / "tests/unit/sdk/surface.txt"

GROUPS: Final = {
    "Jobs": ("MPIJob", "TrainJob", "train"),
    "Clients": ("TrainingClient", "MPIJobClient", "TrainJobClient", "connect"),
    "What a job needs": (
        "ResourceRequirements",
        "VolumeMount",
        "MPIJobSpec",
        "ReplicaSpec",
        "RunPolicy",
        "SchedulingPolicy",
        "TrainJobSpec",
        "RuntimeRef",
        "Trainer",
    ),
    "What is said of a job": (
        "JobState",
        "ReplicaCount",
        "Finding",
        "CheckReport",
        "CheckStep",
        "JobMetrics",
        "PodUsage",
        "GpuUsage",
        "Progress",
        "LogLine",
        "EventInfo",
        "JobList",
        "JobSummary",
        "JobDetails",
        "PodInfo",
        "RankInfo",
        "TrainJobStatus",
        "TrainingRuntime",
    ),
    "Errors": (
        "JobError",
        "JobNotFound",
        "RuntimeNotFound",
        "VolumeNotFound",
        "JobExists",
        "JobFailed",
        "JobTimeout",
        "NotShippable",
        "ClusterUnreachable",
        "K8sApiException",
        "InvalidJob",
    ),
}
WIDE: Final = 88

_HEAD: Final = """\
<!-- Written by `python -m tools.sdkdocs` from the code. Do not edit. -->
# The Python SDK

{intro}

Other names: `ResourceSpec` is `ResourceRequirements`, `PodStatus` is `PodInfo`, `Event` is
`EventInfo`.
"""


def surface() -> str:
    """Every public name with its members and signatures, one a line."""
    lines = []
    for name in sorted(training.__all__):
        thing = getattr(training, name)
        lines.append(f"{name}{_bases(thing)}{_signature(thing)}")
        lines += [f"    {kind}{member}{text}" for kind, member, text, _ in _members(thing)]
    return "\n".join(lines) + "\n"


def page() -> str:
    intro = re.sub(r"(?m)(?:^(?: {4}.*)?\n)+", _as_code, inspect.cleandoc(training.__doc__ or ""))
    parts = [_HEAD.format(intro=intro)]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, getattr(training, name)) for name in names]
    return "\n".join(parts)


def _as_code(block: re.Match[str]) -> str:
    text = inspect.cleandoc(block[0]).strip()
    return f"\n```python\n{text}\n```\n\n" if text else "\n"


def _entry(name: str, thing: Any) -> str:
    lines = [f"### {name}\n", _code(name, _signature(thing)), _prose(thing)]
    if isinstance(thing, type) and issubclass(thing, Exception):
        others = [f"`{base.__name__}`" for base in thing.__bases__ if base is not Exception]
        lines.append(f"Is also a {' and a '.join(others)}.\n" if others else "")
    members = [*_members(thing)]
    if any(kind == "property " for kind, *_ in members):
        lines.append("Properties:\n")
    for _, member, signature, made in (m for m in members if m[0] == "property "):
        text = _prose(made).strip()
        lines.append(f"- `{member}{signature}`" + (f": {text}" if text else ""))
    if any(kind == "property " for kind, *_ in members):
        lines.append("")
    for kind, member, signature, made in (m for m in members if m[0] != "property "):
        lines += [f"#### {name}.{member}\n", _code(f"{kind}{member}", signature), _prose(made)]
    return "\n".join(line for line in lines if line or line == "") + "\n"


def _code(name: str, signature: str) -> str:
    """A signature as code; a long one with one parameter a line."""
    if len(name + signature) > WIDE:
        inner, end = signature[1:].rsplit(")", 1)
        parts = re.split(r", (?=\*|\w+: )", inner)
        signature = "(\n" + "".join(f"    {part},\n" for part in parts) + ")" + end
    return f"```python\n{name}{signature}\n```\n"


def _members(thing: Any) -> Iterator[tuple[str, str, str, Any]]:
    """(kind, name, signature, object) of what a class offers, in the order of its definition."""
    if not isinstance(thing, type):
        return
    seen: dict[str, Any] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.startswith("mpi_trainer"):
            seen |= vars(base)
    for name, made in seen.items():
        if name.startswith("_"):
            continue
        if isinstance(made, classmethod):
            start = "async " if inspect.iscoroutinefunction(made.__func__) else ""
            yield f"{start}classmethod ", name, _signature(getattr(thing, name)), made.__func__
        elif isinstance(made, property):
            returns = inspect.signature(made.fget or len).return_annotation
            yield "property ", name, f": {_plain(returns)}", made.fget
        elif inspect.isfunction(made):
            start = "async " if inspect.iscoroutinefunction(made) else ""
            yield start, name, _signature(made), made


def _signature(thing: Any) -> str:
    if isinstance(thing, type) and issubclass(thing, tuple):
        return ""
    signature = inspect.signature(thing)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {_shown(parameter.default)}"
        parts.append(f"{parameter.name}: {_plain(parameter.annotation)}{default}")
    returned = signature.return_annotation
    ends = "" if isinstance(thing, type) else f" -> {_plain(returned)}"
    return f"({', '.join(parts)}){ends}"


def _shown(default: Any) -> str:
    if isinstance(default, msgspec.Struct):
        return f"{type(default).__name__}(…)"
    return "{}" if repr(default) == "<factory>" else repr(default)


def _plain(annotation: Any) -> str:
    """An annotation without modules and bounds."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"(?:typing\.)?Annotated\[(\w+), [^]]*\]", r"\1", text)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)
    return re.sub(r"Optional\[([^][]*)\]", r"\1 | None", text)


def _bases(thing: Any) -> str:
    if isinstance(thing, type) and issubclass(thing, Exception):
        return f"[{', '.join(base.__name__ for base in thing.__bases__)}]"
    return ""


def _prose(thing: Any) -> str:
    """A docstring as Markdown: its sections become lists."""
    out: list[str] = []
    for line in inspect.cleandoc(getattr(thing, "__doc__", None) or "").splitlines():
        if line in ("Args:", "Raises:"):
            out += [line, ""]
        elif found := re.fullmatch(r" {4}(\w+): (.*)", line):
            out.append(f"- `{found[1]}`: {found[2]}")
        else:
            out.append(f"  {line.strip()}" if line.startswith("    ") else line)
    return "\n".join(out) + "\n" if out else ""


def main(arguments: list[str]) -> int:
    stale = 0
    for path, text in ((PAGE, page()), (SURFACE, surface())):
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is out of date: run `python -m tools.sdkdocs`")
        else:
            path.write_text(text)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
