"""`tests/trainlife.py` on a real cluster."""

from __future__ import annotations

import pytest

from tests.e2e.notebook import place, reads_runtimes
from tests.trainlife import (
    test_failure_of_a_trainjob_is_told_at_once_with_rank_and_reason,
    test_life_of_a_trainjob,
    test_life_of_a_trainjob_asynchronously,
    test_trainjob_that_is_waited_for_in_vain_runs_on_until_it_is_deleted,
)

__all__ = [
    "place",
    "reads_runtimes",
    "test_failure_of_a_trainjob_is_told_at_once_with_rank_and_reason",
    "test_life_of_a_trainjob",
    "test_life_of_a_trainjob_asynchronously",
    "test_trainjob_that_is_waited_for_in_vain_runs_on_until_it_is_deleted",
]

pytestmark = [
    pytest.mark.timeout(400, func_only=True),
    pytest.mark.usefixtures("reads_runtimes"),
]
