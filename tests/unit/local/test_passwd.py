"""Who the user is to an sshd."""

from __future__ import annotations

from mpi_trainer.local.pods.passwd import Account, passwd, refusal, shadow

ROOT = Account(0, 0, "/root")


def test_no_password_opens_the_account_and_it_is_not_locked() -> None:
    users = passwd("root:x:0:0::/root:/bin/bash\nmail:x:8:8::/:/bin/false\n", ROOT)
    assert shadow(users, ROOT) == "root:*:::::::\n"


def test_every_name_of_the_uid_is_opened() -> None:
    users = "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\n"
    assert shadow(users, ROOT) == "root:*:::::::\ntoor:*:::::::\n"


def test_a_user_without_an_entry_is_refused() -> None:
    assert refusal(54321) == "uid 54321 has no entry in /etc/passwd"
