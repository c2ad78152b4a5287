"""The program that stands for `odh`: has the fork server make the process, hands signals on to it,
and ends as it does. The server's socket lies beside it.

Every import costs each call some milliseconds, so only those that are built in are used.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

HANDED_ON = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGWINCH)
received: list[int] = []
process = 0


def hand_on(number: int, _frame: object) -> None:
    if process:
        os.kill(process, number)
    else:
        received.append(number)


def answer() -> int:
    told = server.recv(4)
    if len(told) < 4:
        os.abort()  # the server has ended
    return int.from_bytes(told, sys.byteorder, signed=True)


for number in HANDED_ON:
    _signal.signal(number, hand_on)
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(f"{sys.argv[0].rpartition('/')[0]}/socket")
data = marshal.dumps((sys.argv, dict(os.environ), os.getcwd()))  # noqa: PTH109  # noqa: PTH109
files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
told = len(data).to_bytes(4, sys.byteorder) + data
sent = server.sendmsg([told], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
while sent < len(told):
    sent += server.send(told[sent:])
process = answer()
for number in received:
    os.kill(process, number)
for file in (0, 1, 2):
    os.close(file)  # whoever reads our output waits for the process alone
code = answer()
if code < 0:
    if -code in HANDED_ON:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
