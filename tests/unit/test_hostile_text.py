"""Whatever reads what users write takes time and memory in proportion to it, whatever it says.

Every reader is given hostile text and benign text of the same size, and what it costs is compared:
in the processor's time of this thread, so that a busy machine changes nothing, and as a ratio, so
that a slow one does not either. Sizes grow, so that a reader that is cubic fails and does not hang.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mpi_trainer
from mpi_trainer.api import bounds, quantities, secret_text
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.annotations import ATTEMPTS, RECORD, seconds
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import documents, load, nesting, typed
from mpi_trainer.controller import log_tail, redact, status, stored_job
from mpi_trainer.controller.decoded_jobs import DecodedJobs
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob import record
from mpi_trainer.controller.objects import Pod, StoredJob
from mpi_trainer.controller.observed_pods import launcher_end, observed_pod
from mpi_trainer.controller.statusserver import log_progress
from mpi_trainer.decide import agent_summary, history, permanent_failures
from mpi_trainer.decide.history import Attempt, LogTail
from mpi_trainer.decide.observed import End, Failure, Observed, ObservedPod, Record
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.diagnose import cause, pod_waiting, refusals
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.diagnose.log_levels import LevelFilter
from mpi_trainer.diagnose.log_reader import Log, LogReader
from mpi_trainer.diagnose.pod_waiting import WaitingPod
from mpi_trainer.diagnose.rank_lines import RankLines
from mpi_trainer.kube import errors, requests
from mpi_trainer.kube.resources import MPIJOBS
from mpi_trainer.layout.agent import launcher_log
from mpi_trainer.layout.agent.python.lines import Clock, OpenMpiLines, hydra_lines
from mpi_trainer.layout.agent.python.relay import Padding
from mpi_trainer.layout.agent.summary import most_ranks, parse
from mpi_trainer.render.trainjob import snapshots
from mpi_trainer.runtime import logs, recorder
from mpi_trainer.sdk.backends.cluster import gpu_metrics
from mpi_trainer.webhook import review
from mpi_trainer.webhook.mpijob import judge
from tests.unit.api.building import CONTAINER, POD, job
from tests.unit.api.trainers import runtime, train_job

TIME = 60.0
MEMORY = 60.0
SIZES = (512, 4096, 16384)

Reader = Callable[[str], Any]


def spec_of(text: str) -> dict[str, Any]:
    """A job that has the text wherever a user can write some."""
    return job(
        (("metadata", "labels"), {text: text}),
        (("metadata", "annotations"), {text: text}),
        (("spec", "x"), text),
        ((*POD, "volumes"), [{"name": text, "configMap": {"name": text}}]),
        ((*CONTAINER, "image"), text),
        ((*CONTAINER, "command"), [text]),
        ((*CONTAINER, "env"), [{"name": text, "value": text}]),
        ((*CONTAINER, "resources"), {"limits": {text: text, "cpu": text}}),
    )


def nested_in(text: str) -> bytes:
    """JSON with the text as it is where it is JSON, else as a string."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps({"metadata": {"name": "a"}, "spec": text}).encode()
    return b'{"metadata":{"name":"a"},"spec":' + text.encode() + b"}"


def stored(text: str) -> Any:
    body = nested_in(text)
    try:
        kept = stored_job.kept_mpijob(typed.decode(body, StoredJob))
    except typed.TooDeep:
        kept = stored_job.kept_mpijob(typed.decode(typed.shallow(body), StoredJob))
    return DecodedJobs(MPIJob, load.job, JobMemories()).load(kept)


def reviewed(text: str) -> Any:
    asked = {"uid": "u", "operation": "CREATE", "namespace": "n", "object": spec_of(text)}
    return judge.judge(review.parse(json.dumps({"request": asked}).encode()))


def ended(text: str, role: str) -> Any:
    last = {"name": "c", "state": {"terminated": {"exitCode": 1, "message": text}}}
    said = {"phase": "Failed", "containerStatuses": [last]}
    pod = msgspec.convert({"spec": {"containers": [{"name": "c"}]}, "status": said}, Pod)
    redact.termination_message.cache_clear()
    return launcher_end(pod, 2) if role == "launcher" else observed_pod(pod, "w", "worker")


def pending(text: str) -> Any:
    why = {"type": "PodScheduled", "status": "False", "reason": text, "message": text}
    pod = msgspec.convert({"status": {"phase": "Pending", "conditions": [why]}}, Pod)
    return observed_pod(pod, "w", "worker")


