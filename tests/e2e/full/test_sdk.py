"""The whole of `tests/lifecycle.py` on a real cluster; by hand, because it takes minutes."""

from __future__ import annotations

import pytest

from tests.e2e.notebook import place
from tests.lifecycle import (
    test_attempts_are_as_the_policy_says,
    test_closure_that_cannot_be_shipped_creates_nothing,
    test_everything_works_inside_a_running_loop,
    test_followed_lines_come_as_they_are_written,
    test_job_that_does_not_exist_is_named,
    test_life_of_a_job_asynchronously,
    test_progress_is_shown_while_waiting,
    test_reader_that_stops_reading_ends_its_own_reading_only,
    test_two_clients_at_once_see_one_truth,
    test_wait_that_is_over_leaves_the_job_running,
)

__all__ = [
    "place",
    "test_attempts_are_as_the_policy_says",
    "test_closure_that_cannot_be_shipped_creates_nothing",
    "test_everything_works_inside_a_running_loop",
    "test_followed_lines_come_as_they_are_written",
    "test_job_that_does_not_exist_is_named",
    "test_life_of_a_job_asynchronously",
    "test_progress_is_shown_while_waiting",
    "test_reader_that_stops_reading_ends_its_own_reading_only",
    "test_two_clients_at_once_see_one_truth",
    "test_wait_that_is_over_leaves_the_job_running",
]

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.usefixtures("place")]
