"""Components that are containers or importers, as templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.compat.kfp import placeholders
from lockstep.compat.kfp.objects import is_object, object_template
from lockstep.compat.kfp.placeholders import EXECUTOR, EXECUTOR_FILE, FILES, local, quote, type_of
from lockstep.compat.kfp.platform import apply
from lockstep.compat.translation import Refused

_SHARED: Final = ["/s3", "/minio", "/gcs", FILES]
_CONTAINER: Final = frozenset({"args", "command", "env", "image", "resources", "lifecycle"})
_MODELS: Final = {"NVIDIA_": "nvidia.com/gpu", "nvidia.com/": "nvidia.com/gpu"}


def container_template(container: Json, component: Json, platform: Json, at: str) -> Json:
    """Return what runs a container component.

    Raises:
        Refused: when it asks for something that is not honoured here.
    """
    if is_object(container):
        return object_template(container, component, at)
    for field in container:
        if field not in _CONTAINER or field == "lifecycle":
            raise Refused(f"{at}.container.{field}", None, "it is not served; leave it out")
    words = {
        field: [
            _word(one, f"{at}.container.{field}[{number}]", component)
            for number, one in enumerate(container.get(field) or [])
        ]
        for field in ("command", "args")
    }
    main: Json = {"name": "main", "image": placeholders.text(container["image"], at, component)}
    main |= {field: given for field, given in words.items() if given}
    if env := container.get("env"):
        main["env"] = [
            {"name": one["name"], "value": placeholders.text(one.get("value", ""), at, component)}
            for one in env
        ]
    if resources := container.get("resources"):
        main["resources"] = _resources(resources, f"{at}.container.resources")
    pod: Json = {"metadata": {}, "spec": {"containers": [main]}}
    apply(platform, pod, at)
    return {
        "pod": {
            "template": pod,
            "shared": _SHARED,
            "fetch": _fetches(component),
            "outputs": _outputs(component),
        }
    }


def _fetches(component: Json) -> list[Json]:
    given = (component.get("inputDefinitions") or {}).get("artifacts") or {}
    return [
        {
            "artifact": "${{ inputs[" + quote(name) + "] }}",
            "path": "${{ " + local("artifact.uri") + " }}",
            **({"optional": True} if one.get("isOptional") else {}),
        }
        for name, one in given.items()
    ]


def _outputs(component: Json) -> list[Json]:
    given = component.get("outputDefinitions") or {}
    found: list[Json] = []
    for name, one in (given.get("parameters") or {}).items():
        kind = "Text" if one.get("parameterType") == "STRING" else "Json"
        found.append({"name": name, "kind": kind, "path": f"{FILES}/outputs/{name}"})
    for name, one in (given.get("artifacts") or {}).items():
        path = "${{ " + local("uri") + " }}"
        found.append({"name": name, "kind": "Artifact", "path": path, "type": type_of(one)})
    if found:
        found.append({"name": EXECUTOR, "kind": "Executor", "path": EXECUTOR_FILE})
    return found


def _word(given: Any, at: str, component: Json) -> str:
    """Return one word of a command, or an expression that gives several or none."""
    if isinstance(given, str) and given.startswith(('{"IfPresent"', '{"Concat"')):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise Refused(at, given, str(error)) from None
    if isinstance(given, str):
        return placeholders.text(given, at, component)
    return "${{ " + _code(given, at, component) + " }}"


def _code(given: Any, at: str, component: Json) -> str:
    """Return the expression of a word that is put together."""
    if isinstance(given, str):
        return _joined(given, at, component)
    if isinstance(given, list):
        return "[" + ", ".join(_code(one, at, component) for one in given) + "]"
    if "Concat" in given:
        return "(" + " + ".join(f"{_code(one, at, component)}" for one in given["Concat"]) + ")"
    if "IfPresent" in given:
        wanted = given["IfPresent"]
        name = quote(wanted["InputName"])
        then = _code(wanted["Then"], at, component)
        other = _code(wanted.get("Else") or [], at, component)
        return f"({name} in inputs && inputs[{name}] != null ? {then} : {other})"
    raise Refused(at, given, "this placeholder is not known")


def _joined(given: str, at: str, component: Json) -> str:
    parts: list[str] = []
    end = 0
    for place in placeholders.PLACE.finditer(given):
        if place.start() > end:
            parts.append(quote(given[end : place.start()]))
        parts.append(placeholders.expression(place[1], at, component))
        end = place.end()
    if end < len(given) or not parts:
        parts.append(quote(given[end:]))
    return "(" + " + ".join(parts) + ")"


def _resources(given: Mapping[str, Any], at: str) -> Json:
    """Return the requests and limits of a container."""
    found: Json = {"requests": {}, "limits": {}}
    for field, value in given.items():
        if field == "accelerator":
            count = value.get("resourceCount") or value.get("count")
            name = str(value.get("resourceType") or value.get("type") or "")
            if "{{$" in name:
                raise Refused(f"{at}.accelerator.resourceType", name, "name it by a constant")
            ours = next((own for start, own in _MODELS.items() if name.startswith(start)), name)
            found["limits"][ours] = _quantity(count)
            continue
        name = field.removeprefix("resource")
        name = name[:1].lower() + name[1:]
        for resource in ("cpu", "memory"):
            for end, side in (("Limit", "limits"), ("Request", "requests")):
                if name == f"{resource}{end}":
                    # The older fields are numbers of cores and of gigabytes.
                    plain = not isinstance(value, str) and resource == "memory"
                    found[side].setdefault(resource, f"{value}G" if plain else _quantity(value))
                    break
            else:
                continue
            break
        else:
            raise Refused(f"{at}.{field}", value, "it is not served; leave it out")
    return {side: amounts for side, amounts in found.items() if amounts}


def _quantity(value: Any) -> str:
    return placeholders.text(value, "resources", {}) if isinstance(value, str) else f"{value:g}"


def importer_template(importer: Json, at: str) -> Json:
    """Return what gives an artefact that is there already.

    Raises:
        Refused: when its address comes from an unknown source.
    """
    address = importer.get("artifactUri") or {}
    if "constant" in address:
        uri = placeholders.text(address["constant"], f"{at}.importer.artifactUri")
    elif "runtimeParameter" in address:
        uri = "${{ inputs[" + quote(address["runtimeParameter"]) + "] }}"
    else:
        raise Refused(f"{at}.importer.artifactUri", address, "name a constant or a parameter")
    kind = (importer.get("typeSchema") or {}).get("schemaTitle", "system.Artifact")
    metadata = importer.get("metadata") or {}
    made = {"name": "artifact", "uri": uri, "type": kind, "metadata": metadata}
    return {"outputs": {"artifact": made}}
