"""Choosing the runtime that serves a model, by KServe's rules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Json
from lockstep.compat.kserve.objects import RuntimeSpec, ServingRuntime, SupportedFormat
from lockstep.compat.kserve.problem import Problem


def _stock(name: str, image: str, formats: Iterable[SupportedFormat]) -> ServingRuntime:
    container: Json = {
        "name": "kserve-container",
        "image": image,
        "args": ["--model_name={{.Name}}", "--model_dir=/mnt/models", "--http_port=8080"],
        "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "h2c", "containerPort": 8081, "protocol": "TCP"},
        ],
        "securityContext": {"runAsNonRoot": True},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
    }
    spec = RuntimeSpec(
        supported_model_formats=list(formats),
        protocol_versions=["v1", "v2", "grpc-v2"],
        containers=[container],
    )
    return ServingRuntime(metadata=ObjectMeta(name=name), spec=spec)


STOCK: Final = (
    _stock(
        "kserve-sklearnserver",
        "kserve/sklearnserver:latest",
        [SupportedFormat(name="sklearn", version="1", auto_select=True, priority=1)],
    ),
    _stock(
        "kserve-tritonserver",
        "nvcr.io/nvidia/tritonserver:latest",
        [
            SupportedFormat(name="onnx", version="1", auto_select=True, priority=1),
            SupportedFormat(name="pytorch", version="1"),
        ],
    ),
    _stock(
        "kserve-torchserve",
        "pytorch/torchserve-kfs:latest",
        [SupportedFormat(name="pytorch", version="1", auto_select=True, priority=2)],
    ),
    _stock(
        "kserve-mlserver",
        "docker.io/seldonio/mlserver:latest",
        [SupportedFormat(name="sklearn", version="1")],
    ),
)
"""Runtimes that are there unless the cluster has others of their names."""


def known(
    here: Iterable[ServingRuntime], cluster: Iterable[ServingRuntime]
) -> list[ServingRuntime]:
    """Return all runtimes by precedence: of the namespace, of the cluster, then shipped."""
    found = [*here, *cluster]
    names = {one.metadata.name for one in found}
    return [*found, *(one for one in STOCK if one.metadata.name not in names)]


def choose(model: Json, protocol: str, runtimes: list[ServingRuntime]) -> ServingRuntime:
    """Return the runtime for *model*; the one that it names, else the best that offers itself.

    Raises:
        Problem: when there is none.
    """
    form = model.get("modelFormat") or {}
    wanted = model.get("runtime")
    if wanted:
        return _named(wanted, form, runtimes)
    fits = [
        (supported.priority, -index, one)
        for index, one in enumerate(runtimes)
        for supported in one.spec.supported_model_formats
        if not one.spec.disabled
        and supported.auto_select
        and _serves(supported, form)
        and (not one.spec.protocol_versions or protocol in one.spec.protocol_versions)
    ]
    if not fits:
        raise _none(form, protocol, runtimes)
    return max(fits, key=lambda fit: fit[:2])[2]


def _named(name: str, form: Json, runtimes: list[ServingRuntime]) -> ServingRuntime:
    field = "spec.predictor.model.runtime"
    for one in runtimes:
        if one.metadata.name != name:
            continue
        if one.spec.disabled:
            raise Problem(
                field, name, "it is disabled; enable it or name another", "RuntimeDisabled"
            )
        if not any(_serves(supported, form) for supported in one.spec.supported_model_formats):
            offered = ", ".join(sorted({f.name for f in one.spec.supported_model_formats}))
            raise Problem(
                field, name, f"it serves {offered}, not {form.get('name')}", "NoSupportingRuntime"
            )
        return one
    there = ", ".join(sorted(one.metadata.name for one in runtimes))
    raise Problem(
        field, name, f"there is no such runtime; there are: {there}", "RuntimeNotRecognized"
    )


def _serves(supported: SupportedFormat, form: Json) -> bool:
    version = form.get("version")
    return supported.name == form.get("name") and (
        version is None or supported.version is None or str(version) == supported.version
    )


def _none(form: Json, protocol: str, runtimes: list[ServingRuntime]) -> Problem:
    name = str(form.get("name", ""))
    formats = sorted(
        {
            f.name
            for one in runtimes
            if not one.spec.disabled
            for f in one.spec.supported_model_formats
        }
    )
    near = difflib.get_close_matches(name, formats, n=3, cutoff=0.4) or formats
    if name in formats:
        version = form.get("version")
        what = f"no runtime that offers itself serves it as {protocol} in version {version}"
    else:
        what = f"no runtime serves it; served are: {', '.join(near)}"
    return Problem("spec.predictor.model.modelFormat.name", name, what, "NoSupportingRuntime")
