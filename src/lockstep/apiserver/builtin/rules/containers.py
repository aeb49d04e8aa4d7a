"""What containers may look like."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.amounts import NOT_NEGATIVE, container_amounts
from lockstep.apiserver.builtin.rules.names import (
    config_key,
    dns_label,
    dns_subdomain,
    environment_name,
    is_environment_name,
    needed,
    port_name,
    port_number,
    problems,
    qualified_name,
)
from lockstep.apiserver.schema.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_POD_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
# These exist, but no environment variable can have their value.
_OTHER_POD_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
)
_AMOUNTS = tuple(
    f"{side}.{name}"
    for side in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_KEYED = ("metadata.annotations", "metadata.labels")
_PROBE_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def container(given: Json, volumes: set[str], path: str) -> Iterator[Cause]:
    """Return what is wrong with a container, whose pod has these *volumes*."""
    name = given.get("name")
    yield from needed(f"{path}.name", name, dns_label)
    if not given.get("image"):
        yield required(f"{path}.image")
    yield from _choice(given, "terminationMessagePolicy", _MESSAGE_POLICIES, path)
    if ports := given.get("ports"):
        yield from _ports(ports, f"{path}.ports")
    for position, variable in enumerate(given.get("env") or ()):
        # Most are plain, and there may be hundreds.
        if not is_environment_name(variable.get("name") or "") or "valueFrom" in variable:
            yield from _variable(variable, f"{path}.env[{position}]")
    for position, source in enumerate(given.get("envFrom") or ()):
        yield from _variables_from(source, f"{path}.envFrom[{position}]")
    if mounts := given.get("volumeMounts"):
        yield from _mounts(mounts, volumes, f"{path}.volumeMounts")
    yield from _choice(given, "imagePullPolicy", _PULL_POLICIES, path)
    rights = given.get("securityContext") or {}
    if rights.get("privileged") and rights.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(f"{path}.securityContext", rights, text)
    if resources := given.get("resources"):
        yield from container_amounts(resources, f"{path}.resources")


def probes(given: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with the probes and hooks of a container."""
    for name in PROBES:
        if (probe := given.get(name)) is None:
            continue
        yield from _handler(probe, f"{path}.{name}")
        yield from (
            invalid(f"{path}.{name}.{number}", probe[number], NOT_NEGATIVE)
            for number in _PROBE_NUMBERS
            if probe.get(number, 0) < 0
        )
        if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
            field = f"{path}.{name}.successThreshold"
            yield invalid(field, probe["successThreshold"], "must be 1")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and name == "readinessProbe":
            field = f"{path}.{name}.terminationGracePeriodSeconds"
            yield invalid(field, grace, "must not be set for readinessProbes")
    for name in ("postStart", "preStop"):
        if (hook := (given.get("lifecycle") or {}).get(name)) is not None:
            yield from _handler(hook, f"{path}.lifecycle.{name}")


def _choice(given: Json, name: str, choices: tuple[str, ...], path: str) -> list[Cause]:
    value = given.get(name)
    if not value:
        return [required(f"{path}.{name}")]
    return [] if value in choices else [not_supported(f"{path}.{name}", value, choices)]


