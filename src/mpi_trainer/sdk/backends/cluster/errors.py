"""What an API server answers, as the errors of `sdk/errors.py` and in words that help. Pure.

Whoever may not do something is told which right is missing, on what and where, and which of the
shipped roles has it. The server's status and its own message are kept in every K8sApiException.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mpi_trainer.diagnose.refusals import lines, over_quota
from mpi_trainer.kube.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
)
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.errors import (
    ClusterUnreachable,
    JobChanged,
    JobError,
    JobExists,
    JobNotFound,
    K8sApiException,
    RuntimeNotFound,
)

_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?'
)
_RUNTIMES = {r.plural: r.kind for r in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}
_READS = frozenset({"get", "list", "watch"})
_QUOTA = "Ask for less, delete jobs that have ended, or ask an administrator to raise the quota."
_INSTALL = "Install the operator (docs/install.md), or choose another cluster with --context."
_LOGIN = "Log in again (`oc login`, or renew the token in your kubeconfig) and repeat the command."


@contextmanager
def cluster_errors(key: Key | None = None) -> Iterator[None]:
    """Errors of `kube` inside the block become ours; `key` is the job that it is about."""
    try:
        yield
    except KubeError as error:
        raise translated(error, key) from error
    except JobError:
        raise
    except ValueError as error:
        # A name that no path of the API can hold.
        raise JobError(str(error), "Correct the name.") from error


def translated(error: KubeError, key: Key | None = None) -> JobError:
    if isinstance(error, ApiError):
        return _answered(error, key)
    if isinstance(error, ConfigError):
        return JobError(str(error), "See `kubectl config get-contexts`, or log in again.")
    if isinstance(error, Unreachable):
        return ClusterUnreachable(
            str(error).partition(": ")[2] or str(error),
            "Check the network and the server's address in your kubeconfig.",
        )
    return JobError(str(error), "Try again; if it persists, look at the API server's log.")


def server_words(error: K8sApiException) -> str:
    """What is wrong, with the server's own words as a line for each thing to mend."""
    cause = error.__cause__
    if not isinstance(cause, ApiError) or cause.message not in error.problem:
        return error.problem
    said = lines(cause.message, cause.details.get("causes") or ())
    head = error.problem.removesuffix(cause.message).rstrip(" :") or "the cluster refuses"
    return f"{head}: {said[0]}" if len(said) == 1 else "\n  ".join([f"{head}:", *said])


def _answered(error: ApiError, key: Key | None) -> JobError:
    made: JobError
    match error:
        case AlreadyExists() if key is not None:
            made = JobExists(
                f"job {key} already exists",
                f"Choose another name, or remove it: `odh {_word(error)} delete {key.typed}`.",
            )
        case Forbidden():
            made = _forbidden(error)
        case Unauthorized():
            made = _refused(
                "unauthorized: the cluster does not accept your login; it may have expired",
                error,
                _LOGIN,
            )
        case NotFound():
            made = _missing(error, key)
        case Invalid():
            made = _refused(f"the cluster refuses the job: {error.message}", error)
        case _:
            made = _refused(f"the cluster refuses: {error.message or error}", error, error.remedy)
    return made


def _word(error: ApiError) -> str:
    """The kind that the error is about, as it is typed."""
    return _kind(error.path).partition(".")[0].removesuffix("s")


def _forbidden(error: Forbidden) -> K8sApiException:
    found = _FORBIDDEN.search(error.message)
    if found is None:
        # Quotas and admission refuse with the same status; their words are the answer.
        if full := over_quota(error.message):
            return _refused(full, error, _QUOTA)
        return _refused(f"the cluster refuses: {error.message}", error)
    what = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    if found["verb"] == "impersonate":
        return _refused(
            f"forbidden: you ({found['user']}) may not impersonate {what}",
            error,
            f"Leave out --as, or ask an administrator for the right `impersonate` on `{what}`.",
        )
    where = f" in namespace {found['namespace']}" if found["namespace"] else " of all namespaces"
    role = _role(found["verb"], found["resource"])
    return _refused(
        f"forbidden: you ({found['user']}) may not {found['verb']} {what}{where}",
        error,
        f"Ask an administrator for the right `{found['verb']}` on `{what}`{where}; "
        f"the role {role} has it.",
    )


def _role(verb: str, resource: str) -> str:
    if resource == "pods/exec" or (resource == "pods" and verb not in _READS):
        return "mpijob-admin"
    return "mpijob-viewer" if verb in _READS and resource != "configmaps" else "mpijob-user"


def _missing(error: NotFound, key: Key | None) -> JobError:
    kind = str(error.details.get("kind") or "")
    if kind == "namespaces":
        name = error.details.get("name") or (key.namespace if key else "")
        return _refused(f"namespace {name} not found", error, "Name another with -n, or make it.")
    if not error.details.get("name"):
        return _refused(f"this cluster does not know {_kind(error.path)}", error, _INSTALL)
    if kind in _RUNTIMES:
        return RuntimeNotFound(
            f"{_RUNTIMES[kind]} {error.details['name']} not found on the cluster",
            "List them with `odh runtime list`.",
        )
    if key is not None:
        return no_job(key)
    return _refused(f"{kind} {error.details['name']} not found", error)


def _kind(path: str) -> str:
    """`mpijobs.kubeflow.org` of any path to them."""
    root, *parts = path.strip("/").split("/")
    group = parts[0] if root == "apis" else ""
    rest = parts[2:] if group else parts[1:]
    rest = rest[2:] if rest[:1] == ["namespaces"] and len(rest) > 2 else rest
    return f"{rest[0]}.{group}" if group and rest else "".join(rest[:1]) or path


def job_changed(key: Key) -> JobChanged:
    return JobChanged(
        f"job {key} has changed since it was read", "Read it again, and repeat what you asked for."
    )


def no_job(key: Key) -> JobNotFound:
    return JobNotFound(
        f"job {key} not found on the cluster",
        f"List jobs with `odh mpijob list -n {key.namespace}`.",
    )


def _refused(problem: str, error: ApiError, hint: str = "") -> K8sApiException:
    return K8sApiException(problem, error.code, error.message, hint[:1].upper() + hint[1:])
