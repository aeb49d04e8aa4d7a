"""What pods and pod templates may look like, and what of a pod may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.containers import PROBES, container, probes
from lockstep.apiserver.builtin.rules.metadata import labels
from lockstep.apiserver.builtin.rules.names import (
    config_key,
    dns_label,
    dns_subdomain,
    needed,
    problems,
    qualified_name,
    range_error,
)
from lockstep.apiserver.builtin.rules.placement import affinity, spread, toleration
from lockstep.apiserver.recent import Recent, content
from lockstep.apiserver.schema.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

_INT32_MAX = 2**31 - 1
_WHITESPACE = "must not have leading or trailing whitespace"
_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMED = (
    ("hostname", dns_label),
    ("subdomain", dns_label),
    ("serviceAccountName", dns_subdomain),
    ("nodeName", dns_subdomain),
    ("priorityClassName", dns_subdomain),
    ("runtimeClassName", dns_subdomain),
)
_OWN = frozenset(name for name, _ in _NAMED)
_found_right: Recent[bool] = Recent()
"""Specifications, but for those names, with which nothing is wrong."""
_CHANGEABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
        "negative)",
    )
)


def pod(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a pod, or with how it changes."""
    spec = new.get("spec") or {}
    if old is None:
        return [*pod_spec(spec, "spec"), *_creation(spec)]
    before = old.get("spec") or {}
    return [] if spec == before else [*pod_spec(spec, "spec"), *_change(spec, before)]


def _creation(spec: Json) -> Iterator[Cause]:
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", text)
    yield from (
        invalid(f"spec.{name}[{position}].image", image, _WHITESPACE)
        for name in ("containers", "initContainers")
        for position, each in enumerate(spec.get(name) or ())
        if (image := each.get("image") or "") != image.strip()
    )


def template(given: Json | None, path: str) -> list[Cause]:
    """Return what is wrong with the template of pods."""
    meta, spec = (given or {}).get("metadata") or {}, (given or {}).get("spec") or {}
    return [
        *labels(meta.get("labels"), f"{path}.labels"),
        *pod_spec(spec, f"{path}.spec"),
    ]


def pod_spec(spec: Json, path: str) -> list[Cause]:
    """Return what is wrong with the specification of a pod."""
    common = content({name: part for name, part in spec.items() if name not in _OWN})
    if common is not None and _found_right.get(common):
        return _names(spec, path)
    before, after = list(_above_names(spec, path)), list(_below_names(spec, path))
    if common is not None and not before and not after:
        _found_right.keep(common, True)
    return [*before, *_names(spec, path), *after]


def _names(spec: Json, path: str) -> list[Cause]:
    return [
        invalid(f"{path}.{name}", value, error)
        for name, check in _NAMED
        if (value := spec.get(name))
        for error in check(value)
    ]


def _above_names(spec: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with that of a specification which is told before its names."""
    if "terminationGracePeriodSeconds" not in spec:
        yield required(f"{path}.terminationGracePeriodSeconds")
    volumes: set[str] = set()
    if spec.get("volumes"):
        yield from _volumes(spec["volumes"], volumes, f"{path}.volumes")
    yield from _containers(spec, volumes, path)
    yield from _one_of(spec, "restartPolicy", _RESTART, path)
    yield from _one_of(spec, "dnsPolicy", _DNS, path)
    yield from labels(spec.get("nodeSelector"), f"{path}.nodeSelector")


def _below_names(spec: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with that of a specification which is told after its names."""
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        text = range_error(1, _INT32_MAX)
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, text)
    yield from _placement(spec, path)


def _placement(spec: Json, path: str) -> Iterator[Cause]:
    for position, each in enumerate(spec.get("tolerations") or ()):
        yield from toleration(each, f"{path}.tolerations[{position}]")
    if given := spec.get("affinity"):
        yield from affinity(given, f"{path}.affinity")
    for position, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from spread(each, f"{path}.topologySpreadConstraints[{position}]")
    policy, policies = spec.get("preemptionPolicy"), ("PreemptLowerPriority", "Never")
    if policy is not None and policy not in policies:
        yield not_supported(f"{path}.preemptionPolicy", policy, policies)
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        text = "must provide `dnsConfig` when `dnsPolicy` is None"
        yield required(f"{path}.dnsConfig", text)
    gates: set[str] = set()
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        name, at = gate.get("name") or "", f"{path}.schedulingGates[{position}]"
        yield from problems(at, name, qualified_name)
        if name in gates:
            yield duplicate(at, name)
        gates.add(name)


def _one_of(spec: Json, name: str, choices: tuple[str, ...], path: str) -> list[Cause]:
    value = spec.get(name)
    if not value:
        return [required(f"{path}.{name}")]
    return [] if value in choices else [not_supported(f"{path}.{name}", value, choices)]


def _containers(spec: Json, volumes: set[str], path: str) -> Iterator[Cause]:
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for position, each in enumerate(containers):
        at = f"{path}.containers[{position}]"
        yield from container(each, volumes, at)
        yield from _unique(each, names, at)
        yield from probes(each, at)
    yield from _host_ports(containers, f"{path}.containers")
    for position, each in enumerate(spec.get("initContainers") or ()):
        at = f"{path}.initContainers[{position}]"
        yield from container(each, volumes, at)
        yield from _unique(each, names, at)
        if each.get("restartPolicy") == "Always":
            yield from probes(each, at)
        else:
            text = "may not be set for init containers without restartPolicy=Always"
            yield from (
                forbidden(f"{at}.{name}", text)
                for name in ("lifecycle", *PROBES)
                if each.get(name) is not None
            )


