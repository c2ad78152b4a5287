"""TrainJobs and runtimes by the SDK on a real cluster.

The rest of `tests/trainlife.py` runs here by hand: `tests/e2e/full/test_trainjob_sdk.py`.
"""

from __future__ import annotations

import pytest

from tests.e2e.notebook import place, reads_runtimes
from tests.trainlife import (
    test_function_is_trained_on_the_nodes_of_a_runtime,
    test_trainjobs_have_a_client_and_a_class_of_their_own,
)

__all__ = [
    "place",
    "reads_runtimes",
    "test_function_is_trained_on_the_nodes_of_a_runtime",
    "test_trainjobs_have_a_client_and_a_class_of_their_own",
]

pytestmark = [
    pytest.mark.timeout(400, func_only=True),
    pytest.mark.usefixtures("reads_runtimes"),
]