def told(text: str) -> Log:
    reader = LogReader()
    reader.feed(text)
    return reader.close()


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
REQUEST = requests.get(MPIJOBS, "n", "a")
LISTED = "mpi-agent 1\nlevel full\nended Command 0\n"

READERS: dict[str, Reader] = {
    "gpu_metrics.parse": lambda text: gpu_metrics.parse([f"DCGM_X{{{text}}} 1", text]),
    "redact.tail": lambda t: redact.tail(t, [("PASSWORD", "hunter2"), ("x", t)]),
    "redact.termination_message": redact.termination_message.__wrapped__,
    "secrettext.without_keys": secret_text.without_keys,
    "secrettext.without_tokens": secret_text.without_tokens,
    "secrettext.without_known": secret_text.without_known,
    "secrettext.without_named": secret_text.without_named,
    "secrettext.without_options": secret_text.without_options,
    "logs.redacted": logs.redacted,
    "recorder.short": recorder.short,
    "summary.parse": lambda t: agent_summary.observed_ranks(parse(LISTED + t, most_ranks(2)), 1),
    "summary.parse of hosts": lambda t: agent_summary.observed_ranks(
        parse(f"{LISTED}host a {t}", 3072), 1
    ),
    "launcher_log.first": lambda t: launcher_log.first_cause(t.splitlines()),
    "ending.launcher_end": functools.partial(ended, role="launcher"),
    "look.pod_seen": functools.partial(ended, role="worker"),
    "look.pod_seen of one that waits": pending,
    "record.read": lambda t: record.read({RECORD: t}),
    "history.read": lambda t: history.read({ATTEMPTS: t}),
    "history.ended": lambda t: history.ended_attempt(
        Record(), Record(failures=(Failure(1, "a", f"rank {t}"),)), NOON
    ),
    "permanent.reason": lambda t: permanent_failures.reason(
        ObservedPod("a", "worker", "1", "Failed", end=End(code=2, reason="StartError", message=t)),
        Observed(),
    ),
    "history.with_attempt": lambda t: history.with_attempt(
        (), Attempt(1, message=t, words=(LogTail("a", t),))
    ),
    "log_tail.read_log": lambda t: log_tail.read_log(
        log_tail.LogSource(Pod(), ranks=(1, 2)), t, [("PASSWORD", "hunter2")]
    ),
    "rank_lines.feed": lambda t: RankLines("a", "launcher", "stdout").feed(t.encode() + b"\n"),
    "log_levels.takes": lambda t: LevelFilter("info").takes("a", t),
    "status_annotations.to_time": status_annotations.to_time,
    "log_progress.read": lambda t: log_progress.read(t.splitlines()),
    "reading.interval": log_progress.interval,
    "annotations.seconds": seconds,
    "quantities.parse": quantities.parse,
    "lines.feed": lambda t: hydra_lines(Clock(), b"word<").feed(t.encode()),
    "lines.feed of Open MPI 4": lambda t: OpenMpiLines(Clock(), b"word", marked=True).feed(
        t.encode()
    ),
    "relay.padded": lambda t: Padding(b"word").padded(t.encode()),
    "pod_waiting.cause of a scheduler's words": lambda t: pod_waiting.cause(
        WaitingPod(scheduled=False, message=f"0/9 nodes are available: {t}")
    ),
    "pod_waiting.cause of a kubelet's words": lambda t: pod_waiting.cause(
        WaitingPod(reason="ErrImagePull", message=t, image=t)
    ),
    "pod_waiting.absent": lambda t: pod_waiting.absent(
        f"exceeded quota: {t}, requested: {t}, used: {t}, limited: {t}"
    ),
    "pod_waiting.absent of half a quota": lambda t: pod_waiting.absent(f"exceeded quota: {t}"),
    "refusals.lines": lambda t: refusals.lines(t),
    "log_reader.feed": lambda t: cause.findings(told(t), Facts(exit_code=1)),
    "cause.findings of a status": lambda t: cause.findings(
        told("x"), Facts(exit_code=1, reason="RankLeft", message=t)
    ),
    "nesting.depth": lambda t: nesting.depth(t.encode()),
    "nesting.pruned": lambda t: nesting.pruned(t.encode(), 5),
    "typed.decode": lambda t: typed.decode(nested_in(t), dict[str, Any]),
    "status.read": lambda t: status.read(nested_in(t), MPIJob().status.__class__),
    "storedjob and jobs.load": stored,
    "load.job": lambda t: load.job(spec_of(t)),
    "load.train_job": lambda t: load.train_job(train_job((("spec", t), t))),
    "load.runtime": lambda t: load.runtime(runtime((("spec", t), {t: t}))),
    "review and judge": reviewed,
    "snapshots.held": lambda t: snapshots.runtime_in({"runtime": t}, "a"),
    "documents.parse": lambda t: documents.parse(t, "a"),
    "errors.from_answer": lambda t: errors.from_answer(REQUEST, 500, t.encode()),
}

