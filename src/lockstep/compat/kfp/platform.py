"""The Kubernetes part of a compiled pipeline: claims, Secrets, ConfigMaps, labels, placement."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.compat.kfp.placeholders import quote
from lockstep.compat.translation import Refused


def apply(platform: Json, pod: Json, at: str) -> None:
    """Add to the *pod* of a component what its *platform* part says.

    Raises:
        Refused: when something of it is not honoured here.
    """
    for field, value in platform.items():
        work = _FIELDS.get(field)
        if work is None:
            known = ", ".join(sorted(_FIELDS))
            raise Refused(f"{at}.{field}", None, f"it is not served; served are {known}")
        work(value, pod, f"{at}.{field}")


def _main(pod: Json) -> Json:
    found: Json = pod["spec"]["containers"][0]
    return found


def _add(tree: Json, field: str, more: list[Json]) -> None:
    tree[field] = [*(tree.get(field) or []), *more]


def _name(one: Json, field: str, at: str) -> str:
    """Return a name that is a constant or comes from an input."""
    source = one.get(f"{field}Parameter")
    if source is not None:
        if "componentInputParameter" in source:
            return "${{ inputs[" + quote(source["componentInputParameter"]) + "] }}"
        if "runtimeValue" in source:
            return str(source["runtimeValue"]["constant"])
        raise Refused(at, source, "the name must be a constant or an input of the component")
    return str(one.get(field) or one.get("constant") or "")


def _secret_env(value: list[Json], pod: Json, at: str) -> None:
    _key_env(value, pod, at, "secret", "secretKeyRef")


def _config_env(value: list[Json], pod: Json, at: str) -> None:
    _key_env(value, pod, at, "configMap", "configMapKeyRef")


def _key_env(value: list[Json], pod: Json, at: str, kind: str, ref: str) -> None:
    for one in value:
        name = _name(one, f"{kind}Name", at)
        for pair in one.get("keyToEnv") or []:
            key = {"name": name, "key": pair[f"{kind}Key"]}
            if one.get("optional"):
                key["optional"] = True
            _add(_main(pod), "env", [{"name": pair["envVar"], "valueFrom": {ref: key}}])


def _mount(pod: Json, path: str, source: Json) -> None:
    name = f"volume-{len(pod['spec'].get('volumes') or [])}"
    _add(pod["spec"], "volumes", [{"name": name, **source}])
    _add(_main(pod), "volumeMounts", [{"name": name, "mountPath": path}])


def _secret_volume(value: list[Json], pod: Json, at: str) -> None:
    for one in value:
        source = {"secretName": _name(one, "secretName", at), "optional": bool(one.get("optional"))}
        _mount(pod, one["mountPath"], {"secret": source})


def _config_volume(value: list[Json], pod: Json, at: str) -> None:
    for one in value:
        source = {"name": _name(one, "configMapName", at), "optional": bool(one.get("optional"))}
        _mount(pod, one["mountPath"], {"configMap": source})


def _claim(value: list[Json], pod: Json, at: str) -> None:
    for one in value:
        if "taskOutputParameter" in one:
            raise Refused(
                at, one["taskOutputParameter"], "name the claim by a constant or an input"
            )
        if "componentInputParameter" in one:
            name = "${{ inputs[" + quote(one["componentInputParameter"]) + "] }}"
        else:
            name = _name(one, "pvcName", at)
        _mount(pod, one["mountPath"], {"persistentVolumeClaim": {"claimName": name}})


def _empty(value: list[Json], pod: Json, at: str) -> None:
    for one in value:
        source = {field: one[field] for field in ("medium", "sizeLimit") if one.get(field)}
        _mount(pod, one["mountPath"], {"emptyDir": source})


def _selector(value: Json, pod: Json, at: str) -> None:
    if set(value) - {"labels"}:
        raise Refused(at, value, "only constant labels are served")
    pod["spec"]["nodeSelector"] = dict(value.get("labels") or {})


def _tolerations(value: list[Json], pod: Json, at: str) -> None:
    for one in value:
        if "tolerationJson" in one:
            raise Refused(f"{at}.tolerationJson", None, "write the toleration as a constant")
    _add(pod["spec"], "tolerations", value)


def _metadata(value: Json, pod: Json, at: str) -> None:
    for field in ("labels", "annotations"):
        if value.get(field):
            pod["metadata"][field] = dict(value[field])


def _pull_secret(value: list[Json], pod: Json, at: str) -> None:
    names = [{"name": _name(one, "secretName", at)} for one in value]
    _add(pod["spec"], "imagePullSecrets", names)


def _pull_policy(value: str, pod: Json, at: str) -> None:
    _main(pod)["imagePullPolicy"] = value


def _deadline(value: Any, pod: Json, at: str) -> None:
    pod["spec"]["activeDeadlineSeconds"] = int(value)


def _field_env(value: list[Json], pod: Json, at: str) -> None:
    for one in value:
        source = {"fieldRef": {"fieldPath": one["fieldPath"]}}
        _add(_main(pod), "env", [{"name": one["name"], "valueFrom": source}])


_FIELDS = {
    "activeDeadlineSeconds": _deadline,
    "configMapAsEnv": _config_env,
    "configMapAsVolume": _config_volume,
    "emptyDirMounts": _empty,
    "fieldPathAsEnv": _field_env,
    "imagePullPolicy": _pull_policy,
    "imagePullSecret": _pull_secret,
    "nodeSelector": _selector,
    "podMetadata": _metadata,
    "pvcMount": _claim,
    "secretAsEnv": _secret_env,
    "secretAsVolume": _secret_volume,
    "tolerations": _tolerations,
}
"""What is honoured of a component's platform part."""
