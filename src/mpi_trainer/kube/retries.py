"""Whether to send a request again, and when: a pure answer to one failure.

Repeated are only requests that cannot do harm twice: reads, and whatever the server refused
before processing it (429). The server's Retry-After is obeyed up to a limit, beyond which the
caller hears of it instead of waiting.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.kube.errors import ApiError, KubeError, ServerFault, TooManyRequests, Unreachable
from mpi_trainer.kube.requests import Request

LONGEST: Final = 30.0
_FIRST: Final = 0.25
_CAP: Final = 8.0


def wait_before(request: Request, error: KubeError, tried: int, chance: float) -> float | None:
    """Seconds to wait before the next try, or None to give up. `chance` is in [0, 1)."""
    if tried >= request.tries or not _worth_it(request, error):
        return None
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    if retry_after is not None and retry_after > LONGEST:
        return None
    if retry_after is not None:
        # Later than asked, never sooner, and not all clients at the same moment.
        return retry_after + chance * max(0.25 * retry_after, 0.1)
    return float(min(_CAP, _FIRST * 2 ** (tried - 1)) * (0.5 + chance))


def _worth_it(request: Request, error: KubeError) -> bool:
    if isinstance(error, TooManyRequests):
        return True
    if isinstance(error, ServerFault):
        return request.repeatable and error.code != 501
    # A refused connection or an unknown certificate does not change by itself within seconds.
    return isinstance(error, Unreachable) and error.what == "broken" and request.repeatable
