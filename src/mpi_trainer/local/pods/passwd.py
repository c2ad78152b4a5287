"""The pod's /etc/passwd and /etc/group: the host's, made fit for sshd and for any uid.

The current user has an entry, with /bin/sh as its shell: a login shell that reads start-up files
costs half a second a connection. Root's sshd also finds the `sshd` user that it drops to, and a
root that is not locked, as it is on many machines. Where pods have no files of their own the
machine's own entries count, and `refusal` says why they will not do.
"""

import pwd
from pathlib import Path

from msgspec import Struct

_SSHD_ID = 65533
_NO_SHELLS = frozenset({"nologin", "false"})


class Account(Struct, frozen=True):
    uid: int
    gid: int
    home: str


def passwd(text: str, account: Account) -> str:
    """The text of /etc/passwd, with the account's entry made if missing and its shell /bin/sh."""
    lines = [line for line in text.splitlines() if line.count(":") == 6]
    own = [line for line in lines if line.split(":")[2] == str(account.uid)]
    if not own:
        name = "user" if not _has_name(lines, "user") else f"user{account.uid}"
        lines.insert(0, f"{name}:x:{account.uid}:{account.gid}::{account.home}:/bin/sh")
    if account.uid == 0 and not _has_name(lines, "sshd"):
        lines.append(f"sshd:x:{_SSHD_ID}:{_SSHD_ID}::/run/sshd:/usr/sbin/nologin")
    return "".join(f"{_with_sh(line) if line in own else line}\n" for line in lines)


def group(text: str, account: Account) -> str:
    """The text of /etc/group, with an entry for the account's group."""
    lines = [line for line in text.splitlines() if line.count(":") == 3]
    if not any(line.split(":")[2] == str(account.gid) for line in lines):
        name = "group" if not _has_name(lines, "group") else f"group{account.gid}"
        lines.append(f"{name}:x:{account.gid}:")
    return "".join(f"{line}\n" for line in lines)


def shadow(passwd_text: str, account: Account) -> str:
    """The text of /etc/shadow: no password opens the account, and a key may."""
    names = [line.split(":")[0] for line in passwd_text.splitlines() if _uid(line) == account.uid]
    return "".join(f"{name}:*:::::::\n" for name in names)


def refusal(uid: int) -> str:
    """Why the machine's own sshd would not let this user in; empty where it would."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return f"uid {uid} has no entry in /etc/passwd"
    if Path(entry.pw_shell).name in _NO_SHELLS:
        return f"the login shell of {entry.pw_name} is {entry.pw_shell}"
    # Only root can read this file, and only root's sshd looks into it.
    locked = f"{entry.pw_name}:!"
    if uid == 0 and any(line.startswith(locked) for line in host_text("/etc/shadow").splitlines()):
        return f"the account {entry.pw_name} is locked (passwd -l)"
    return ""


def host_text(path: str) -> str:
    """A file of the host, or nothing where the host has no such file."""
    try:
        return Path(path).read_text(errors="surrogateescape")
    except FileNotFoundError:
        return ""


def _uid(line: str) -> int:
    return int(line.split(":")[2])


def _has_name(lines: list[str], name: str) -> bool:
    return any(line.startswith(f"{name}:") for line in lines)


def _with_sh(line: str) -> str:
    return line.rsplit(":", 1)[0] + ":/bin/sh"
