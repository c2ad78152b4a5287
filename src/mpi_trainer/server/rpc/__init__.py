"""gRPC over the endpoints of REST. Whoever imports this needs the extra `grpc`."""

from __future__ import annotations

import os
from typing import Final

_SETTINGS: Final = {
    # What is forked of this process never uses gRPC: its threads must not be started again there.
    "GRPC_ENABLE_FORK_SUPPORT": "false",
    # Else whoever connects writes lines into our log, which are no JSON; what is wrong with a
    # renewed certificate stays there.
    "GRPC_VERBOSITY": "ERROR",
}

# gRPC reads them when it is loaded; processes that are started from here do not get them.
_before = {name: os.environ.get(name) for name in _SETTINGS}
os.environ.update(_SETTINGS)
import grpc  # noqa: E402, F401

for _name, _value in _before.items():
    if _value is None:
        del os.environ[_name]
    else:
        os.environ[_name] = _value
