"""What users import and call does not change by accident, and the page about it is true."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys

from openshift_ai_sdk import training
from tools import sdkdocs

ANEW = "run `python -m tools.sdkdocs` and read the diff: users see it"
HEAVY = {
    "asyncio",
    "aiohttp",
    "fastapi",
    "grpc",
    "mpi4py",
    "numpy",
    "yaml",
    "IPython",
    "subprocess",
}


def test_public_surface_is_as_recorded() -> None:
    assert sdkdocs.SURFACE.read_text() == sdkdocs.surface(), ANEW


def test_page_about_the_sdk_is_up_to_date() -> None:
    assert sdkdocs.PAGE.read_text() == sdkdocs.page(), ANEW


def test_page_tells_of_every_name() -> None:
    told = {name for names in sdkdocs.GROUPS.values() for name in names}
    twins = {name for name in training.__all__ if name.startswith("Async")}
    assert told | twins | {"ResourceSpec", "PodStatus", "Event"} == set(training.__all__)


def test_requirements_names_are_all_there() -> None:
    """REQUIREMENTS §4: the names and methods that users were promised."""
    job = "create get_status wait_for_completion get_logs delete suspend resume restart get"
    client = (
        "create_mpi_job get_job wait_for_job_completion stream_job_events get_job_logs delete_job "
        "list_jobs get_job_metrics"
    )
    for kind, methods in (
        (training.MPIJob, job),
        (training.AsyncMPIJob, job),
        (training.TrainingClient, client),
        (training.AsyncTrainingClient, client),
    ):
        for method in methods.split():
            assert inspect.getdoc(getattr(kind, method)), f"{kind.__name__}.{method}"
    order = "name namespace workers image command resources volume_mounts env node_selector"
    assert [*inspect.signature(training.MPIJob).parameters][:9] == order.split()


def test_twins_have_the_same_methods_with_the_same_parameters() -> None:
    for name in ("MPIJob", "TrainJob", "TrainingClient", "MPIJobClient", "TrainJobClient"):
        sync, twin = getattr(training, name), getattr(training, f"Async{name}")
        for method in (m for m in dir(twin) if not m.startswith("_")):
            one, other = getattr(sync, method), getattr(twin, method)
            if callable(one):
                assert _named(one) == _named(other), f"{name}.{method}"


def _named(method: object) -> list[str]:
    assert callable(method)
    return [str(p) for p in inspect.signature(method).parameters.values() if p.name != "self"]


def test_import_brings_nothing_heavy() -> None:
    """The SDK alone pulls in no server, no MPI, and no event loop before it is needed."""
    program = (
        "import json, sys; before = set(sys.modules); import openshift_ai_sdk.training; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & HEAVY
    assert "mpi_trainer.sdk.backends.local" not in loaded


def test_every_error_can_be_caught_as_what_requirements_say() -> None:
    for name, kind in (
        ("JobFailed", RuntimeError),
        ("JobTimeout", TimeoutError),
        ("JobExists", ValueError),
        ("NotShippable", ValueError),
        ("InvalidJob", ValueError),
        ("JobNotFound", LookupError),
    ):
        assert issubclass(getattr(training, name), kind)
    refused = training.K8sApiException("no", status=403, body="forbidden: quota")
    assert (refused.status, refused.body) == (403, "forbidden: quota")


def test_page_s_code_is_python() -> None:
    for block in re.findall(r"```python\nfrom .*?```", sdkdocs.PAGE.read_text(), re.DOTALL):
        compile(block.removeprefix("```python").removesuffix("```"), "docs/sdk.md", "exec")
