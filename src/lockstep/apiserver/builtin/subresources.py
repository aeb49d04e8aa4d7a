"""What can be done with each subresource, and which kind it speaks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lockstep.apiserver.builtin.kind import Kind

_CHANGE = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource: its verbs, and its kind where that is not the resource's own."""

    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""


_SUBRESOURCES = {
    "approval": Subresource(_CHANGE),
    "attach": Subresource(("create", "get"), kind="PodAttachOptions"),
    "binding": Subresource(("create",), kind="Binding"),
    "ephemeralcontainers": Subresource(_CHANGE),
    "eviction": Subresource(("create",), "policy", "v1", "Eviction"),
    "exec": Subresource(("create", "get"), kind="PodExecOptions"),
    "finalize": Subresource(("update",)),
    "log": Subresource(("get",)),
    "portforward": Subresource(("create", "get"), kind="PodPortForwardOptions"),
    "proxy": Subresource(("create", "delete", "get", "patch", "update")),
    "resize": Subresource(_CHANGE),
    "scale": Subresource(_CHANGE, "autoscaling", "v1", "Scale"),
    "status": Subresource(_CHANGE),
    "token": Subresource(("create",), "authentication.k8s.io", "v1", "TokenRequest"),
}


def subresources_of(kind: Kind) -> list[tuple[str, Subresource]]:
    """Return the subresources of *kind* by name, in order."""
    found = {name: _SUBRESOURCES[name] for name in sorted(kind.subresources)}
    if "proxy" in found:
        found["proxy"] = replace(found["proxy"], kind=f"{kind.kind}ProxyOptions")
    return list(found.items())