# Each is repeated up to the size; what is odd in the middle of a text is odd at its start as well.
UNITS = (
    *("a", " ", "\n", "\t", "\x00", "é", "\U0001f600", "\u2028", "9", "0", "-", "_", ".", '"', "'"),
    *("pass", "pass ", "password=", "password='", "token: ", "secret.", 'a="', "a.b=c "),
    *("eyJ", "-eyJ", "eyJaaaaaa.", "eyJ.", "bearer ", "basic  ", "AKIA", "sk-", "://a:", "@"),
    *("-----BEGIN ", "-----BEGIN A-----", "-----END A-----", "\x1b[0", "\x1b[", "\r"),
    *(
        "0-9,",
        "0-999999,",
        "0-999999999999999999,",
        "host a 0-999999\n",
        "lost 0-99 a\n",
        "bad 1 a\n",
    ),
    *(
        "[",
        "{",
        '{"a":',
        "[{",
        '"\\',
        "\\",
        "{}",
        "[],",
        "1e9",
        "- ",
        "a: ",
        "&a [",
        "*a ",
        "? ",
        "!!",
    ),
    *(
        "[1,",
        "[1,2]<stdout>:",
        "plm:ssh: Warning: setpgid(",
        "mpi-agent| 1 a a ",
        "rank 1 on ",
        "rank ",
        "Abort(1) on node 1 (rank ",
        " Executable: ",
        "*** reported by process [1,",
        "rank=1 ",
        "Traceback (most recent call last):\n",
        "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n",
        "ValueError: ",
        "[proxy:0:1@",
        "-" * 60 + "\nA request was made to bind to\n",
        "[mpiexec@l] x unrecognized argument no port to bind ",
        "[1700000000.1] [n1:1 :2] UCX  ERROR connect(",
    ),
    *("%s", "{0}", "$(x)", "..", "/", "a-", "A_"),
)
NUMBERED = (
    lambda size: "\n".join(f"host h{n} {n}" for n in range(size // 10))[:size],
    lambda size: json.dumps({f"k{n}": n for n in range(size // 12)}),
    lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    lambda size: "[" * (size // 2) + "]" * (size // 2),
    lambda size: "\n".join(f"k{n}: v" for n in range(size // 9)),
    lambda size: json.dumps({"x": [{}] * (size // 4)}),
    lambda size: "1" * size,
)


def benign(size: int) -> str:
    """An ordinary log: lines of words, numbers and punctuation."""
    line = "epoch 3, step 1200: loss 0.25 (lr 1e-3) on worker-1, 12.5 s\n"
    return (line * (size // len(line) + 1))[:size]


def taken(reader: Reader, text: str) -> None:
    """What a reader says of it is another test's business."""
    with contextlib.suppress(ValueError, InvalidJob, record.UnreadableRecord):
        reader(text)


def spent(reader: Reader, text: str) -> float:
    began = time.thread_time()
    taken(reader, text)
    return time.thread_time() - began


def walked(text: str) -> int:
    """What a plain loop over the same text costs: the unit of all comparisons."""
    count = 0
    for letter in text:
        count += letter == "\n"
    return count


@functools.cache
def usual(name: str, size: int) -> float:
    text = benign(size)
    taken(READERS[name], text)
    runs = [spent(READERS[name], text) + spent(walked, text) for _ in range(3)]
    return statistics.median(runs)


def slowness(name: str, text: str) -> float:
    """How many times the time of benign text; measured again where it seems too long."""
    limit, reader = TIME * usual(name, len(text)), READERS[name]
    first = spent(reader, text)
    if first <= limit:
        return first / limit * TIME
    return statistics.median([first, *(spent(reader, text) for _ in range(2))]) / limit * TIME


def peak(reader: Reader, text: str) -> int:
    taken(reader, text)
    tracemalloc.start()
    try:
        taken(reader, text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def grown(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


# A tracer would take most of the time that is measured; the test of memory reads the same texts
# with it.
untraced = pytest.mark.no_cover


@untraced
@pytest.mark.parametrize("name", READERS)
def test_hostile_text_takes_no_longer_than_benign_text_of_its_size(name: str) -> None:
    """S-1, S-2, S-15."""
    for size in SIZES:
        texts = [grown(unit, size) for unit in UNITS] + [make(size) for make in NUMBERED]
        for text in texts:
            assert slowness(name, text) <= TIME, f"{size} bytes of {text[:40]!r}"


@pytest.mark.parametrize("name", READERS)
def test_hostile_text_takes_no_more_memory_than_benign_text_of_its_size(name: str) -> None:
    """S-2: 50 bytes were 354 MiB."""
    size = 4096
    usual_peak = peak(READERS[name], benign(size)) + size
    for text in [grown(unit, size) for unit in UNITS] + [make(size) for make in NUMBERED]:
        ratio = peak(READERS[name], text) / usual_peak
        assert ratio <= MEMORY, f"{ratio:.0f} times for {text[:40]!r}"


FRAGMENTS = st.lists(st.sampled_from(UNITS) | st.text(max_size=4), min_size=1, max_size=4)


@untraced
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(parts=FRAGMENTS)
@pytest.mark.parametrize("name", READERS)
def test_no_pattern_of_text_is_slow_to_read(name: str, parts: list[str]) -> None:
    """What nobody has thought of: any short text, repeated."""
    unit = "".join(parts) or "a"
    for size in SIZES[:2]:
        text = grown(unit, size)
        assert slowness(name, text) <= TIME, f"{size} bytes of {unit!r}"


def test_every_bound_is_kept_by_somebody() -> None:
    """A bound that nobody reads is a promise that nobody keeps."""
    source = Path(mpi_trainer.__file__).parent
    texts = [p.read_text() for p in source.rglob("*.py") if p.name != "bounds.py"]
    names = [name for name in vars(bounds) if name.isupper()]
    assert names
    assert [n for n in names if not any(f"bounds.{n}" in text for text in texts)] == []


# Modules of what runs in the cluster that look for patterns, and the readers above that use them.
PATTERNS = {
    "controller.log_tail": "log_tail.read_log",
    "decide.history": "history.ended",
    "decide.permanent_failures": "permanent.reason",
    "api.yaml.decode": "load.job",
    "api.yaml.documents": "documents.parse",
    "api.names": "load.job",
    "api.yaml.nesting": "nesting.pruned",
    "api.quantities": "quantities.parse",
    "api.yaml.scalars": "documents.parse",
    "api.secret_text": "redact.tail",
    "api.validation.runtime_patches": "load.train_job",
    "api.validation.security": "load.job",
    "api.validation.trainjob": "load.train_job",
    "controller.flags": "the administrator's own words",
    "controller.redact": "redact.tail",
    "controller.statusserver.log_progress": "log_progress.read",
    "diagnose.help_texts": "log_reader.feed",
    "diagnose.log_levels": "log_levels.takes",
    "diagnose.cause": "cause.findings of a status",
    "diagnose.log_reader": "log_reader.feed",
    "diagnose.rank_hosts": "log_reader.feed",
    "diagnose.proofs": "cause.findings of a status",
    "diagnose.pod_waiting": "pod_waiting.cause of a scheduler's words",
    "diagnose.rank_lines": "rank_lines.feed",
    "diagnose.readings": "log_progress.read",
    "diagnose.refusals": "pod_waiting.absent",
    "layout.agent.launcher_log": "launcher_log.first",
    "layout.agent.python.lines": "lines.feed",
    "layout.launch": "load.job",
    "render.agent_scripts": "a whole match of at most as many letters as a hash has",
    "runtime.logs": "logs.redacted",
    "server.callers": "a whole match of one class of letters, at most 16 KiB of them",
    "server.log_stores.pages": "names of pods, of one class of letters after a fixed beginning",
    "server.log_stores.settings": "an administrator's names of labels",
    "server.multipart": "tests/unit/server/test_multipart.py, on forms of 8 MiB",
    "server.openapi": "our own paths",
    "webhook.pod_fields": "review and judge",
    "server.static_files": "names of files, matched from one end to the other",
    "webhook.refusals": "the API server's own words",
}


def test_every_module_that_looks_for_patterns_has_a_reader_here() -> None:
    """So that this list cannot grow old unseen."""
    source = Path(mpi_trainer.__file__).parent
    found = set()
    for package in (
        "api",
        "controller",
        "decide",
        "diagnose",
        "kube",
        "layout",
        "render",
        "runtime",
        "server",
        "webhook",
    ):
        for path in (source / package).rglob("*.py"):
            if "re.compile(" in path.read_text():
                found.add(".".join(path.relative_to(source).with_suffix("").parts))
    assert found <= set(PATTERNS)
    for module in PATTERNS:
        importlib.import_module(f"mpi_trainer.{module}")