def _host_ports(containers: Sequence[Json], path: str) -> Iterator[Cause]:
    taken: set[str] = set()
    for position, each in enumerate(containers):
        for number, port in enumerate(each.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            shown = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if shown in taken:
                yield duplicate(f"{path}[{position}].ports[{number}].hostPort", shown)
            taken.add(shown)


def _unique(each: Json, names: set[str], path: str) -> list[Cause]:
    name = each.get("name")
    if name in names:
        return [duplicate(f"{path}.name", name)]
    if name:
        names.add(name)
    return []


def _volumes(volumes: list[Json], names: set[str], path: str) -> Iterator[Cause]:
    for position, volume in enumerate(volumes):
        at = f"{path}[{position}]"
        name = volume.get("name")
        wrong = list(_volume_source(volume, at))
        if not name:
            wrong.append(required(f"{at}.name"))
        else:
            wrong += [invalid(f"{at}.name", name, error) for error in dns_label(name)]
            if name in names:
                wrong.append(duplicate(f"{at}.name", name))
        if name and not wrong:
            names.add(name)
        yield from wrong


def _volume_source(volume: Json, path: str) -> Iterator[Cause]:
    sources = [name for name in volume if name != "name" and volume[name] is not None]
    if not sources:
        yield required(path, "must specify a volume type")
        return
    text = "may not specify more than 1 volume type"
    yield from (forbidden(f"{path}.{extra}", text) for extra in sources[1:])
    sort = sources[0]
    needs = {
        "hostPath": "path",
        "secret": "secretName",
        "configMap": "name",
        "persistentVolumeClaim": "claimName",
    }
    needed = needs.get(sort)
    source = volume[sort]
    if needed and not source.get(needed):
        yield required(f"{path}.{sort}.{needed}")
    if sort == "hostPath" and ".." in (source.get("path") or "").split("/"):
        yield invalid(f"{path}.hostPath.path", source["path"], "must not contain '..'")
    mode = source.get("defaultMode", 0)
    if not 0 <= mode <= 0o777:
        text = "must be a number between 0 and 0777 (octal), both inclusive"
        yield invalid(f"{path}.{sort}.defaultMode", mode, text)
    if sort in ("secret", "configMap"):
        for position, item in enumerate(source.get("items") or ()):
            yield from _key_to_path(item, f"{path}.{sort}.items[{position}]")


def _key_to_path(item: Json, path: str) -> Iterator[Cause]:
    key, place = item.get("key"), item.get("path")
    yield from needed(f"{path}.key", key, config_key)
    if not place:
        yield required(f"{path}.path")
    elif place.startswith("/"):
        yield invalid(f"{path}.path", place, "must be a relative path")
    elif ".." in place.split("/"):
        yield invalid(f"{path}.path", place, "must not contain '..'")


def _change(new: Json, old: Json) -> Iterator[Cause]:
    for name in ("containers", "initContainers"):
        if len(new.get(name) or ()) != len(old.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    yield from _deadline_change(new, old)
    yield from _toleration_change(new, old)
    yield from _gate_change(new, old)
    after = _without_changeable(new)
    before = _without_changeable(old)
    if old.get("schedulingGates"):
        yield from _selector_change(new, old)
        for spec in (after, before):
            spec.pop("nodeSelector", None)
            spec.pop("affinity", None)
    if (
        old.get("terminationGracePeriodSeconds", 0) < 0
        and after.get("terminationGracePeriodSeconds") == 1
    ):
        before["terminationGracePeriodSeconds"] = 1
    if after != before:
        changed = sorted(k for k in after.keys() | before.keys() if after.get(k) != before.get(k))
        lines = "\n".join(f"  {name}" for name in changed)
        text = f"pod updates may not change fields other than {_CHANGEABLE}\n{lines}\n"
        yield forbidden("spec", text)


def _without_changeable(spec: Json) -> Json:
    kept = {
        name: value
        for name, value in spec.items()
        if name
        not in (
            "activeDeadlineSeconds",
            "tolerations",
            "schedulingGates",
        )
    }
    for name in ("containers", "initContainers"):
        if kept.get(name):
            kept[name] = [{**each, "image": ""} for each in kept[name]]
    return kept


def _deadline_change(new: Json, old: Json) -> list[Cause]:
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if before is None or before == after:
        return []
    if after is None:
        text = "must not update from a positive integer to nil value"
        return [invalid(path, None, text)]
    if before < after:
        return [invalid(path, after, "must be less than or equal to previous value")]
    return []


def _toleration_change(new: Json, old: Json) -> list[Cause]:
    kept = [{**t, "tolerationSeconds": None} for t in new.get("tolerations") or ()]
    for before in old.get("tolerations") or ():
        if {**before, "tolerationSeconds": None} not in kept:
            text = "existing toleration can not be modified except its tolerationSeconds"
            return [forbidden("spec.tolerations", text)]
    return []


def _gate_change(new: Json, old: Json) -> list[Cause]:
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    return [
        forbidden(
            f"spec.schedulingGates[{position}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for position, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _selector_change(new: Json, old: Json) -> list[Cause]:
    after, before = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    if any(after.get(key) != value for key, value in before.items()):
        return [invalid("spec.nodeSelector", after, text)]
    return []