def _ports(ports: list[Json], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for position, port in enumerate(ports):
        at = f"{path}[{position}]"
        if name := port.get("name"):
            errors = port_name(name)
            yield from (invalid(f"{at}.name", name, error) for error in errors)
            if not errors and name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        number, host = port.get("containerPort"), port.get("hostPort")
        yield from needed(f"{at}.containerPort", number, port_number)
        if host:
            yield from problems(f"{at}.hostPort", host, port_number)
        yield from _choice(port, "protocol", PROTOCOLS, at)


def _variable(variable: Json, path: str) -> Iterator[Cause]:
    name = variable.get("name")
    yield from [] if name else [required(f"{path}.name")]
    if name:
        yield from problems(f"{path}.name", name, environment_name)
    source = variable.get("valueFrom")
    if source is None:
        return
    path = f"{path}.valueFrom"
    given = [sort for sort in _SOURCES if source.get(sort) is not None]
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`"
        text = f"must specify one of: {listed} or `fileKeyRef`"
        yield invalid(path, "", text)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    for sort in given:
        yield from _source(sort, source[sort], f"{path}.{sort}")


def _source(sort: str, source: Json, path: str) -> Iterator[Cause]:
    if sort == "fieldRef":
        yield from _field(source, path)
        return
    if sort == "resourceFieldRef":
        yield from _resource(source.get("resource"), f"{path}.resource")
        return
    if sort == "fileKeyRef":
        return
    name, key = source.get("name") or "", source.get("key")
    yield from problems(f"{path}.name", name, dns_subdomain)
    if not key:
        yield required(f"{path}.key")
        return
    yield from problems(f"{path}.key", key, config_key)


def _resource(name: str | None, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    is_known = name in _AMOUNTS or name.partition(".")[2].startswith("hugepages-")
    return [] if is_known else [not_supported(path, name, _AMOUNTS)]


def _field(source: Json, path: str) -> list[Cause]:
    field = source.get("fieldPath")
    if not field:
        return [required(f"{path}.fieldPath")]
    base, _, key = field.partition("['")
    if key and field.endswith("']"):
        if base not in _KEYED:
            return [_unreadable(f"{path}.fieldPath", field, f"does not support subscript: {field}")]
        name = key.removesuffix("']")
        errors = qualified_name(name.lower() if base.endswith("annotations") else name)
        return [invalid(path, name, error) for error in errors]
    if field in _POD_FIELDS:
        return []
    if field in _OTHER_POD_FIELDS:
        return [not_supported(f"{path}.fieldPath", field, _POD_FIELDS)]
    return [_unreadable(f"{path}.fieldPath", field, f"not supported: {field}")]


def _unreadable(path: str, field: str, why: str) -> Cause:
    return invalid(path, field, f"error converting fieldPath: field label {why}")


def _variables_from(source: Json, path: str) -> Iterator[Cause]:
    given = [sort for sort in ("configMapRef", "secretRef") if source.get(sort) is not None]
    if len(given) != 1:
        text = (
            "may not have more than one field specified at a time"
            if given
            else "must specify one of: `configMapRef` or `secretRef`"
        )
        yield invalid(path.rpartition("[")[0], "", text)
        return
    if prefix := source.get("prefix"):
        yield from problems(f"{path}.prefix", prefix, environment_name)
    name, at = source[given[0]].get("name"), f"{path}.{given[0]}.name"
    if not name:
        yield required(at)
        return
    yield from problems(at, name, dns_subdomain)


def _mounts(mounts: list[Json], volumes: set[str], path: str) -> Iterator[Cause]:
    places: set[str] = set()
    for position, mount in enumerate(mounts):
        at = f"{path}[{position}]"
        name, place = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        if not place:
            yield required(f"{at}.mountPath")
        if place in places:
            yield invalid(f"{at}.mountPath", place, "must be unique")
        places.add(place)
        for option in ("subPath", "subPathExpr"):
            yield from _descending(mount.get(option) or "", f"{path}.{option}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            text = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{at}.subPathExpr", mount["subPathExpr"], text)


def _descending(place: str, path: str) -> Iterator[Cause]:
    if place.startswith("/"):
        yield invalid(path, place, "must be a relative path")
    if ".." in place.split("/"):
        yield invalid(path, place, "must not contain '..'")


def _handler(probe: Json, path: str) -> list[Cause]:
    kinds = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
    given = [kind for kind in kinds if probe.get(kind) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    text = "may not specify more than 1 handler type"
    causes = [forbidden(f"{path}.{extra}", text) for extra in given[1:]]
    first, at = probe[given[0]], f"{path}.{given[0]}"
    if given[0] == "exec":
        return causes if first.get("command") else [*causes, required(f"{at}.command")]
    if given[0] == "sleep":
        return causes
    scheme, schemes = first.get("scheme"), ("HTTP", "HTTPS")
    if given[0] == "httpGet" and scheme not in schemes:
        causes.append(not_supported(f"{at}.scheme", scheme, schemes))
    port = first.get("port")
    errors = port_name(port) if isinstance(port, str) else port_number(port or 0)
    return [*causes, *(invalid(f"{at}.port", port or 0, error) for error in errors)]
