"""`tests/trainlife.py` on this machine."""

from __future__ import annotations

import pytest

from tests.local.test_sdk import jobs_of_this_test
from tests.trainlife import (
    test_failure_of_a_trainjob_is_told_at_once_with_rank_and_reason,
    test_function_is_trained_on_the_nodes_of_a_runtime,
    test_life_of_a_trainjob,
    test_life_of_a_trainjob_asynchronously,
    test_trainjob_that_is_waited_for_in_vain_runs_on_until_it_is_deleted,
    test_trainjobs_have_a_client_and_a_class_of_their_own,
)

__all__ = [
    "jobs_of_this_test",
    "test_failure_of_a_trainjob_is_told_at_once_with_rank_and_reason",
    "test_function_is_trained_on_the_nodes_of_a_runtime",
    "test_life_of_a_trainjob",
    "test_life_of_a_trainjob_asynchronously",
    "test_trainjob_that_is_waited_for_in_vain_runs_on_until_it_is_deleted",
    "test_trainjobs_have_a_client_and_a_class_of_their_own",
]

pytestmark = pytest.mark.timeout(240)
