"""docs/openapi.json and a server of this machine's jobs, given to schemathesis.

    python -m tests.fuzz.api PROGRAM [options of `schemathesis run`]

Live streams are left out: they do not end. So are smoke runs, which run jobs. Half of the calls are
made to name one of two jobs, which are created anew when they have been deleted; so no more than
these two are ever there, and none is left in the end. Fails where an answer is a server's error or
is not in the document. Danger: with more than one of its `--workers`, Python 3.11 fails in
schemathesis itself now and then (`AST constructor recursion depth mismatch`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Loopback
from mpi_trainer.server.rates import Rate
from tests.local.test_server import COOKIE, JOBS, manifest
from tests.local.test_server_lists import trainjob
from tests.rest import Rest, served

ROOT: Final = Path(__file__).parents[2]
HOOKS: Final = "tests.fuzz.hooks"
CHECKS: Final = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)
LEFT_OUT: Final = "(/live|/live/jobs|/test)$"
LOOK_SECONDS: Final = 2.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="odh-fuzz-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        loopback = Loopback(LocalBackend(), COOKIE)
        try:
            with served(loopback, Settings(rate=Rate(10**6, 10**6))) as port:
                server = Rest(port, loopback.token)
                with _jobs_there(server):
                    return _fuzzed(server, sys.argv[1], sys.argv[2:])
        finally:
            for one in store.folders():
                store.remove(one)


def _fuzzed(server: Rest, program: str, options: list[str]) -> int:
    words = [program, "run", "docs/openapi.json", "--url", f"http://127.0.0.1:{server.port}"]
    words += ["--header", f"Authorization: Bearer {server.token}", "--checks", CHECKS]
    words += ["--phases", "coverage,fuzzing", "--exclude-path-regex", LEFT_OUT]
    words += ["--request-timeout", "60", "--continue-on-failure", *options]
    env = {**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=ROOT, env=env, check=False).returncode


@contextmanager
def _jobs_there(server: Rest) -> Iterator[None]:
    stop = threading.Event()

    def keep() -> None:
        while True:
            server.ask("POST", JOBS, manifest("one"))
            server.ask("POST", "/api/v1/namespaces/default/trainjobs", trainjob("train"))
            if stop.wait(LOOK_SECONDS):
                return

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
