"""What `odh install` applies is what the manifests say."""

from __future__ import annotations

from tools import bundles


def test_bundles_are_those_that_kustomize_makes_of_the_manifests() -> None:
    assert bundles.stale() == []
