"""Checkpoints of a training program, for which a kill at any moment is nothing special.

    from openshift_ai_sdk.checkpoints import Checkpoints

    checkpoints = Checkpoints("/checkpoints", rank=rank, size=size, every=100)
    found = checkpoints.newest()
    done = found.step if found else 0
    weights = found.arrays()["weights"] if found else start()
    while done < steps:
        weights = train(weights)
        done += 1
        if checkpoints.due(done):
            checkpoints.save(done, {"weights": weights})
        if checkpoints.asked_to_stop:
            sys.exit(143)

All ranks see one folder, by NFS or a volume, whose `rename` is atomic and whose `fsync` means it.
Every rank writes a part of its own; rank 0 writes the marker when all parts are there, and what has
no marker is no checkpoint. A checkpoint belongs to one attempt, so that parts of two never mix.
Checksums find damage, not malice: who may write to the folder decides what is loaded.

This folder needs Python 3.11 and nothing else, and may be copied next to a program.
"""

from .checkpoint import Checkpoint
from .checkpoints import Checkpoints

__all__ = ["Checkpoint", "Checkpoints"]
