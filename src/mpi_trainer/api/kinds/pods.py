"""Pod templates: passed on exactly as they came, with a typed view of the parts we read.

A template is kept as canonical JSON, so a field that we have never heard of reaches the pod
unchanged, and two templates are equal exactly when their content is. `PodTemplate.view` is a
partial decoding: what it does not name is ignored, never lost; null is "not set", as the API
server has it. Danger: `view` raises where a field it names has the wrong type; `decode` makes sure
that this cannot happen to a job that came from a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from mpi_trainer.api.kinds.meta import Int32, Int64, PartlyRead
from mpi_trainer.api.yaml import typed


class KeyRef(PartlyRead, frozen=True):
    name: str = ""
    key: str = ""
    optional: bool = False


class FieldRef(PartlyRead, frozen=True):
    field_path: str = ""


class EnvSource(PartlyRead, frozen=True):
    field_ref: FieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    resource_field_ref: Mapping[str, Any] | None = None


class EnvVar(PartlyRead, frozen=True):
    name: str = ""
    value: str | None = None
    value_from: EnvSource | None = None


class Ref(PartlyRead, frozen=True):
    name: str = ""
    optional: bool = False


class EnvFrom(PartlyRead, frozen=True):
    prefix: str = ""
    config_map_ref: Ref | None = None
    secret_ref: Ref | None = None


class Resources(PartlyRead, frozen=True):
    requests: Mapping[str, str | int | float] = {}
    limits: Mapping[str, str | int | float] = {}


class VolumeMount(PartlyRead, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    read_only: bool = False


class Profile(PartlyRead, frozen=True):
    """A seccomp or AppArmor profile."""

    type: str = ""
    localhost_profile: str = ""


class Capabilities(PartlyRead, frozen=True):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class ContainerSecurity(PartlyRead, frozen=True):
    privileged: bool = False
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities = Capabilities()
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    proc_mount: str = ""
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    windows_options: Mapping[str, Any] | None = None


class Sysctl(PartlyRead, frozen=True):
    name: str = ""
    value: str = ""


class PodSecurity(PartlyRead, frozen=True):
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str = ""
    supplemental_groups: tuple[Int64, ...] = ()
    supplemental_groups_policy: str = ""
    sysctls: tuple[Sysctl, ...] = ()
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    windows_options: Mapping[str, Any] | None = None


class Container(PartlyRead, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    resources: Resources = Resources()
    volume_mounts: tuple[VolumeMount, ...] = ()
    security_context: ContainerSecurity = ContainerSecurity()
    restart_policy: str = ""


class EmptyDir(PartlyRead, frozen=True):
    medium: str = ""
    size_limit: str | int | None = None


class HostPath(PartlyRead, frozen=True):
    path: str = ""
    type: str = ""


class KeyToPath(PartlyRead, frozen=True):
    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class ConfigMapVolume(PartlyRead, frozen=True):
    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = 0o644
    optional: bool = False


class SecretVolume(PartlyRead, frozen=True):
    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = 0o644
    optional: bool = False


class ClaimVolume(PartlyRead, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class Volume(PartlyRead, frozen=True):
    name: str = ""
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None


class PodDns(PartlyRead, frozen=True):
    searches: tuple[str, ...] = ()


class PodSpec(PartlyRead, frozen=True):
    """The part of a pod spec that we act upon."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 = 30
    priority_class_name: str = ""
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    host_users: bool | None = None
    share_process_namespace: bool = False
    node_name: str = ""
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    overhead: Mapping[str, str | int | float] = {}
    security_context: PodSecurity = PodSecurity()
    dns_config: PodDns = PodDns()


class TemplateMeta(PartlyRead, frozen=True):
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class TemplateView(PartlyRead, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


_ENCODER = msgspec.json.Encoder(order="deterministic")


class PodTemplate:
    """A pod template as canonical JSON. Made by `of`; read by `view` and `content`."""

    __slots__ = ("json",)
    json: bytes

    def __init__(self, json: bytes = b"{}") -> None:
        object.__setattr__(self, "json", json)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a pod template is frozen; make another with PodTemplate.of ({name})")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodTemplate) and self.json == other.json

    def __hash__(self) -> int:
        return hash(self.json)

    def __repr__(self) -> str:
        return f"PodTemplate({self.json!r})"

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        return cls(_ENCODER.encode(content))

    @property
    def content(self) -> dict[str, Any]:
        """A fresh copy of the whole template; changing it changes nothing here."""
        decoded: dict[str, Any] = msgspec.json.decode(self.json)
        return decoded

    @property
    def view(self) -> TemplateView:
        return typed.convert(without_nulls(self.content), TemplateView)


def without_nulls(value: Any) -> Any:
    """null means "not set", as the API server has it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
