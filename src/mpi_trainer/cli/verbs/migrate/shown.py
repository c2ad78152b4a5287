"""What was migrated, as a person reads it and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mpi_trainer.api.errors import line, shorten
from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.api.yaml.written import written
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.migrate.checked import Checked, Result, place
from mpi_trainer.migrate.report import Converted, Fate, FieldReport
from mpi_trainer.migrate.sources import MPIJOB, Migrated, Target
from mpi_trainer.plan.migrated_pods import PodDifference

COLUMNS = ("FIELD", "RESULT", "WHERE", "NOTE")
LONGEST = 200
"""characters of a cell, or of a name: one of a megabyte would widen every line of a table"""
_SLIPS = ("mpijob", "mpijobs", "mpi-job")
FATES: dict[Fate, str] = {"carried": "carried", "changed": "changed", "lost": "not carried"}


def documents(jobs: Sequence[Converted]) -> Iterator[str]:
    for job in jobs:
        head = f"# From {job.kind} {job.name} ({job.api_version})\n"
        for made in job.objects:
            yield head + written(made)
            head = ""


def why_none(found: Migrated, to: Target | None) -> str:
    """A hint for somebody whose files hold no job to convert."""
    if to == MPIJOB and mpijob.KIND in found.passed:
        return "An MPIJob v2beta1 is what `--to mpijob` makes. Leave that out to get a TrainJob."
    slip = next((kind for kind in found.passed if kind.lower() in _SLIPS), "")
    if slip and slip != mpijob.KIND:
        return f"Write `kind: {mpijob.KIND}`, as Kubernetes has it."
    if slip:
        group = mpijob.API_VERSION.partition("/")[0]
        return f"An {mpijob.KIND} of another API group than {group} is not converted."
    if trainjob.KIND in found.passed:
        return "A TrainJob is what others become, and needs no conversion."
    return (
        "MPIJobs, SageMaker's CreateTrainingJob, and command jobs of Azure ML with "
        "`distribution` are converted."
    )


def say_report(found: Migrated, unread: Sequence[str], results: Checked) -> None:
    for text in unread:
        terminal.say(f"{terminal.bad('error')}: {text}")
    for job in found.jobs:
        _say_job(job)
        if place(job) in results and not job.errors:
            _say_result(results[place(job)], compared=bool(job.through))
    if found.passed:
        kinds = ", ".join(f"{count} {_cut(kind)}" for kind, count in sorted(found.passed.items()))
        terminal.say(terminal.inert(f"passed over: {kinds}"))


def _say_job(job: Converted) -> None:
    name, version = _cut(job.name) or "without a name", _cut(job.api_version) or "no apiVersion"
    title = f"{_cut(job.kind)} {name} ({version})"
    if job.errors:
        terminal.say(terminal.inert(f"{title}: cannot be converted"))
        for error in job.errors:
            terminal.say(f"{terminal.bad('error')}: {terminal.inert(line(error))}")
        terminal.say()
        return
    counts = Counter(one.fate for one in job.fields)
    words = ", ".join(f"{counts[fate]} {shown}" for fate, shown in FATES.items() if counts[fate])
    made = " and ".join(one["kind"] for one in job.objects)
    terminal.say(terminal.inert(f"{title} becomes {made}: {words}"))
    terminal.say(terminal.table(COLUMNS, map(_row, job.fields)))
    for remedy in dict.fromkeys(one.remedy for one in job.fields if one.remedy):
        terminal.say(terminal.inert(f"to do: {remedy}"))
    terminal.say()


def _row(one: FieldReport) -> tuple[str, ...]:
    field = f"{one.of} {one.field}" if one.of else one.field
    return (_cut(field) or "-", FATES[one.fate], one.to or "-", _cut(one.note))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _say_result(result: Result, *, compared: bool) -> None:
    """`compared`: whether there were pods of two kinds to compare."""
    for text in result.refusals:
        said = terminal.inert(text)
        terminal.say(f"{terminal.bad('error')}: the cluster would refuse it: {said}")
    for text in result.notes:
        terminal.say(terminal.inert(f"note: {text}"))
    known = [one for one in result.differences if one.known]
    for one in result.differences:
        if not one.known:
            terminal.say(terminal.inert(f"differs: {one.role} {one.field}: {_sides(one)}"))
    for one in known:
        terminal.say(f"differs, as expected: {one.role} {one.field}: {one.known}")
    if compared and len(known) == len(result.differences):
        terminal.say("otherwise the pods of both are the same")
    if result.asked and not result.refusals:
        terminal.say("the cluster would take it")
    terminal.say()


def _sides(one: PodDifference) -> str:
    before, after = (
        "nothing" if value is msgspec.UNSET else shorten(value) for value in (one.before, one.after)
    )
    return f"{before} before, {after} after"


def as_json(found: Migrated, unread: Sequence[str], results: Checked, *, whole: bool) -> str:
    """With the objects only where all of them are to be written."""
    told = found.jobs if whole else [replace(job, objects=()) for job in found.jobs]
    data = {
        "jobs": [_job(job, None if job.errors else results.get(place(job))) for job in told],
        "unread": list(unread),
        "passedOver": dict(found.passed),
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def _job(job: Converted, result: Result | None) -> Mapping[str, Any]:
    fields = [
        {"field": one.field, "result": FATES[one.fate], "to": one.to, "note": one.note,
         "remedy": one.remedy, "of": one.of}
        for one in job.fields
    ]  # fmt: skip
    checks = {} if result is None else {"check": _result(result)}
    return {
        "kind": job.kind,
        "apiVersion": job.api_version,
        "name": job.name,
        "namespace": job.namespace,
        "effort": job.effort,
        "errors": [line(error) for error in job.errors],
        "fields": [{key: value for key, value in one.items() if value} for one in fields],
        "objects": list(job.objects),
        **checks,
    }


def _result(result: Result) -> Mapping[str, Any]:
    listed = [
        {key: value for key, value in msgspec.structs.asdict(one).items()
         if value is not msgspec.UNSET}
        for one in result.differences
    ]  # fmt: skip
    said = {"refusals": list(result.refusals), "notes": list(result.notes)}
    return {"differences": listed, **said, "asked": result.asked}
