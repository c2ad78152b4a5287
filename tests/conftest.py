"""What every test may rely on, however the run was started."""

from __future__ import annotations

import gc
import os
import signal

from tests.measured import measured_processes

__all__ = ["measured_processes"]

# A run in the background of a shell inherits an ignored Ctrl-C, one under nohup an ignored
# hang-up, and so would every program that a test starts and signals.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# Tests fork, also after others have used gRPC in this process. Its finalizers and handlers of
# forks wait in the child for ever for threads that a fork does not copy, or abort.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
os.register_at_fork(after_in_child=gc.freeze)
