"""How requests come to a service: what is logged, joined, copied, and who chooses a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import yaml

from lockstep.api.serving import Batcher, Logger
from lockstep.api.wire import Json
from lockstep.compat.kserve.objects import InferenceService
from lockstep.compat.kserve.problem import Problem

MATCH_ANNOTATION: Final = "lockstep.dev/canary-match"
"""Which requests the newest version gets, as a list of ``{header: NAME, value: VALUE}``."""
MIRROR_ANNOTATION: Final = "lockstep.dev/mirror"
"""Per cent of the requests of which the newest version gets copies."""
SESSION_ANNOTATION: Final = "lockstep.dev/session-header"
CHOICE_ANNOTATION: Final = "lockstep.dev/replica-choice"
MODELS_ANNOTATION: Final = "lockstep.dev/models"
"""Names of models, separated by commas, under which OpenAI's clients find the service."""
PREFILL_ANNOTATION: Final = "lockstep.dev/prefill"
"""The service of the same namespace whose replicas read the prompts."""
PROBE_ANNOTATION: Final = "lockstep.dev/probe"
"""With ``none``: a replica that says nothing of its readiness is ready when it runs."""
TAGS_ANNOTATION: Final = "serving.kserve.io/enable-tag-routing"
TAG_HEADER: Final = "Knative-Serving-Tag"
_OPENAI: Final = ("huggingface", "vllm")
_MODES: Final = ("all", "request", "response")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A header or a cookie that requests of the newest version bear."""

    header: str = ""
    cookie: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """How requests come to the replicas of a component."""

    logger: Logger = field(default_factory=Logger)
    batcher: Batcher = field(default_factory=Batcher)
    rules: tuple[Rule, ...] = ()
    tags: bool = False
    mirror: int = 0
    choice: str = "load"
    session: str = ""
    predict: str = ""
    models: tuple[str, ...] = ()
    prefill: str = ""


def way(service: InferenceService, spec: Json, model: Json | None, protocol: str) -> Way:
    """Return how requests come to a component that is described by *spec*.

    Raises:
        Problem: when something of it makes no sense.
    """
    given = {**service.metadata.annotations, **(spec.get("annotations") or {})}
    name = service.metadata.name
    choice = given.get(CHOICE_ANNOTATION, "")
    speaks = model is not None and (model.get("modelFormat") or {}).get("name") in _OPENAI
    if choice not in ("", "load", "prefix"):
        raise Problem(_annotation(CHOICE_ANNOTATION), choice, "load or prefix is needed")
    models = [one.strip() for one in given.get(MODELS_ANNOTATION, "").split(",") if one.strip()]
    return Way(
        logger=_logger(spec.get("logger")),
        batcher=_batcher(spec.get("batcher")),
        rules=_rules(given),
        tags=given.get(TAGS_ANNOTATION) == "true",
        mirror=_mirror(given),
        choice=choice or ("prefix" if speaks else "load"),
        session=given.get(SESSION_ANNOTATION, ""),
        predict=f"/v2/models/{name}/infer" if "v2" in protocol else f"/v1/models/{name}:predict",
        prefill=given.get(PREFILL_ANNOTATION, ""),
        models=tuple(models) or ((name,) if speaks else ()),
    )


def _annotation(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _logger(given: Json | None) -> Logger:
    if not given:
        return Logger()
    where = "spec.predictor.logger"
    url = str(given.get("url") or "")
    mode: Any = given.get("mode") or "all"
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise Problem(f"{where}.url", url, "an http URL is needed, such as http://sink.logs/")
    if mode not in _MODES:
        raise Problem(f"{where}.mode", mode, f"one of {', '.join(_MODES)} is needed")
    headers = given.get("metadataHeaders") or []
    return Logger(url=url, mode=mode, metadata_headers=[str(one) for one in headers])


def _batcher(given: Json | None) -> Batcher:
    if given is None:
        return Batcher()
    found = {"maxBatchSize": given.get("maxBatchSize"), "maxLatency": given.get("maxLatency")}
    for name, value in found.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise Problem(
                f"spec.predictor.batcher.{name}", value, "a whole number from 1 is needed"
            )
    return Batcher(size=found["maxBatchSize"] or 32, latency=found["maxLatency"] or 5000)


def _rules(given: Mapping[str, str]) -> tuple[Rule, ...]:
    text = given.get(MATCH_ANNOTATION, "")
    if not text.strip():
        return ()
    try:
        # Values are scalars; larger texts could hold a bomb of aliases.
        tree = yaml.safe_load(text) if len(text) <= 4096 and "&" not in text else None
        found = msgspec.convert(tree, list[Rule])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise Problem(_annotation(MATCH_ANNOTATION), text[:40], str(error)) from None
    for one in found:
        if bool(one.header) == bool(one.cookie):
            raise Problem(_annotation(MATCH_ANNOTATION), text[:40], "a header or a cookie each")
    return tuple(found)


def _mirror(given: Mapping[str, str]) -> int:
    text = given.get(MIRROR_ANNOTATION, "0")
    if not text.isdecimal() or int(text) > 100:
        raise Problem(_annotation(MIRROR_ANNOTATION), text, "a whole number from 0 to 100")
    return int(text)
