"""The Secret of a job: its key pairs, under upstream's keys and two of our own.

Pods mount single keys of it, so a worker can be given its host key without the launcher's
private key. Danger: the only object here that holds a secret; it is never logged or compared.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from mpi_trainer.render.frame import Frame, Object

Part = Literal["private", "public", "host-private", "host-public", "curve-private", "curve-public"]

KEYS: Mapping[Part, str] = {
    "private": "ssh-privatekey",
    "public": "ssh-publickey",
    "host-private": "ssh-host-privatekey",
    "host-public": "ssh-host-publickey",
}


class KeyPlan(msgspec.Struct, frozen=True):
    """A Secret that is made once its keys are: of which `parts`, and `made` from their texts."""

    parts: frozenset[Part]
    made: Callable[[Mapping[Part, str]], Object]


def secret(frame: Frame, parts: Mapping[Part, str]) -> Object:
    """`parts` are the keys' texts; those that are not given are left out."""
    coded = {KEYS[part]: base64.b64encode(text.encode()).decode() for part, text in parts.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": frame.plain_metadata(frame.names.secret),
        "type": "kubernetes.io/ssh-auth",
        # Kubelets need not watch it then, nor do they miss it in pods that outlive their job.
        "immutable": True,
        "data": coded,
    }
