"""The field names of the public pod and JobSet APIs, where we read only some of them.

Used to notice a slip such as `resource` for `resources` in a template. A name that is missing
here costs a warning at most; a `PartlyRead` value is never refused for a field we do not know.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpi_trainer.api.kinds import jobset, pods


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FIELDS: Mapping[type, frozenset[str]] = {
    pods.TemplateView: _names("metadata spec"),
    pods.TemplateMeta: _names(
        "name generateName namespace labels annotations creationTimestamp uid resourceVersion"
        " generation ownerReferences finalizers managedFields selfLink deletionTimestamp"
        " deletionGracePeriodSeconds"
    ),
    pods.PodSpec: _names(
        "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy"
        " enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers"
        " hostname hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os"
        " overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims"
        " resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext"
        " serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain"
        " terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes workloadRef"
    ),
    pods.Container: _names(
        "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports"
        " readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext"
        " startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty"
        " volumeDevices volumeMounts workingDir"
    ),
    pods.PodDns: _names("nameservers options searches"),
    pods.Resources: _names("claims limits requests"),
    pods.EnvVar: _names("name value valueFrom"),
    pods.EnvSource: _names("configMapKeyRef fieldRef fileKeyRef resourceFieldRef secretKeyRef"),
    pods.EnvFrom: _names("configMapRef prefix secretRef"),
    pods.KeyRef: _names("key name optional"),
    pods.FieldRef: _names("apiVersion fieldPath"),
    pods.Ref: _names("name optional"),
    pods.VolumeMount: _names(
        "mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr"
    ),
    pods.Volume: _names(
        "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir"
        " ephemeral fc flexVolume flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi"
        " name nfs persistentVolumeClaim photonPersistentDisk portworxVolume projected quobyte rbd"
        " scaleIO secret storageos vsphereVolume"
    ),
    pods.Capabilities: _names("add drop"),
    pods.ContainerSecurity: _names(
        "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount"
        " readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser seLinuxOptions seccompProfile"
        " windowsOptions"
    ),
    pods.PodSecurity: _names(
        "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser"
        " seLinuxChangePolicy seLinuxOptions seccompProfile supplementalGroups"
        " supplementalGroupsPolicy sysctls windowsOptions"
    ),
    pods.Profile: _names("localhostProfile type"),
    pods.Sysctl: _names("name value"),
    pods.EmptyDir: _names("medium sizeLimit"),
    pods.HostPath: _names("path type"),
    pods.KeyToPath: _names("key mode path"),
    pods.ConfigMapVolume: _names("defaultMode items name optional"),
    pods.SecretVolume: _names("defaultMode items optional secretName"),
    pods.ClaimVolume: _names("claimName readOnly"),
    jobset.JobSetView: _names(
        "coordinator failurePolicy managedBy network replicatedJobs startupPolicy"
        " successPolicy suspend ttlSecondsAfterFinished volumeClaimPolicies"
    ),
    jobset.JobSetNetwork: _names("enableDNSHostnames publishNotReadyAddresses subdomain"),
    jobset.ReplicatedJobView: _names("dependsOn groupName name replicas template"),
    jobset.DependsOn: _names("name status"),
    jobset.ClaimPolicy: _names("retentionPolicy templates"),
    jobset.ClaimTemplate: _names("apiVersion kind metadata spec status"),
    jobset.ClaimName: _names("annotations labels name"),
    jobset.JobTemplateView: _names("metadata spec"),
    jobset.JobSpecView: _names(
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions"
        " managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy"
        " podReplacementPolicy selector successPolicy suspend template ttlSecondsAfterFinished"
    ),
}
