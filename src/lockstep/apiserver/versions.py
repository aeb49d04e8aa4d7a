"""The versions of one resource: stored in one, served in each."""

from __future__ import annotations

import msgspec

from lockstep.api.wire import Json, encode
from lockstep.apiserver import autoscaling

_decode = msgspec.json.Decoder()

SCALERS, OLD_SCALERS = "autoscaling/v2", "autoscaling/v1"
CORE_EVENTS, NEW_EVENTS = "v1", "events.k8s.io/v1"
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_FIELDS_BACK = {new: old for old, new in _EVENT_FIELDS.items()}


def convert(obj: Json, api_version: str) -> Json:
    """Return *obj* in another version of its kind.

    Events have fields of other names in the two groups that serve them, autoscalers other fields
    in their two versions. CRDs are served
    without conversion, which leaves only the version to be replaced.
    """
    given = obj.get("apiVersion")
    if given == api_version:
        return obj
    if (given, api_version) == (CORE_EVENTS, NEW_EVENTS):
        obj = _without_empty_reporters(_renamed(obj, _EVENT_FIELDS))
    elif (given, api_version) == (NEW_EVENTS, CORE_EVENTS):
        obj = _renamed(obj, _EVENT_FIELDS_BACK)
    elif (given, api_version) == (SCALERS, OLD_SCALERS):
        obj = autoscaling.to_v1(obj)
    elif (given, api_version) == (OLD_SCALERS, SCALERS):
        obj = autoscaling.to_v2(obj)
    return {**obj, "apiVersion": api_version}


def convert_bytes(data: bytes, api_version: str) -> bytes:
    """Return the JSON *data* of an object in another version of its kind."""
    return encode(convert(_decode.decode(data), api_version))


def _without_empty_reporters(event: Json) -> Json:
    empty = [name for name in ("reportingController", "reportingInstance") if not event.get(name)]
    return {name: value for name, value in event.items() if name not in empty}


def _renamed(obj: Json, names: dict[str, str]) -> Json:
    return {names.get(name, name): value for name, value in obj.items()}
