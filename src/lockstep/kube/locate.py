"""Where the configuration is looked for when the user names none."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from lockstep.api.names import GROUP

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def embedded_data(env: Mapping[str, str] | None = None) -> Path:
    """Return the directory in which ``lockstep up`` keeps its data by default."""
    base = (os.environ if env is None else env).get("XDG_DATA_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "share") / "lockstep"


def embedded_kubeconfig(data: Path) -> Path | None:
    """Return the kubeconfig of the ``lockstep up`` that runs on *data*, if one does.

    The process that runs there holds a lock on ``up.lock``, which ends with it.
    """
    kubeconfig = data / "kubeconfig"
    try:
        fd = os.open(data / "up.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return kubeconfig if kubeconfig.is_file() else None
    except OSError:
        return None
    finally:
        os.close(fd)
    return None


def kubeconfig_files(env: Mapping[str, str] | None = None) -> list[Path]:
    """Return the files to read, in the order in which their entries win; empty for in-cluster.

    The order is ``$KUBECONFIG`` (several files are merged), a running ``lockstep up``,
    ``~/.kube/config``.
    """
    named = (os.environ if env is None else env).get("KUBECONFIG", "")
    if named:
        return [Path(part).expanduser() for part in named.split(os.pathsep) if part]
    embedded = embedded_kubeconfig(embedded_data(env))
    if embedded is not None:
        return [embedded]
    usual = Path.home() / ".kube" / "config"
    return [usual] if usual.is_file() else []


def marked(kubeconfig: bytes, data: Path) -> bytes:
    """Return a kubeconfig of the ``lockstep up`` on *data* that says so, wherever it is copied."""
    import yaml

    found = yaml.safe_load(kubeconfig)
    for one in found["clusters"]:
        told = {"name": GROUP, "extension": {"data": str(data.absolute())}}
        one["cluster"]["extensions"] = [told]
    return yaml.safe_dump(found, sort_keys=False).encode()


def data_of(kubeconfig: Path) -> Path | None:
    """Return the directory of the ``lockstep up`` that a kubeconfig was marked for, if it was."""
    import yaml

    try:
        found = yaml.safe_load(kubeconfig.read_bytes())
        told = [e for one in found["clusters"] for e in one["cluster"].get("extensions") or ()]
        return next((Path(e["extension"]["data"]) for e in told if e["name"] == GROUP), None)
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None
