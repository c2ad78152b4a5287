"""One thing that `odh doctor` has looked at."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """`level` is ok, limited (works, but less) or missing (does not work); `mend` is what to do."""

    what: str
    level: str
    says: str
    mend: str = ""
