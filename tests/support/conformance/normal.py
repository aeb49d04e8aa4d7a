"""Answers without what must differ: uids, times, versions, and where the server listens.

A uid becomes the name of the object that it was first seen with, and a version the count of those
that this object has shown: whether two answers speak of one object, and whether a write has changed
it, is still compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml
from tests.support.apiserver import Answer

Json = Any

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_AGE = re.compile(r"(\d+[dhms])+")
_UNORDERED = ("resourceRules", "nonResourceRules")
_SECRETS = frozenset({"token", "continue", "serverAddress"})
_DRAWN = re.compile(r"(gen-|Bad_)[b-df-hj-np-tv-xz2-9]{5}(?![\w-])")
_NUMBERED = re.compile(r"""(in record \(|object meta: |current: |resourceVersion\\?":\\?")\d+""")
_ACCESS = re.compile(r"kube-api-access-[a-z0-9]{5}")
_HASHES = re.compile(r"hash=[0-9A-F]+")
_COMPARED_HEADERS = (
    "Content-Type",
    "Warning",
    "Retry-After",
    "Cache-Control",
    "Allow",
    "Location",
    "Www-Authenticate",
    "Vary",
)


@dataclass
class Normal:
    """Brings the answers of one server into a form that two servers can share."""

    address: str
    """Where the server listens, as ``host:port``."""
    _names: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, list[str]] = field(default_factory=dict)
    _drawn: dict[str, str] = field(default_factory=dict)

    def answer(self, answer: Answer, *, watched: bool = False) -> Json:
        """Return an answer's status, headers and body, the latter as the events of a watch."""
        headers = {
            name: value.replace(self.address, "ADDRESS")
            for name, value in answer.headers.items()
            if name.title() in _COMPARED_HEADERS
        }
        return {"status": answer.status, "headers": headers, "body": self._body(answer, watched)}

    def _body(self, answer: Answer, watched: bool) -> Json:
        try:
            if watched and answer.status == 200:
                return _once(self._tree(json.loads(line)) for line in answer.body.splitlines())
            if "yaml" in answer.headers.get("Content-Type", ""):
                return self._tree(yaml.safe_load(answer.body))
            return self._tree(json.loads(answer.body))
        except ValueError:
            return self._text(answer.body.decode(errors="replace"))

    def _tree(self, value: Json, key: str = "") -> Json:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            if key == "managedFields":
                # Their order depends on the second in which each of them wrote.
                value = sorted(value, key=_manager)
            if key == "resources" and all(isinstance(one, dict) for one in value):
                # Those of CRDs come in whatever order a map has.
                value = sorted(value, key=lambda one: str(one.get("name") or one.get("resource")))
            if key in _UNORDERED:
                value = sorted(value, key=lambda entry: json.dumps(entry, sort_keys=True))
            return [self._tree(one, "cells" if key == "cells" else "") for one in value]
        if isinstance(value, str):
            return self._leaf(value, key)
        return value

    def _object(self, value: Json) -> Json:
        uid, name, prefix = (value.get(key) for key in ("uid", "name", "generateName"))
        if isinstance(prefix, str) and prefix and str(name).startswith(prefix):
            self._drawn[str(name)] = f"{prefix}DRAWN"
        if isinstance(uid, str) and isinstance(name, str):
            self._meet(uid, f"{value.get('namespace', '')}/{self._drawn.get(name, name)}")
        found = {self._text(name): self._tree(one, name) for name, one in value.items()}
        if isinstance(value.get("resourceVersion"), str):
            found["resourceVersion"] = self._version(value)
        return found

    def _meet(self, uid: str, name: str) -> None:
        if uid not in self._names and _UID.fullmatch(uid):
            count = sum(known.startswith(f"UID {name} ") for known in self._names.values())
            self._names[uid] = f"UID {name} {count + 1}"

    def _version(self, holder: Json) -> str:
        version, uid = holder["resourceVersion"], holder.get("uid")
        if uid is None or not version:
            return "VERSION" if version else ""
        shown = self._versions.setdefault(uid, [])
        if version not in shown:
            shown.append(version)
        return f"VERSION {shown.index(version) + 1}"

    def _leaf(self, value: str, key: str) -> str:
        if key in _SECRETS and value:
            return key.upper()
        if key == "cells" and _AGE.fullmatch(value):
            return "AGE"
        return self._text(value)

    def _text(self, value: str) -> str:
        value = _TIME.sub(lambda found: "TIME" + "0" * len(found[1] or ""), value)
        value = _UID.sub(lambda found: self._names.get(found[0], "UID"), value)
        value = _DRAWN.sub(r"\1DRAWN", value)
        value = _NUMBERED.sub(r"\1VERSION", value)
        value = _ACCESS.sub("kube-api-access-DRAWN", value)
        value = _HASHES.sub("hash=HASH", value)
        value = self._drawn.get(value, value)
        return value.replace(self.address, "ADDRESS")


def _once(events: Iterable[Json]) -> list[Json]:
    """Return the events of a watch without the bookmarks that come from time to time.

    Whether one comes in a few seconds, kube-apiserver leaves to its timers. The one that ends the
    initial events is kept.
    """
    return [event for event in events if event.get("type") != "BOOKMARK" or _ends_initial(event)]


def _ends_initial(event: Json) -> bool:
    meta = event.get("object", {}).get("metadata", {})
    return "k8s.io/initial-events-end" in meta.get("annotations", {})


def _manager(entry: Json) -> list[str]:
    names = ("manager", "operation", "subresource", "apiVersion")
    return [str(entry.get(name, "")) for name in names]


def differences(ours: Json, theirs: Json, at: str = "") -> list[str]:
    """Return where two trees differ, and how."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted({*ours, *theirs})
        return [
            found
            for key in keys
            for found in differences(
                ours.get(key, "(absent)"), theirs.get(key, "(absent)"), f"{at}.{key}"
            )
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{at}[{i}]")]
    return [] if ours == theirs else [f"{at}: {ours!r} instead of {theirs!r}"]
