"""Coverage of the processes that tests start, in a few files that reach much of them.

Each measured process takes some tenths of a second more, so most test files do without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CONFIG: Final = ROOT / "tests/processes.ini"
FILES: Final = frozenset(
    {
        "tests/local/test_cli.py",
        "tests/local/test_cli_use.py",
        "tests/local/test_docs.py",
        "tests/local/test_explain.py",
        "tests/local/test_initializers.py",
        "tests/local/test_recipes.py",
        "tests/local/test_server_docs.py",
        "tests/api/clients/test_administrators.py",
        "tests/api/clients/test_cli.py",
        "tests/api/clients/test_cli_use.py",
        "tests/api/clients/test_diff.py",
        "tests/api/clients/test_doctor.py",
        "tests/api/test_controller.py",
        "tests/api/test_trainjob.py",
        "tests/api/test_trainjob_diff.py",
    }
)
_START: Final = "COVERAGE_PROCESS_START"
"""coverage begins by itself in every Python process that has this variable"""


@pytest.fixture(scope="module", autouse=True)
def measured_processes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where the run itself is measured, processes of these files are too."""
    here = str(request.path.relative_to(ROOT))
    if here not in FILES or not request.config.pluginmanager.hasplugin("_cov"):
        yield
        return
    os.environ[_START] = str(CONFIG)
    yield
    del os.environ[_START]
