"""By what a service is scaled: KServe's ``scaleMetric`` and ``autoScaling``, and a schedule."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import yaml

from lockstep.api import quantity
from lockstep.api.cron import parse
from lockstep.api.wire import Json
from lockstep.compat.kserve.metrics import Behavior, Direction, Limit, Metric, Period
from lockstep.compat.kserve.problem import Problem

SCHEDULE_ANNOTATION: Final = "lockstep.dev/schedule"
"""Times with at least so many replicas: a list of ``{start, end, replicas, timezone}``."""
LOADS: Final = ("concurrency", "rps")
_RESOURCES: Final = ("cpu", "memory", "gpu", "gpu-memory", *LOADS)
_FIELD: Final = "spec.predictor"
_UTILIZATION: Final = 80.0


@dataclass(frozen=True, slots=True)
class Scaling:
    """How many replicas there may be, and what each is to carry."""

    minimum: int = 1
    maximum: int = 0
    """0 is no bound."""
    metric: str = "concurrency"
    """The load by which Knative's rules count; empty where metrics alone do."""
    target: float | None = None
    metrics: tuple[Metric, ...] = ()
    behavior: Behavior = field(default_factory=Behavior)
    schedule: tuple[Period, ...] = ()


def scaling(spec: Json, container: Json, annotations: Mapping[str, str]) -> Scaling:
    """Return by what a component with *spec* is scaled; *container* answers its requests.

    Raises:
        Problem: when a field makes no sense, or a metric is asked for that nothing serves.
    """
    least, most = count(spec, "minReplicas", 1), count(spec, "maxReplicas", 0)
    if most and least > most:
        raise Problem(f"{_FIELD}.maxReplicas", most, f"it is below minReplicas {least}")
    target = spec.get("scaleTarget")
    if target is not None and (not isinstance(target, int) or target < 1):
        raise Problem(f"{_FIELD}.scaleTarget", target, "a whole number from 1 is needed")
    name = str(spec.get("scaleMetric") or "")
    auto = spec.get("autoScaling") or {}
    found = [
        _metric(f"{_FIELD}.autoScaling.metrics[{number}]", one, container)
        for number, one in enumerate(auto.get("metrics") or [])
    ]
    if name and name not in _RESOURCES:
        raise _unknown(f"{_FIELD}.scaleMetric", name)
    if name and name not in LOADS:
        field_ = f"{_FIELD}.scaleMetric"
        kind = {"AverageValue": "AverageValue"}.get(str(spec.get("scaleMetricType")), "Utilization")
        goal = float(target) if target else _UTILIZATION
        found.append(_resource(field_, name, kind, goal, container))
    loads = [one.name for one in found if one.kind == "load"]
    metric = name if name in LOADS else (loads[0] if loads else "")
    if not metric and not found:
        metric = "concurrency"
    stated = next((one.target for one in found if one.kind == "load"), None)
    return Scaling(
        minimum=least,
        maximum=most,
        metric=metric,
        target=float(target) if target and name in ("", *LOADS) else stated,
        metrics=tuple(one for one in found if one.kind != "load"),
        behavior=_behavior(auto.get("behavior") or {}),
        schedule=_schedule(annotations.get(SCHEDULE_ANNOTATION, "")),
    )


def count(spec: Json, name: str, default: int, least: int = 0) -> int:
    """Return a field that is a whole number.

    Raises:
        Problem: when it is none, or below *least*.
    """
    value = spec.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Problem(f"{_FIELD}.{name}", value, f"a whole number from {least} is needed")
    return value


def _unknown(where: str, name: str) -> Problem:
    near = difflib.get_close_matches(name, _RESOURCES, n=3, cutoff=0.5) or _RESOURCES
    text = f"nothing serves it; served are: {', '.join(near)}"
    return Problem(where, name, text, "NoSuchMetric")


def _metric(where: str, given: Json, container: Json) -> Metric:
    kind = given.get("type")
    if kind == "Resource":
        part = given.get("resource") or {}
        name, target = str(part.get("name") or ""), part.get("target") or {}
        if name not in _RESOURCES:
            raise _unknown(f"{where}.resource.name", name)
        how, goal = _target(f"{where}.resource.target", target)
        if name in LOADS:
            return Metric("load", name, goal, "average", field=where)
        return _resource(where, name, how, goal, container)
    if kind == "External":
        part = given.get("external") or {}
        metric = part.get("metric") or {}
        if metric.get("backend", "prometheus") != "prometheus":
            text = "prometheus is the one that is asked"
            raise Problem(
                f"{where}.external.metric.backend", metric["backend"], text, "NoSuchMetric"
            )
        how, goal = _target(f"{where}.external.target", part.get("target") or {})
        address, query = str(metric.get("serverAddress") or ""), str(metric.get("query") or "")
        check_query(f"{where}.external.metric", address, query)
        per: Any = "average" if how == "AverageValue" else "value"
        return Metric("prometheus", query[:60], goal, per, address, query, field=where)
    if kind == "PodMetric":
        part = given.get("podmetric") or given.get("podMetric") or {}
        metric = part.get("metric") or {}
        names = metric.get("metricNames") or [metric.get("query") or ""]
        if not names[0]:
            raise Problem(
                f"{where}.podmetric.metric.metricNames", "", "the metric's name is needed"
            )
        _, goal = _target(f"{where}.podmetric.target", part.get("target") or {})
        return Metric("server", str(names[0]), goal, "average", field=where)
    raise Problem(f"{where}.type", kind, "Resource, External or PodMetric is needed")


