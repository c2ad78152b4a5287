"""What is built, from which module, at which version and hash.

A component is one Go module and the programs we want of it. The hash is the one that the Go
tool computes over the module's files, so a changed upstream fails the build instead of
slipping in. Danger: a version bump without its hash and extra sums does not build at all.
"""

from __future__ import annotations

from typing import Final

import msgspec

KUBERNETES_VERSION: Final = "v1.35.8"
OLDEST_VERSION: Final = "v1.27.4"
"""the oldest that our users have, at the newest patch whose parts the module proxy serves whole"""
_COMMITS: Final = {
    KUBERNETES_VERSION: "1c2e10a409eb1b03f2f28f401ce935312e20d9fb",
    OLDEST_VERSION: "fa3d7990104d7c1f16943a67f11b154b71f6a132",
}
_SUMS: Final = {
    KUBERNETES_VERSION: "h1:nqVTiKGbHuwTNjCn1dvK2tjOFie7J7SUMyZWDNsNHgA=",
    OLDEST_VERSION: "h1:js5bonPoe7jgVPduNcWo6IjPTUdLzlnfhRgGmC7isM0=",
}


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One Go module and the programs built from it."""

    name: str
    module: str
    version: str
    sum: str
    programs: dict[str, str]
    """program name -> package path inside the module"""
    stamps: dict[str, str] = {}
    """Go variable -> value, linked in so that the program reports its true version"""
    zero_version: str = ""
    """what `v0.0.0` requirements stand for, in modules cut out of a larger repository"""
    replaces: dict[str, str] = {}
    """module -> version to use in place of one that the proxy does not serve"""


def _kube_stamps(version: str) -> dict[str, str]:
    major, minor, _ = version.removeprefix("v").split(".")
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": _COMMITS[version],
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in values.items()}


def _kubernetes(name: str, *programs: str, version: str = KUBERNETES_VERSION) -> Component:
    return Component(
        name=name,
        module="k8s.io/kubernetes",
        version=version,
        sum=_SUMS[version],
        programs={program: f"./cmd/{program}" for program in programs},
        stamps=_kube_stamps(version),
        zero_version=version.replace("v1.", "v0."),
    )


ETCD: Final = Component(
    name="etcd",
    module="go.etcd.io/etcd/server/v3",
    version="v3.6.7",
    sum="h1:8dEGQ877tj0cQJFEfD2bDoZDA76qbS2OkvCNjwAyrSo=",
    programs={"etcd": "."},
    stamps={"go.etcd.io/etcd/api/v3/version.GitSHA": "e838ef116"},
)
CONTROL: Final = _kubernetes("kubernetes-api", "kube-apiserver", "kube-controller-manager")
OLDEST_CONTROL: Final = _kubernetes(
    "kubernetes-api", "kube-apiserver", "kube-controller-manager", version=OLDEST_VERSION
)
"""takes the place of CONTROL, in clusters that ask for it"""
KUBECTL: Final = _kubernetes("kubectl", "kubectl")
SCHEDULER: Final = _kubernetes("kubernetes-scheduler", "kube-scheduler")
NODE: Final = _kubernetes("kubernetes-node", "kubelet", "kube-proxy")
COREDNS: Final = Component(
    name="coredns",
    module="github.com/coredns/coredns",
    version="v1.14.7",
    sum="h1:UPDkn4QN+xyNfjz3U5ldgoLszDYpMZEJoy3+ze9au4Q=",
    programs={"coredns": "."},
)
JOBSET: Final = Component(
    name="jobset",
    module="sigs.k8s.io/jobset",
    version="v0.12.0",
    sum="h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=",
    programs={"jobset": "."},
    stamps={
        "sigs.k8s.io/jobset/pkg/version.GitVersion": "v0.12.0",
        "sigs.k8s.io/jobset/pkg/version.GitCommit": "09e9a3bb4b64dbe75b5b0119d3623903f0434643",
    },
)
KUEUE: Final = Component(
    name="kueue",
    module="sigs.k8s.io/kueue",
    version="v0.19.2",
    sum="h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8=",
    programs={"kueue": "./cmd/kueue"},
    stamps={
        "sigs.k8s.io/kueue/pkg/version.GitVersion": "v0.19.2",
        "sigs.k8s.io/kueue/pkg/version.GitCommit": "8eab68778fc1b52affe165fdf5af29d1e9b4f3cb",
    },
)
KUBE_ROUTER: Final = Component(
    name="kube-router",
    module="github.com/cloudnativelabs/kube-router/v2",
    version="v2.10.0",
    sum="h1:If41Vyh/+JrRy0fkwUAIAvHEq1CQiVUnH+rBOTrqO3Y=",
    programs={"kube-router": "./cmd/kube-router"},
    stamps={"github.com/cloudnativelabs/kube-router/v2/pkg/version.Version": "v2.10.0"},
    # The pseudo-version that its go.mod names is not served by the module proxy.
    replaces={"github.com/vishvananda/netlink": "v1.3.1"},
)
KWOK: Final = Component(
    name="kwok",
    module="sigs.k8s.io/kwok",
    version="v0.8.0",
    sum="h1:OTIOTwgROqPMovcTwxICx2eYQ4AwLpSx5EpjbDKF4SQ=",
    programs={"kwok": "./cmd/kwok"},
    stamps={"sigs.k8s.io/kwok/pkg/consts.Version": "v0.8.0"},
)
MPI_OPERATOR: Final = Component(
    name="mpi-operator",
    module="github.com/kubeflow/mpi-operator",
    version="v0.8.2",
    sum="h1:7PVtV31iX3LSVW0BqRQ64w/NYNfAgP86Bmua2OEi5lg=",
    programs={"mpi-operator": "./cmd/mpi-operator"},
    stamps={
        "github.com/kubeflow/mpi-operator/pkg/version.Version": "v0.8.2",
        "github.com/kubeflow/mpi-operator/pkg/version.GitSHA": "fd6ab218ce3e",
    },
)
TRAINER: Final = Component(
    name="trainer",
    module="github.com/kubeflow/trainer/v2",
    version="v2.3.0",
    sum="h1:Je+e7zvTLzB4qW09J1fB7pZrqvPtWuGng2NqdN5p5QU=",
    programs={"trainer-controller-manager": "./cmd/trainer-controller-manager"},
)
METRICS_SERVER: Final = Component(
    name="metrics-server",
    module="sigs.k8s.io/metrics-server",
    version="v0.9.0",
    sum="h1:nlqqZ2H0Xfko8eJC/1qaNVVT17hu4rxndkOi22KTZ4w=",
    programs={"metrics-server": "./cmd/metrics-server"},
)
_SERVED_KUBERNETES: Final = {
    "k8s.io/kubernetes": "v1.34.8",
    **{
        f"k8s.io/{name}": "v0.34.8"
        for name in (
            *("api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime"),
            *("client-go", "cloud-provider", "cluster-bootstrap", "code-generator"),
            *("component-base", "component-helpers", "controller-manager", "cri-client"),
            *("csi-translation-lib", "dynamic-resource-allocation", "endpointslice", "kms"),
            *("kube-aggregator", "kube-controller-manager", "kube-scheduler", "kubectl"),
            *("kubelet", "metrics", "mount-utils", "pod-security-admission"),
        )
    },
    # Nothing of these is compiled; their requirements are read.
    "k8s.io/cri-api": "v0.34.1",
    "k8s.io/externaljwt": "v0.34.1",
    "k8s.io/kube-proxy": "v0.34.1",
    "k8s.io/sample-apiserver": "v0.34.1",
    "k8s.io/sample-cli-plugin": "v0.34.1",
    "k8s.io/sample-controller": "v0.34.1",
}
"""of each module the release next to v0.34.7 that the module proxy serves"""
COSCHEDULING: Final = Component(
    name="coscheduling",
    module="sigs.k8s.io/scheduler-plugins",
    version="v0.34.7",
    sum="h1:GENSA4rKpCKBrPvNSo2AV2QHU7j3a6LT14kNlHhXfeg=",
    programs={"coscheduling": "./cmd/scheduler"},
    stamps={"k8s.io/component-base/version.gitVersion": "v0.34.7"},
    replaces=_SERVED_KUBERNETES,
)
VOLCANO: Final = Component(
    name="volcano",
    module="volcano.sh/volcano",
    version="v1.14.1",
    sum="h1:9eLs47iZeLgey6EcA1rHwVkU7HoBNm3UVpJZ4uhFJ7c=",
    programs={"vc-scheduler": "./cmd/scheduler", "vc-controllers": "./cmd/controller-manager"},
    stamps={"volcano.sh/volcano/pkg/version.Version": "v1.14.1"},
    # The module lacks its staging directory.
    replaces={"volcano.sh/apis": "v1.14.0"},
)
TRAINING_OPERATOR: Final = Component(
    name="training-operator",
    module="github.com/kubeflow/training-operator",
    version="v1.9.3",
    sum="h1:aaSHqskOtCY8Dn8sVd+l9p5XAczW6O0nYMPjVLAw/lc=",
    programs={"training-operator": "./cmd/training-operator.v1"},
)
"""Kubeflow's older operator, whose PyTorchJobs and TFJobs our clients list, read and delete"""
GRPCURL: Final = Component(
    name="grpcurl",
    module="github.com/fullstorydev/grpcurl",
    version="v1.9.4",
    sum="h1:7bC3tlRwS7dPyfhBo0Xmigns8hWH/K4fg9NrafpY57k=",
    programs={"grpcurl": "./cmd/grpcurl"},
)
"""a client that knows nothing of our API but what a server tells it"""
VERSITYGW: Final = Component(
    name="versitygw",
    module="github.com/versity/versitygw",
    version="v1.8.0",
    sum="h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
    programs={"versitygw": "./cmd/versitygw"},
)
"""an S3 server over a folder"""
LOKI: Final = Component(
    name="loki",
    module="github.com/grafana/loki/v3",
    version="v3.5.0",
    sum="h1:WXv9EOTUrYXqrzgWT4srpp8HWrcHDVaEWDUd3UevyxY=",
    programs={"loki": "./cmd/loki"},
)
"""a log store; 1,800 packages, so some minutes to compile"""

COMPONENTS: Final = {
    component.name: component
    for component in (
        ETCD,
        CONTROL,
        KUBECTL,
        SCHEDULER,
        NODE,
        COREDNS,
        JOBSET,
        KUEUE,
        KUBE_ROUTER,
        KWOK,
        MPI_OPERATOR,
        TRAINER,
        METRICS_SERVER,
        TRAINING_OPERATOR,
        GRPCURL,
    )
}
"""every component by name, in the order in which a cold machine builds them"""
OPTIONAL: Final = {
    "kubernetes-api-oldest": OLDEST_CONTROL,
    "coscheduling": COSCHEDULING,
    "volcano": VOLCANO,
    "versitygw": VERSITYGW,
    "loki": LOKI,
}
"""what is built only where it is named"""
