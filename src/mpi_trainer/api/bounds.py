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

LOG_TAIL: Final = 64 * 1024
"""characters of a log's end; 480 of them are shown"""

TERMINATION_MESSAGE: Final = 4096
"""characters of a container's termination message; the kubelet keeps no more bytes"""

SUMMARY: Final = 16 * 1024
"""characters of a launcher's summary, with what of its log may stand before it"""

RANKS_PER_POD: Final = 1024
"""ranks that a launcher can report for each pod of its job; nodes have half as many threads"""

RANKS: Final = 65_536
"""ranks that a launcher can report at all; each costs a few microseconds in every look"""

MESSAGE: Final = 1024
"""characters of what a kubelet, a scheduler or a Job says of a pod, and bytes of an event"""

LOG_LINE: Final = 16 * 1024
"""characters of one message, field or traceback in a log of our own"""

HELD: Final = 64 * 1024 * 1024
"""bytes of lines without an end that a reader of one log holds: a program may never end its line,
and may write marks of any number of ranks"""

HELD_OF_MANY: Final = 1024 * 1024
"""the same for who reads many logs at once, or cuts lines anyway"""

SECRET_VARIABLES: Final = 200
"""variables of a job whose values are looked for in its log"""

SHORT_TEXT: Final = 8 * 1024
"""bytes of JSON that are read within a few milliseconds; more are read beside the event loop"""

ERRORS: Final = 100
"""errors, or warnings, that are reported for one object"""

OUR_ANNOTATIONS: Final = 64 * 1024
"""characters of all annotations of ours on one object, names included"""

RECORD: Final = 16 * 1024
"""characters of the annotation with a job's record; ours has some hundred for each attempt"""

ATTEMPTS: Final = 16 * 1024
"""bytes of the annotation with a job's attempts and their last words"""

FINDINGS: Final = 4 * 1024
"""bytes of why an attempt failed, within those of all attempts"""

SNAPSHOT: Final = 512 * 1024
"""characters of the runtime that a snapshot holds: a spec with its metadata, and YAML's blanks"""
