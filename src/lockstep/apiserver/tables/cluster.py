"""The tables of nodes, namespaces, events and of what a cluster is governed by."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    Column,
    at,
    condition,
    human_duration,
    since,
    wide,
)

_ROLE = "node-role.kubernetes.io/"


def _node_status(obj: Json) -> str:
    ready = condition(obj, "Ready")
    shown = "Unknown" if ready is None else "Ready"
    if ready is not None and ready.get("status") != "True":
        shown = "NotReady"
    return f"{shown},SchedulingDisabled" if at(obj, "spec.unschedulable") else shown


def _roles(obj: Json) -> str:
    roles = set()
    for label, value in at(obj, "metadata.labels", {}).items():
        if label.startswith(_ROLE):
            roles.add(label.removeprefix(_ROLE))
        elif label == "kubernetes.io/role":
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _address(type_: str) -> Cell:
    def cell(obj: Json) -> str:
        addresses = at(obj, "status.addresses", [])
        return next((str(a.get("address")) for a in addresses if a.get("type") == type_), NONE)

    return cell


def _kernel(obj: Json) -> str:
    info = at(obj, "status.nodeInfo", {})
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


def _reported(field: str) -> Cell:
    return lambda obj: at(obj, f"status.nodeInfo.{field}") or UNKNOWN


# Events of the newer group name the same things differently.


def _first_seen(obj: Json) -> Any:
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp")
    return first or obj.get("eventTime")


def _last_seen(obj: Json) -> Any:
    if series := obj.get("series"):
        return series.get("lastObservedTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    return last or _first_seen(obj)


def _count(obj: Json) -> Any:
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    return (obj.get("series") or {}).get("count", count)


def _target(obj: Json) -> Json:
    return obj.get("involvedObject") or obj.get("regarding") or {}


def _target_name(obj: Json) -> str:
    kind, name = (_target(obj).get("kind") or "").lower(), _target(obj).get("name")
    return f"{kind}/{name}" if name else kind


def _event_source(obj: Json) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent")
    component = component or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _requested_duration(obj: Json) -> str:
    expires = at(obj, "spec.expirationSeconds")
    return NONE if expires is None else human_duration(expires)


def _signing_state(obj: Json) -> str:
    state = "Pending"
    if condition(obj, "Denied"):
        state = "Denied"
    elif condition(obj, "Approved"):
        state = "Approved"
    if condition(obj, "Failed"):
        state += ",Failed"
    return f"{state},Issued" if at(obj, "status.certificate") else state


def _service_of_api(obj: Json) -> str:
    service = at(obj, "spec.service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _is_available(obj: Json) -> str:
    available = condition(obj, "Available")
    state = "Unknown" if available is None else str(available.get("status"))
    if available is not None and state != "True" and available.get("reason"):
        state = f"{state} ({available['reason']})"
    return state


def _rules(obj: Json) -> int:
    return len(at(obj, "spec.validations") or at(obj, "spec.mutations") or ())


def _param_kind(obj: Json) -> str:
    kind = at(obj, "spec.paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else UNSET


def _param_ref(obj: Json) -> str:
    param = at(obj, "spec.paramRef")
    if not param or not param.get("name"):
        return UNSET
    return f"{param.get('namespace') or '*'}/{param['name']}"


def _of_policies(name: str, about: str) -> tuple[Column, ...]:
    kind = "ParamKind specifies the kind of resources used to parameterize this policy"
    return (
        NAME,
        Column(name, about, _rules, "integer"),
        Column("ParamKind", kind, _param_kind),
        AGE,
    )


_INFO, _STATUS, _EVENT = "core.v1.NodeSystemInfo", "core.v1.NodeStatus", "core.v1.Event"
_CSR = "certificates.v1.CertificateSigningRequest"
_PRIORITY = "scheduling.v1.PriorityClass"
_EVENTS = (
    Column(
        "Last Seen", f"{_EVENT}#lastTimestamp", timed=lambda obj, now: since(_last_seen(obj), now)
    ),
    Column("Type", f"{_EVENT}#type"),
    Column("Reason", f"{_EVENT}#reason"),
    Column("Object", f"{_EVENT}#involvedObject", _target_name),
    wide(
        "Subobject",
        "core.v1.ObjectReference#fieldPath",
        lambda obj: _target(obj).get("fieldPath", ""),
    ),
    wide("Source", f"{_EVENT}#source", _event_source),
    Column(
        "Message",
        f"{_EVENT}#message",
        lambda obj: (obj.get("message") or obj.get("note") or "").strip(),
    ),
    wide(
        "First Seen",
        f"{_EVENT}#firstTimestamp",
        timed=lambda obj, now: since(_first_seen(obj), now),
    ),
    wide("Count", f"{_EVENT}#count", _count),
    Column("Name", NAME.about, NAME.cell, format="name", priority=1),
)
_WEBHOOKS = (
    NAME,
    Column(
        "Webhooks",
        "Webhooks indicates the number of webhooks registered in this configuration",
        lambda obj: len(obj.get("webhooks") or ()),
        "integer",
    ),
    AGE,
)
_BINDINGS = (
    NAME,
    Column(
        "PolicyName",
        "PolicyName indicates the policy definition which the policy binding binded to",
        "spec.policyName",
    ),
    Column(
        "ParamRef",
        "ParamRef indicates the param resource which sets the configuration param",
        _param_ref,
    ),
    AGE,
)

COLUMNS = {
    "nodes": (
        NAME,
        Column("Status", "The status of the node", _node_status),
        Column("Roles", "The roles of the node", _roles),
        AGE,
        Column("Version", f"{_INFO}#kubeletVersion", "status.nodeInfo.kubeletVersion"),
        wide("Internal-IP", f"{_STATUS}#addresses", _address("InternalIP")),
        wide("External-IP", f"{_STATUS}#addresses", _address("ExternalIP")),
        wide("OS-Image", f"{_INFO}#osImage", _reported("osImage")),
        wide("Kernel-Version", f"{_INFO}#kernelVersion", _kernel),
        wide(
            "Container-Runtime",
            f"{_INFO}#containerRuntimeVersion",
            _reported("containerRuntimeVersion"),
        ),
    ),
    "namespaces": (NAME, Column("Status", "The status of the namespace", "status.phase"), AGE),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "leases.coordination.k8s.io": (
        NAME,
        Column("Holder", "coordination.v1.LeaseSpec#holderIdentity"),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        Column("Value", f"{_PRIORITY}#value", type="integer"),
        Column("Global-Default", f"{_PRIORITY}#globalDefault", type="boolean"),
        AGE,
        Column("PreemptionPolicy", f"{_PRIORITY}#preemptionPolicy"),
    ),
    "runtimeclasses.node.k8s.io": (NAME, Column("Handler", "node.v1.RuntimeClass#handler"), AGE),
    "certificatesigningrequests.certificates.k8s.io": (
        NAME,
        AGE,
        Column("SignerName", f"{_CSR}Spec#signerName", unset=NONE),
        Column("Requestor", f"{_CSR}Spec#request", "spec.username"),
        Column("RequestedDuration", f"{_CSR}Spec#expirationSeconds", _requested_duration),
        Column("Condition", f"{_CSR}Status#conditions", _signing_state),
    ),
    "apiservices.apiregistration.k8s.io": (
        NAME,
        Column(
            "Service",
            "The reference to the service that hosts this API endpoint.",
            _service_of_api,
        ),
        Column("Available", "Whether this service is available.", _is_available),
        AGE,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _of_policies(
        "Validations",
        "Validations indicates the number of validation rules defined in this configuration",
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _of_policies(
        "Mutations",
        "Mutation indicates the number of mutations rules defined in this configuration",
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDINGS,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDINGS,
}
