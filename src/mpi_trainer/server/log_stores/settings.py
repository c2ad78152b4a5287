"""Which log store there is, and how its collector names things."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.server.prometheus import PrometheusSettings

Kind = Literal["loki", "elasticsearch"]
LABELS: Final[Mapping[Kind, tuple[str, str]]] = {
    "loki": ("kubernetes_namespace_name", "kubernetes_pod_name"),
    "elasticsearch": ("kubernetes.namespace_name", "kubernetes.pod_name"),
}
"""what OpenShift's collector calls namespace and pod"""
INDEX: Final = "app*"
_NAME: Final[Mapping[Kind, re.Pattern[str]]] = {
    "loki": re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}"),
    "elasticsearch": re.compile(r"[a-zA-Z_@][a-zA-Z0-9_.@-]{0,199}"),
}
_INDEX: Final = re.compile(r"[a-z0-9*][a-z0-9_.*,-]{0,199}")


class LogStoreSettings(msgspec.Struct, frozen=True):
    """`labels`: the names of namespace and pod; the kind's own where they are empty. `tenancy`: the
    store takes the caller's token and decides by it. `index` is Elasticsearch's."""

    url: str
    ca_file: str = ""
    tenancy: bool = False
    labels: tuple[str, str] = ("", "")
    kind: Kind = "loki"
    index: str = INDEX

    @property
    def names(self) -> tuple[str, str]:
        return self.labels if any(self.labels) else LABELS[self.kind]

    def checked(self) -> LogStoreSettings:
        """ConfigError where it makes no sense, or a token would be shown."""
        try:
            PrometheusSettings(self.url, self.ca_file, self.tenancy).checked()
        except ConfigError as error:
            raise ConfigError(str(error).replace("--prometheus", "--log-store")) from None
        if self.kind not in LABELS:
            raise ConfigError(f"--log-store-kind {self.kind!r} is not known: use {_kinds()}")
        if not all(_NAME[self.kind].fullmatch(name) for name in self.names):
            raise ConfigError("--log-store-labels takes two names of labels: NAMESPACE,POD")
        if not _INDEX.fullmatch(self.index):
            raise ConfigError(f"--log-store-index {self.index!r} is no name of indices")
        return self


def _kinds() -> str:
    return " or ".join(LABELS)
