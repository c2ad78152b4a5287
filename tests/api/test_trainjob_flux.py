"""TrainJobs that Flux runs, on a real API server."""

from __future__ import annotations

import base64
import re

from tests.api.admin import Admin
from tests.api.running import Controller
from tests.api.trainjob_lab import (
    TRAIN,
    admin,
    api_server,
    controller,
    end,
    job_set,
    runtime,
    submit,
    train_job,
    until,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server", "controller"]


def test_flux_has_scripts_and_a_key_that_nobody_can_work_out(
    admin: Admin, controller: Controller
) -> None:
    """U-7: both stand before the JobSet, and the key goes with the job's end (AC-19)."""
    admin.create(f"{TRAIN}/trainingruntimes", runtime("flux", {"flux": {}}))
    keys = []
    for name in ("one", "two"):
        submit(admin, train_job(name, runtime="flux"))
        job_set(admin, name)
        texts = admin.get(f"api/v1/configmaps/{name}-flux-entrypoint")
        assert texts is not None and "broker.toml" in texts["data"]
        made = admin.get(f"api/v1/secrets/{name}-flux-curve")
        assert made is not None
        keys.append(base64.b64decode(made["data"]["curve.cert"]).decode())
    private = [re.search(r'secret-key = "(.{40})"', text) for text in keys]
    assert all(private)
    assert len({found[1] for found in private if found}) == 2
    end(admin, "Completed", "AllJobsCompleted", "one")
    until(admin, "Complete", name="one")
    eventually("key is gone", lambda: admin.get("api/v1/secrets/one-flux-curve") is None)
