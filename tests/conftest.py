"""What every test may rely on, however the run was started."""

from __future__ import annotations

import signal

# A run in the background of a shell inherits an ignored Ctrl-C, and so would every program that a
# test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
