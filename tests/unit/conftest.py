"""Examples have no time limit of the clock's: on a busy machine it would judge the neighbours."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