def check_query(where: str, address: str, query: str) -> None:
    """Look whether a Prometheus can be asked.

    Raises:
        Problem: when its address or the query is missing.
    """
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname:
        text = "an http address is needed, such as http://prometheus.monitoring:9090"
        raise Problem(f"{where}.serverAddress", address, text)
    if not query.strip():
        raise Problem(f"{where}.query", query, "a query is needed")


def _resource(where: str, name: str, how: str, goal: float, container: Json) -> Metric:
    requests = (container.get("resources") or {}).get("requests") or {}
    limits = (container.get("resources") or {}).get("limits") or {}
    kind: Literal["gpu", "process"] = "gpu" if name.startswith("gpu") else "process"
    if kind == "gpu":
        return Metric("gpu", name, goal, "average", field=where)
    text = requests.get(name) or limits.get(name)
    if how == "Utilization":
        if not text:
            remedy = f"the container requests no {name} of which it could be a share; state it"
            raise Problem(where, name, remedy, "NoSuchMetric")
        return Metric("process", name, goal, "utilization", base=_amount(text), field=where)
    return Metric("process", name, goal, "average", field=where)


def _amount(text: Any) -> float:
    return float(quantity.parse(str(text)))


def _target(where: str, given: Json) -> tuple[str, float]:
    kind = str(given.get("type") or "Utilization")
    names = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
    if kind not in names:
        raise Problem(f"{where}.type", kind, f"one of {', '.join(names)} is needed")
    value = given.get(names[kind])
    if value is None and kind == "Utilization":
        value = _UTILIZATION
    try:
        goal = _amount(value)
    except (ValueError, TypeError):
        goal = 0.0
    if goal <= 0:
        raise Problem(f"{where}.{names[kind]}", value, "a number above 0 is needed")
    return kind, goal


def _behavior(given: Json) -> Behavior:
    default = Behavior()
    return Behavior(
        _direction("scaleUp", given.get("scaleUp"), default.up),
        _direction("scaleDown", given.get("scaleDown"), default.down),
    )


def _direction(name: str, given: Json | None, default: Direction) -> Direction:
    if not given:
        return default
    where = f"{_FIELD}.autoScaling.behavior.{name}"
    window = given.get("stabilizationWindowSeconds")
    window = default.stabilization if window is None else window
    if not isinstance(window, int | float) or not 0 <= window <= 3600:
        raise Problem(f"{where}.stabilizationWindowSeconds", window, "from 0 to 3600")
    select: Any = given.get("selectPolicy") or "Max"
    if select not in ("Max", "Min", "Disabled"):
        raise Problem(f"{where}.selectPolicy", select, "Max, Min or Disabled is needed")
    limits = [
        _limit(f"{where}.policies[{number}]", one)
        for number, one in enumerate(given.get("policies") or [])
    ]
    return Direction(float(window), tuple(limits) or default.limits, select)


def _limit(where: str, given: Json) -> Limit:
    kind, value, seconds = given.get("type"), given.get("value"), given.get("periodSeconds")
    if kind not in ("Pods", "Percent"):
        raise Problem(f"{where}.type", kind, "Pods or Percent is needed")
    if not isinstance(value, int) or value < 1:
        raise Problem(f"{where}.value", value, "a whole number from 1 is needed")
    if not isinstance(seconds, int) or not 1 <= seconds <= 1800:
        raise Problem(f"{where}.periodSeconds", seconds, "from 1 to 1800")
    return Limit(kind, value, seconds)


def _schedule(text: str) -> tuple[Period, ...]:
    if not text.strip():
        return ()
    where = f"metadata.annotations[{SCHEDULE_ANNOTATION}]"
    try:
        tree = yaml.safe_load(text) if len(text) <= 4096 and "&" not in text else None
    except yaml.YAMLError as error:
        raise Problem(where, text[:40], f"is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, list):
        raise Problem(where, text[:40], "a list of {start, end, replicas} is needed")
    found = []
    for number, one in enumerate(tree):
        at = f"{where}[{number}]"
        if not isinstance(one, dict) or set(one) - {"start", "end", "replicas", "timezone"}:
            raise Problem(at, one, "known are start, end, replicas and timezone")
        replicas, zone = one.get("replicas"), str(one.get("timezone") or "UTC")
        if not isinstance(replicas, int) or replicas < 1:
            raise Problem(f"{at}.replicas", replicas, "a whole number from 1 is needed")
        for name in ("start", "end"):
            try:
                parse(str(one.get(name) or ""))
            except ValueError as error:
                raise Problem(f"{at}.{name}", one.get(name), str(error)) from None
        try:
            ZoneInfo(zone)
        except (ValueError, KeyError, OSError):
            raise Problem(
                f"{at}.timezone", zone, "a zone such as Europe/Berlin is needed"
            ) from None
        found.append(Period(str(one["start"]), str(one["end"]), replicas, zone))
    return tuple(found)
