"""Certificates of one cluster: a CA of its own and a key pair for every identity.

Made afresh for each cluster in a tenth of a second, kept 0600 in its state directory, and
deleted with it. Nothing outside the machine ever trusts this CA.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tools.cluster.spec import Spec

_LIFE: Final = datetime.timedelta(days=365)


class Identity(msgspec.Struct, frozen=True):
    """Who a certificate stands for, and where it may serve."""

    file: str
    user: str
    group: str = ""
    hosts: tuple[str, ...] = ()


def identities(spec: Spec) -> list[Identity]:
    """Every identity that this cluster needs."""
    plan = spec.addresses
    api_hosts = ("127.0.0.1", plan.control, plan.kubernetes_service, "localhost", "kubernetes")
    service = ("kubernetes.default", "kubernetes.default.svc")
    long_name = ("kubernetes.default.svc.cluster.local",)
    nodes = [plan.node(i) for i in range(1, spec.real_nodes + 1)]
    return [
        Identity("apiserver", "kube-apiserver", "", api_hosts + service + long_name),
        Identity("etcd", "etcd", "", ("127.0.0.1",)),
        Identity("admin", "admin", "system:masters"),
        Identity("kubelet-client", "kubelet-client", "system:masters"),
        Identity("controllers", "system:kube-controller-manager"),
        Identity("scheduler", "system:kube-scheduler"),
        Identity("proxy", "system:kube-proxy"),
        Identity("front-proxy", "front-proxy"),
        Identity("netpol", "netpol", "system:masters"),
        Identity("kwok", "kwok", "system:masters"),
        Identity("coscheduling", "coscheduling", "system:masters"),
        Identity("volcano", "volcano", "system:masters"),
        *(
            Identity(
                node.name, f"system:node:{node.name}", "system:nodes", (node.name, node.address)
            )
            for node in nodes
        ),
    ]


def make(directory: Path, wanted: Sequence[Identity]) -> None:
    """Write the CA, the service account key pair and all identities' certificates."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    _write_key(directory / "ca.key", ca_key)
    (directory / "ca.crt").write_bytes(_pem(_ca(ca_key)))
    for identity in wanted:
        issue(directory, identity)
    account_key = ec.generate_private_key(ec.SECP256R1())
    _write_key(directory / "sa.key", account_key)
    (directory / "sa.pub").write_bytes(
        account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def issue(directory: Path, identity: Identity) -> None:
    """Write one more certificate, signed by the CA in the same directory."""
    ca_key = serialization.load_pem_private_key((directory / "ca.key").read_bytes(), None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    ca = x509.load_pem_x509_certificate((directory / "ca.crt").read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, identity.user)]
    if identity.group:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, identity.group))
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    builder = (
        _builder(x509.Name(names), ca.subject)
        .public_key(key.public_key())
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if identity.hosts:
        hosts = x509.SubjectAlternativeName([_host(host) for host in identity.hosts])
        builder = builder.add_extension(hosts, critical=False)
    _write_key(directory / f"{identity.file}.key", key)
    certificate = builder.sign(ca_key, hashes.SHA256())
    (directory / f"{identity.file}.crt").write_bytes(_pem(certificate))


def _ca(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mpi-trainer-dev-ca")])
    usage = x509.KeyUsage(True, False, True, False, False, True, True, False, False)
    return (
        _builder(name, name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )


def _builder(subject: x509.Name, issuer: x509.Name) -> x509.CertificateBuilder:
    # An hour back: a guest's clock may step backwards after a resume.
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _LIFE)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    data = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
