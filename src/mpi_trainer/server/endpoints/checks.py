"""Whether a runtime, or the job of a file, works: read, then tried by a small job of two pods.

A test runs pods in the caller's namespace with the caller's rights. One caller has one test at a
time; it ends, and its job is removed, where the caller does not wait for the answer.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from mpi_trainer.api.errors import INVALID, FieldError
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.check.report import CheckReport, CheckStep, words
from mpi_trainer.sdk.job.check import Target, check
from mpi_trainer.sdk.job.trainjob import find_runtime
from mpi_trainer.server import values
from mpi_trainer.server.endpoint import LONG_SECONDS, PLAN, Answer, Call, Endpoint, Manifest
from mpi_trainer.server.endpoints.choices import RuntimeQuery
from mpi_trainer.server.endpoints.plan import read_file
from mpi_trainer.server.problems import refused

_LONGEST: Final = 480
"""seconds of a smoke run, so that there is time to remove it within the call's own"""
Seconds = Annotated[int, msgspec.Meta(ge=10, le=_LONGEST)]
READING: Final = "reading"
_PASSED: Final = {"ok": True, "failed": False, "not tried": None}


class TestQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`timeout` is of the smoke run, in seconds; `smokeRun=false` only reads."""

    timeout: Seconds = 300
    smoke_run: bool = True


class RuntimeTestQuery(RuntimeQuery, frozen=True, rename="camel"):
    timeout: Seconds = 300
    smoke_run: bool = True


async def test_runtime(call: Call) -> Answer:
    query: RuntimeTestQuery = call.query
    found = await find_runtime(call.backend, call.path["name"], call.namespace, query.kind)
    return await _tested(call, Target(found, found))


async def test_file(call: Call) -> Answer:
    file = await read_file(call)
    if file.config_maps or file.secrets:
        raise refused(
            422,
            "invalid-job",
            "the body holds ConfigMaps or Secrets, which a test does not create",
            "Create them first, and send a file without them.",
        )
    return await _tested(call, await _target(call, file))


async def _tested(call: Call, target: Target) -> Answer:
    query: TestQuery = call.query
    report = await check(
        call.backend, target, call.namespace, timeout=query.timeout, smoke_run=query.smoke_run
    )
    return Answer(answer_of(report))


async def _target(call: Call, file: JobFile) -> Target:
    found: tuple[MPIJob | TrainJob | Runtime, ...] = (*file.jobs, *file.train_jobs)
    found = found or file.runtimes
    if len(found) != 1:
        hint = "Send a file with one job, or with one runtime."
        raise refused(422, "invalid-job", f"the body holds {len(found)} of what is tested", hint)
    value = found[0]
    said = value.metadata.namespace
    if said and said != call.namespace:
        rule = f"must be {call.namespace}, as in the address"
        wrong = FieldError(("metadata", "namespace"), INVALID, said, rule, "leave it out")
        raise refused(422, "invalid-job", str(wrong), errors=[wrong])
    if isinstance(value, Runtime):
        return Target(value, value, brought=True)
    if isinstance(value, MPIJob):
        return Target(value)
    own = next((one for one in file.runtimes if serves(one, value)), None)
    if own is not None:
        return Target(value, own, brought=True)
    return Target(value, await call.backend.runtime(value.spec.runtime_ref, call.namespace))


def answer_of(report: CheckReport) -> values.TestReport:
    """Reading is the first step. What the findings advise stands with the first that failed."""
    wrong = "; ".join(report.errors or report.warnings)
    steps = [values.TestStep(READING, not report.errors, wrong, "")]
    steps += [_step(one) for one in report.steps]
    advice = report.findings[0].remedy if report.findings else ""
    late = next((n for n, one in enumerate(steps) if one.passed is False), None)
    if late is not None and advice:
        steps[late] = msgspec.structs.replace(steps[late], remedy=advice)
    lines = [*words(report)]
    for one in report.findings:
        lines[-1:-1] = [f"cause: {one.title}", *([f"  {one.remedy}"] if one.remedy else [])]
    return values.TestReport(
        passed=report.passed,
        summary=report.summary,
        steps=tuple(steps),
        text="\n".join(lines) + "\n",
        seconds=report.seconds,
        latency_seconds=report.latency,
        bytes_per_second=report.bandwidth,
    )


def _step(one: CheckStep) -> values.TestStep:
    return values.TestStep(one.name, _PASSED[one.outcome], one.text, "")


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/api/v1/namespaces/{namespace}/runtimes/{name}/test",
        "testRuntime",
        "Whether a runtime works: a small job of two pods is run, and removed",
        test_runtime,
        values.TestReport,
        query=RuntimeTestQuery,
        seconds=LONG_SECONDS,
        heavy=True,
    ),
    Endpoint(
        "POST",
        f"{PLAN}test",
        "testJobFile",
        "Whether the job or runtime of a file works: a small job of two pods is run, and removed",
        test_file,
        values.TestReport,
        query=TestQuery,
        body=Manifest(),
        seconds=LONG_SECONDS,
        heavy=True,
    ),
)
