"""go.mod and go.sum of modules cut out of a larger repository."""

from __future__ import annotations

import pytest

from tools.cluster.gomod import merged_gosum, released_gomod

MODULE = """\
module k8s.io/kubernetes

require (
\tk8s.io/api v0.0.0
\tk8s.io/klog/v2 v2.130.1
\tk8s.io/kubelet v0.0.0 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubelet v0.1.0 => ../kubelet
\texample.com/fork => example.com/other v1.0.0
)

replace go.etcd.io/etcd => ./FORBIDDEN_DEPENDENCY
"""


def test_local_replacements_are_gone_and_real_ones_stay() -> None:
    text = released_gomod(MODULE, "v0.35.8", {})
    assert "=> ." not in text
    assert "example.com/fork => example.com/other v1.0.0" in text


def test_zero_versions_become_the_released_one() -> None:
    text = released_gomod(MODULE, "v0.35.8", {})
    assert "\tk8s.io/api v0.35.8\n" in text
    assert "\tk8s.io/kubelet v0.35.8 // indirect" in text
    assert "k8s.io/klog/v2 v2.130.1" in text


def test_without_a_released_version_zero_stays_zero() -> None:
    assert "k8s.io/api v0.0.0" in released_gomod(MODULE, "", {})


def test_our_replacements_come_last() -> None:
    text = released_gomod("module m\n", "", {"example.com/netlink": "v1.3.1"})
    assert text.endswith("replace example.com/netlink => example.com/netlink v1.3.1\n")


def test_sums_are_merged_once_each() -> None:
    assert merged_gosum("b v1 h1:x=\n", "a v1 h1:y=\nb v1 h1:x=\n") == "a v1 h1:y=\nb v1 h1:x=\n"


def test_two_hashes_for_one_module_are_refused() -> None:
    with pytest.raises(ValueError, match="b v1: two different hashes"):
        merged_gosum("b v1 h1:x=\n", "b v1 h1:z=\n")


REPLACED = """\
module m

require (
\tk8s.io/api v0.34.7
\tk8s.io/kms v0.34.9 // indirect
\texample.com/pseudo v1.3.2-0.20250101000000-abcdef012345
)

replace k8s.io/api => k8s.io/api v0.34.7

replace (
\tk8s.io/kms => k8s.io/kms v0.34.7
)
"""


def test_our_replacements_win_over_its_own_and_requirements_rise_to_them() -> None:
    ours = {"k8s.io/api": "v0.34.8", "k8s.io/kms": "v0.34.8", "example.com/pseudo": "v1.3.1"}
    text = released_gomod(REPLACED, "", ours)
    assert text.count("k8s.io/api =>") == text.count("k8s.io/kms =>") == 1
    assert "replace k8s.io/api => k8s.io/api v0.34.8\n" in text
    assert "\tk8s.io/api v0.34.8\n" in text
    assert "\tk8s.io/kms v0.34.9 // indirect\n" in text
    assert "\texample.com/pseudo v1.3.2-0.20250101000000-abcdef012345\n" in text
