"""How much of what users write is read: the one place that says so.

Everything that a user can store is hostile until it is bounded: each reader cuts or refuses at its
bound here before it works, and works in linear time after that. Danger: a bound that is raised is
paid for by every tenant of the controller, so measure with `tests/unit/test_hostile_text.py`.
"""

from __future__ import annotations

from typing import Final

SPEC_BYTES: Final = 256 * 1024
"""of the spec of a job or a runtime as JSON; every look may hold one, and etcd takes 1.5 MB"""

NESTING: Final = 100
"""levels within a spec; pod templates need about twenty, and every walk over one recurses"""

DECODED_NESTING: Final = 200
"""levels of any JSON that is decoded after the interpreter's own limit has refused it whole"""

STATUS_BYTES: Final = 256 * 1024
"""of a job's status; ours takes a few KB"""
