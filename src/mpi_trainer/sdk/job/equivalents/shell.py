"""A job as a command line of `odh`, for a POSIX shell. Pure.

Every word that is not plain is quoted, so nothing in a job is read as a command of the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import count

from mpi_trainer.api import names
from mpi_trainer.api.defaults import CLEAN_NONE
from mpi_trainer.api.kinds.mpijob import OPEN_MPI, RunPolicy
from mpi_trainer.sdk.job.equivalents.words import Words
from mpi_trainer.sdk.job.specs import LOCAL_IMAGE, ResourceRequirements

CLEAN_RUNNING = "Running"
"""what jobs from a command line have"""


def of_words(words: Words) -> str:
    """Empty where the command line has no option for something."""
    if not _sayable(words):
        return ""
    new = words.new
    options = " ".join(map(shlex.quote, _options(words)))
    command = " ".join(map(shlex.quote, new.command))
    return f"odh mpijob create {shlex.quote(new.name)} {options} -- {command}"


def of_file(kind: str, text: str, namespace: str) -> str:
    """With the manifest in the line's own input."""
    taken = set(text.split("\n"))
    mark = next(word for n in count() if (word := f"EOF{n or ''}") not in taken)
    end = "" if text.endswith("\n") else "\n"
    return f"odh {kind} create -n {shlex.quote(namespace)} -f - <<'{mark}'\n{text}{end}{mark}\n"


def _sayable(words: Words) -> bool:
    new, policy = words.new, words.new.run_policy
    said = RunPolicy(
        clean_pod_policy=CLEAN_RUNNING,
        ttl_seconds_after_finished=policy.ttl_seconds_after_finished,
        active_deadline_seconds=policy.active_deadline_seconds,
        backoff_limit=policy.backoff_limit,
        suspend=policy.suspend,
    )
    amounts = (new.resources, new.launcher_resources)
    variables = all(names.env_name(name) is None for name, _ in new.env)
    mounts = (f"{one.claim}{one.mount_path}" for one in new.volumes)
    claims = all(not one.sub_path for one in new.volumes) and not any(":" in one for one in mounts)
    return (
        policy == said
        and policy.clean_pod_policy != CLEAN_NONE
        and not any(one.other for one in amounts)
        and not new.launcher_resources.gpu
        and variables
        and claims
        and new.implementation in _builds()
    )


def _options(words: Words) -> Iterator[str]:
    new, policy = words.new, words.new.run_policy
    yield from ("-n", new.namespace, "--workers", str(new.workers), "--slots", str(new.slots or 1))
    yield from _amounts("", new.resources)
    yield from _amounts("launcher-", new.launcher_resources)
    mpi = "" if new.implementation == OPEN_MPI else _builds()[new.implementation]
    claims = (f"{one.claim}:{one.mount_path}{':ro' * one.read_only}" for one in new.volumes)
    for option, texts in (
        ("--image", ["" if new.image == LOCAL_IMAGE else new.image]),
        ("--mpi", [mpi]),
        ("-e", map("=".join, new.env)),
        ("--pvc", claims),
        ("--shm-size", [words.shm_size]),
        ("--node-selector", map("=".join, new.node_selector)),
        ("--label", map("=".join, words.labels)),
        ("--queue", [words.queue]),
        ("--priority-class", [words.priority_class]),
        ("--service-account", [words.service_account]),
        ("--retries", [str(policy.backoff_limit or "")]),
        ("--ttl", [_span(policy.ttl_seconds_after_finished)]),
        ("--time-limit", [_span(policy.active_deadline_seconds)]),
    ):
        yield from (word for text in texts if text for word in (option, text))
    yield from (["--suspended"] if policy.suspend else [])
    yield from (["--as-is"] if new.as_is else [])


def _amounts(prefix: str, needs: ResourceRequirements) -> Iterator[str]:
    if needs.gpu:
        yield from ("--gpu", str(needs.gpu))
    for option, amount in (("cpu", needs.cpu), ("memory", needs.memory)):
        if amount is not None:
            yield from (f"--{prefix}{option}", str(amount))


def _span(seconds: int | None) -> str:
    return "" if seconds is None else f"{seconds}s"


def _builds() -> dict[str, str]:
    """The first build of each implementation, as `--mpi` takes it."""
    from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS

    return {one.implementation: one.name for one in reversed(DISTRIBUTIONS)}
