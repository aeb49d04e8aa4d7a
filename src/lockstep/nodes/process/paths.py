"""Which names may become paths: each name from a pod is checked here before it is used."""

from __future__ import annotations

import re
from pathlib import Path

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{0,127}")


class UnsafeName(ValueError):
    """A name that must not become a path."""


def uid(text: str) -> str:
    """Return *text* when it can be a pod's uid.

    Raises:
        UnsafeName: otherwise.
    """
    return _checked(_UID, text, "uid")


def label(text: str) -> str:
    """Return *text* when it can name a container, volume or namespace.

    Raises:
        UnsafeName: otherwise.
    """
    return _checked(_LABEL, text, "name")


def pod_name(text: str) -> str:
    """Return *text* when it can name a pod.

    Raises:
        UnsafeName: otherwise.
    """
    if ".." in text:
        raise UnsafeName(f"{text!r} is not a valid name")
    return _checked(_SUBDOMAIN, text, "name")


def _checked(pattern: re.Pattern[str], text: str, what: str) -> str:
    if not pattern.fullmatch(text):
        raise UnsafeName(f"{text!r} is not a valid {what}")
    return text


def relative(text: str) -> str:
    """Return *text* when it is a path that stays below where it starts.

    Raises:
        UnsafeName: when it is absolute, empty, or climbs with ``..``.
    """
    parts = text.split("/")
    if not text or text.startswith("/") or ".." in parts or "\0" in text:
        raise UnsafeName(f"{text!r} must be a relative path without '..'")
    return "/".join(part for part in parts if part not in ("", ".")) or "."


def absolute(text: str) -> str:
    """Return *text* when it can be where a volume is mounted.

    Raises:
        UnsafeName: when it is not absolute, is the root, or climbs with ``..``.
    """
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not text.startswith("/") or not parts or ".." in parts or "\0" in text:
        raise UnsafeName(f"{text!r} must be an absolute path without '..', and not the root")
    return "/" + "/".join(parts)


def inside(root: Path, text: str) -> Path:
    """Return the path *text* below *root*, followed through links, when it stays inside.

    Raises:
        UnsafeName: when it leads out.
    """
    place = (root / relative(text)).resolve()
    if not place.is_relative_to(root.resolve()):
        raise UnsafeName(f"{text!r} leads out of its volume")
    return place
