"""The hosts file: which machines become a cluster, and how each is reached."""

from __future__ import annotations

import base64
import hashlib
import re
from ipaddress import IPv4Network, ip_address
from pathlib import Path
from typing import Final

import msgspec

from lockstep.cli.failure import BadInput

PODS_OF_HOST: Final = 24
"""Length of the prefix of each host's pods."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_USER: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9_.]{0,31}")


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """One machine; what it does not say is as the file says for all."""

    name: str
    address: str
    """Where ssh and the other hosts reach it."""
    port: int = 0
    user: str = ""
    identity: str = ""
    """File of the private key for ssh; ssh's own choice where it is empty."""
    host_key: str = ""
    """``SHA256:...`` or ``ssh-ed25519 AAAA...``; known_hosts decides where it is empty."""
    directory: str = ""
    program: str = ""
    pods: str = ""
    """Subnet of its pods; the next part of the file's by default."""


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The hosts file, each host whole; the first host has the control plane."""

    hosts: tuple[Host, ...]
    port: int = 22
    user: str = "root"
    identity: str = ""
    directory: str = "/var/lib/lockstep"
    """Absolute path of everything that Lockstep has on a host."""
    program: str = ""
    """Path of ``lockstep`` on the hosts; one installed into the directory by default."""
    install: str = ""
    """What pip installs there; this version with the agent by default."""
    api_port: int = 7443
    pods: str = "10.77.0.0/16"


def read(path: Path) -> Site:
    """Return what the file says.

    Raises:
        BadInput: when it is no such file; field and value are named.
    """
    import yaml

    try:
        return whole(msgspec.convert(yaml.safe_load(path.read_text()), Site))
    except (OSError, yaml.YAMLError, ValueError) as error:
        told = str(error).replace("`$.", "`").replace("$.", "")
        raise BadInput(f"{path}: {told}", "examples/network/hosts.yaml shows one") from error


def whole(site: Site) -> Site:
    """Return the site with every host's fields filled in.

    Raises:
        ValueError: when a field is wrong.
    """
    if not site.hosts:
        raise ValueError("hosts: there is none")
    subnets = IPv4Network(site.pods).subnets(new_prefix=PODS_OF_HOST)
    hosts = []
    for number, one in enumerate(site.hosts):
        subnet = next(subnets, None)
        if subnet is None:
            raise ValueError(f"pods: {site.pods} has no /{PODS_OF_HOST} for host {number + 1}")
        directory = one.directory or site.directory
        full = msgspec.structs.replace(
            one,
            port=one.port or site.port,
            user=one.user or site.user,
            identity=one.identity or site.identity,
            directory=directory,
            program=one.program or site.program or f"{directory}/venv/bin/lockstep",
            pods=one.pods or str(subnet),
        )
        _check(full, f"hosts[{number}]")
        hosts.append(full)
    for field in ("name", "pods"):
        values = [getattr(one, field) for one in hosts]
        for value in sorted({one for one in values if values.count(one) > 1}):
            raise ValueError(f"hosts: {field} {value!r} is there twice")
    places = [(one.address, one.directory) for one in hosts]
    if len(set(places)) < len(places):
        raise ValueError("hosts: two have the same address and directory")
    return msgspec.structs.replace(site, hosts=tuple(hosts))


def _check(host: Host, where: str) -> None:
    if not _NAME.fullmatch(host.name):
        raise ValueError(f"{where}.name: {host.name!r} is no name of a node, such as gpu-1")
    if not _USER.fullmatch(host.user):
        raise ValueError(f"{where}.user: {host.user!r} is no user's name")
    try:
        ip_address(host.address)
    except ValueError:
        raise ValueError(f"{where}.address: {host.address!r} is no IP address") from None
    if not 0 < host.port < 1 << 16:
        raise ValueError(f"{where}.port: {host.port} is no port")
    for field in ("directory", "program"):
        path = Path(getattr(host, field))
        if not path.is_absolute() or len(path.parts) < 3 or ".." in path.parts:
            raise ValueError(
                f"{where}.{field}: {str(path)!r} must be absolute and below a folder, such as "
                "/var/lib/lockstep"
            )
    if IPv4Network(host.pods).prefixlen != PODS_OF_HOST:
        raise ValueError(f"{where}.pods: {host.pods} is no /{PODS_OF_HOST}")
    kind = host.host_key.partition(" ")[0]
    if host.host_key and not kind.startswith(("SHA256:", "ssh-", "ecdsa-", "sk-")):
        raise ValueError(f"{where}.hostKey: it begins neither with SHA256: nor with a key's type")


def fingerprint(key: str) -> str:
    """Return ``SHA256:...`` of a public key in base64, as ssh-keygen writes it."""
    digest = hashlib.sha256(base64.b64decode(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def chosen(scanned: str, wanted: str) -> tuple[str, list[str]]:
    """Return the line for known_hosts whose key has the fingerprint, and all that were seen.

    *scanned* is what ssh-keyscan prints. The line is empty where no key is the one that is wanted.
    """
    found, seen = "", []
    for line in scanned.splitlines():
        parts = line.split()
        if line.startswith("#") or len(parts) != 3:
            continue
        try:
            print_ = fingerprint(parts[2])
        except ValueError:
            continue
        seen.append(f"{print_} ({parts[1]})")
        if print_ == wanted:
            found = line
    return found, seen
