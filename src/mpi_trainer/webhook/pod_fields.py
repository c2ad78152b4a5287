"""Every field of a pod template: harmless, or one that needs a right. Data.

`HARMLESS` may be set by whoever may create a job: what the job runs, how much it asks for, where
it would like to go, and what of its own namespace it reads. The measure is what Pod Security calls
"restricted", less everything that gives an identity, a node or a priority. `GUARDED` is the rest,
which needs a right; so does a field that neither list knows. `[]` is every item of a list, and a
path stands for everything below it. Danger: a path in `HARMLESS` is granted to everybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mpi_trainer.render import names

CONTAINER_LISTS = ("containers", "initContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("lifecycle.postStart", "lifecycle.preStop")

# Where pods go, and their labels: what a queue writes as it starts a job.
PLACEMENT = (
    "metadata.annotations",
    "metadata.labels",
    "spec.affinity",
    "spec.nodeSelector",
    "spec.schedulingGates",
    "spec.tolerations",
    "spec.topologySpreadConstraints",
)

_SECURITY_HARMLESS = (
    "appArmorProfile.localhostProfile",
    "runAsGroup",
    "seLinuxOptions.level",
    "seccompProfile.localhostProfile",
)

_POD = (
    *PLACEMENT,
    # No pod gets these from its template.
    "metadata.creationTimestamp",
    "metadata.generateName",
    "metadata.name",
    "metadata.namespace",
    "spec.activeDeadlineSeconds",
    "spec.automountServiceAccountToken",  # of the account, which is guarded itself
    "spec.dnsConfig",
    "spec.dnsPolicy",
    "spec.enableServiceLinks",
    "spec.hostAliases",
    "spec.hostname",
    "spec.hostnameOverride",
    "spec.imagePullSecrets",  # the kubelet reads them, no container does
    "spec.os",
    "spec.readinessGates",
    "spec.resourceClaims",
    "spec.resources",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.securityContext.fsGroup",
    "spec.securityContext.fsGroupChangePolicy",
    "spec.securityContext.seLinuxChangePolicy",
    "spec.securityContext.supplementalGroups",
    "spec.securityContext.supplementalGroupsPolicy",
    *(f"spec.securityContext.{field}" for field in _SECURITY_HARMLESS),
    "spec.setHostnameAsFQDN",
    "spec.shareProcessNamespace",
    "spec.subdomain",
    "spec.terminationGracePeriodSeconds",
    "spec.volumes[].configMap",
    "spec.volumes[].downwardAPI",
    "spec.volumes[].emptyDir",
    "spec.volumes[].image",
    "spec.volumes[].name",
    "spec.volumes[].persistentVolumeClaim",
    "spec.volumes[].projected.defaultMode",
    "spec.volumes[].projected.sources[].clusterTrustBundle",
    "spec.volumes[].projected.sources[].configMap",
    "spec.volumes[].projected.sources[].downwardAPI",
    "spec.volumes[].projected.sources[].secret.items",
    "spec.volumes[].projected.sources[].secret.optional",
    "spec.volumes[].secret.defaultMode",
    "spec.volumes[].secret.items",
    "spec.volumes[].secret.optional",
)

_CONTAINER = (
    "args",
    "command",
    "env[].name",
    "env[].value",
    "env[].valueFrom.configMapKeyRef",
    "env[].valueFrom.fieldRef",
    "env[].valueFrom.fileKeyRef",
    "env[].valueFrom.resourceFieldRef",
    "env[].valueFrom.secretKeyRef.key",
    "env[].valueFrom.secretKeyRef.optional",
    "envFrom[].configMapRef",
    "envFrom[].prefix",
    "envFrom[].secretRef.optional",
    "image",
    "imagePullPolicy",
    "lifecycle.stopSignal",
    "name",
    "ports[].containerPort",
    "ports[].name",
    "ports[].protocol",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext.capabilities.drop",
    "securityContext.readOnlyRootFilesystem",
    *(f"securityContext.{field}" for field in _SECURITY_HARMLESS),
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts[].mountPath",
    "volumeMounts[].name",
    "volumeMounts[].readOnly",
    "volumeMounts[].recursiveReadOnly",
    "volumeMounts[].subPath",
    "volumeMounts[].subPathExpr",
    "workingDir",
    *(
        f"{probe}.{field}"
        for probe in PROBES
        for field in (
            "failureThreshold",
            "grpc",
            "initialDelaySeconds",
            "periodSeconds",
            "successThreshold",
            "terminationGracePeriodSeconds",
            "timeoutSeconds",
        )
    ),
    *(f"{hook}.sleep" for hook in HOOKS),
    *(
        f"{caller}.{field}"
        for caller in (*PROBES, *HOOKS)
        for field in (
            "exec",
            "httpGet.httpHeaders",
            "httpGet.path",
            "httpGet.port",
            "httpGet.scheme",
            "tcpSocket.port",
        )
    ),
)

HARMLESS = (*_POD, *(f"spec.{kind}[].{path}" for kind in CONTAINER_LISTS for path in _CONTAINER))


# What container runtimes give to every container, and Pod Security's "baseline" lets it have.
_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
# What Pod Security calls safe: each holds within the pod.
_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)
_SELINUX_TYPES = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_PROFILES = ("RuntimeDefault", "Localhost")
DEFAULT_ACCOUNT = "default"
KEY_SUFFIXES = (names.secret(""), names.ssh_secret(""), names.flux_secret(""))
# The names that clusters have given to the tokens of accounts; the letters are Kubernetes' own.
_TOKEN = re.compile(r".*-(?:token|dockercfg)-[bcdfghjklmnpqrstvwxz2456789]{5}\Z", re.DOTALL)
_LONGEST_NAME = 253


class Right(msgspec.Struct, frozen=True):
    """As the API server's authoriser knows it; `resource` may be `pods/log`. One of the whole
    `cluster` is granted by a ClusterRoleBinding only."""

    verb: str
    resource: str
    group: str = ""
    name: str = ""
    cluster: bool = False

    def words(self) -> str:
        """As `kubectl auth can-i` takes it."""
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}/{self.name}" if self.name else f"{self.verb} {what}"


MAKE_PODS = Right("create", "pods")


class GuardedField(msgspec.Struct, frozen=True):
    """A field that needs a right: its effect, the values that need none, and the right that is
    enough beside that to create pods."""

    effect: str
    is_free: Callable[[Any], bool]
    right: Right | None = None

    def rights(self, value: Any) -> tuple[Right, ...]:
        if self.right is None:
            return (MAKE_PODS,)
        if not self.right.name:
            return (MAKE_PODS, self.right)
        if not isinstance(value, str) or len(value) > _LONGEST_NAME:
            return (MAKE_PODS,)
        return (MAKE_PODS, msgspec.structs.replace(self.right, name=value))


def _never(_: Any) -> bool:
    return False


def _one_of(*values: object) -> Callable[[Any], bool]:
    """By type too: 0 is not False."""
    allowed = {(type(value), value) for value in values}
    return lambda value: isinstance(value, str | bool | int) and (type(value), value) in allowed


def _user(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def _capability(value: Any) -> bool:
    return isinstance(value, str) and value in _CAPABILITIES


def _sysctl(value: Any) -> bool:
    return isinstance(value, Mapping) and str(value.get("name")) in _SYSCTLS


def _secret(value: Any) -> bool:
    return isinstance(value, str) and not value.endswith(KEY_SUFFIXES) and not _TOKEN.match(value)


_NAMED = "named"  # stands for the value of the field
_ACCOUNT = GuardedField(
    "the pods would act as this service account",
    _one_of(DEFAULT_ACCOUNT),
    Right("impersonate", "serviceaccounts", name=_NAMED),
)
SECRET = GuardedField(
    "Secrets with such names hold the keys of other jobs or an account's token (a Secret of your "
    "own needs another name)",
    _secret,
    Right("get", "secrets", name=_NAMED),
)
_HOST = GuardedField("the pods would share this with their node", _one_of(False))
_PRIORITY = "the pods could preempt other pods"
_VOLUME = "the node would mount this with its own rights"
_UNPROTECTED = "this would turn a protection off"
UNKNOWN = GuardedField("this version does not know the field, nor what it would allow", _never)
UNCONFINED = GuardedField(_UNPROTECTED, _never)

_SECURITY: Mapping[str, GuardedField] = {
    "appArmorProfile.type": GuardedField(_UNPROTECTED, _one_of(*_PROFILES)),
    "runAsNonRoot": GuardedField(_UNPROTECTED, _one_of(True)),
    "runAsUser": GuardedField("the containers would run as root", _user),
    "seLinuxOptions.role": GuardedField(_UNPROTECTED, _never),
    "seLinuxOptions.type": GuardedField(_UNPROTECTED, _one_of(*_SELINUX_TYPES)),
    "seLinuxOptions.user": GuardedField(_UNPROTECTED, _never),
    "seccompProfile.type": GuardedField(_UNPROTECTED, _one_of(*_PROFILES)),
    "windowsOptions": GuardedField(
        "the containers would run as another Windows user, or on the host", _never
    ),
}

_CONTAINER_GUARDED: Mapping[str, GuardedField] = {
    **{f"securityContext.{field}": guarded for field, guarded in _SECURITY.items()},
    "env[].valueFrom.secretKeyRef.name": SECRET,
    "envFrom[].secretRef.name": SECRET,
    "ports[].hostIP": GuardedField("the pods would take a port of their node", _never),
    "ports[].hostPort": GuardedField("the pods would take a port of their node", _one_of(0)),
    "securityContext.allowPrivilegeEscalation": GuardedField(_UNPROTECTED, _one_of(False)),
    "securityContext.capabilities.add[]": GuardedField(
        "this capability is not in Pod Security's baseline", _capability
    ),
    "securityContext.privileged": GuardedField(
        "the container would have full control of its node", _one_of(False)
    ),
    "securityContext.procMount": GuardedField(_UNPROTECTED, _one_of("Default")),
    "volumeMounts[].mountPropagation": GuardedField(
        "mounts of the container would show on its node", _one_of("None", "HostToContainer")
    ),
    **{
        f"{caller}.{kind}.host": GuardedField("the node would send requests to this host", _never)
        for caller in (*PROBES, *HOOKS)
        for kind in ("httpGet", "tcpSocket")
    },
}

GUARDED: Mapping[str, GuardedField] = {
    **{
        f"metadata.{field}": GuardedField("a pod template cannot set this", _never)
        for field in (
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generation",
            "managedFields",
            "ownerReferences",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    },
    "spec.ephemeralContainers": GuardedField("these are added to running pods only", _never),
    "spec.hostIPC": _HOST,
    "spec.hostNetwork": _HOST,
    "spec.hostPID": _HOST,
    "spec.hostUsers": GuardedField(_UNPROTECTED, _one_of(False)),
    "spec.nodeName": GuardedField("the pod would go to this node, past the scheduler", _never),
    "spec.overhead": GuardedField("the runtime class sets this", _never),
    "spec.preemptionPolicy": GuardedField(_PRIORITY, _one_of("Never")),
    "spec.priority": GuardedField(_PRIORITY, _one_of(0)),
    "spec.priorityClassName": GuardedField(
        _PRIORITY,
        _never,
        Right("use", "priorityclasses", "scheduling.k8s.io", _NAMED, cluster=True),
    ),
    "spec.runtimeClassName": GuardedField(
        "the pods would run with this runtime class",
        _never,
        Right("use", "runtimeclasses", "node.k8s.io", _NAMED, cluster=True),
    ),
    **{f"spec.securityContext.{field}": guarded for field, guarded in _SECURITY.items()},
    "spec.securityContext.sysctls[]": GuardedField(
        "this is a setting of the node's kernel", _sysctl
    ),
    "spec.serviceAccount": _ACCOUNT,
    "spec.serviceAccountName": _ACCOUNT,
    **{
        f"spec.volumes[].{kind}": GuardedField(_VOLUME, _never)
        for kind in [
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cephfs",
            "cinder",
            "csi",
            "fc",
            "flexVolume",
            "flocker",
            "gcePersistentDisk",
            "gitRepo",
            "glusterfs",
            "iscsi",
            "nfs",
            "photonPersistentDisk",
            "portworxVolume",
            "quobyte",
            "rbd",
            "scaleIO",
            "storageos",
            "vsphereVolume",
        ]
    },
    "spec.volumes[].ephemeral": GuardedField(
        "a PersistentVolumeClaim would be created for every pod",
        _never,
        Right("create", "persistentvolumeclaims"),
    ),
    "spec.volumes[].hostPath": GuardedField("the pods would see this folder of their node", _never),
    "spec.volumes[].projected.sources[].podCertificate": GuardedField(
        "the pods would get a certificate from this signer", _never
    ),
    "spec.volumes[].projected.sources[].secret.name": SECRET,
    "spec.volumes[].projected.sources[].serviceAccountToken": GuardedField(
        "the pods would hold a token of their service account",
        _never,
        Right("create", "serviceaccounts/token"),
    ),
    "spec.volumes[].secret.secretName": SECRET,
    "spec.workloadRef": GuardedField("the pods would join this workload", _never),
    **{
        f"spec.{kind}[].{path}": guarded
        for kind in CONTAINER_LISTS
        for path, guarded in _CONTAINER_GUARDED.items()
    },
}
