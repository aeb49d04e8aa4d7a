"""The tables of nodes, namespaces, events and of what a cluster is governed by."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Column,
    Layout,
    age,
    at,
    condition,
    human_duration,
    name_of,
    since,
    wide,
)

Json = dict[str, Any]

_ROLE = "node-role.kubernetes.io/"


def _node(obj: Json, now: float) -> Cells:
    info = at(obj, "status.nodeInfo", {})
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        name_of(obj),
        _node_status(obj),
        _roles(obj),
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


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


def _address(obj: Json, type_: str) -> str:
    addresses = at(obj, "status.addresses", [])
    return next((str(a.get("address")) for a in addresses if a.get("type") == type_), NONE)


def _namespace(obj: Json, now: float) -> Cells:
    return [name_of(obj), at(obj, "status.phase", ""), age(obj, now)]


def _event(obj: Json, now: float) -> Cells:
    # Events of the newer group name the same things differently.
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    if series := obj.get("series"):
        last, count = series.get("lastObservedTime"), series.get("count", count)
    kind, name = (target.get("kind") or "").lower(), target.get("name")
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        _event_source(obj),
        (obj.get("message") or obj.get("note") or "").strip(),
        since(first, now),
        count,
        name_of(obj),
    ]


def _event_source(obj: Json) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent")
    component = component or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


def _lease(obj: Json, now: float) -> Cells:
    return [name_of(obj), at(obj, "spec.holderIdentity", ""), age(obj, now)]


def _priority_class(obj: Json, now: float) -> Cells:
    return [
        name_of(obj),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: Json, now: float) -> Cells:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


def _signing_request(obj: Json, now: float) -> Cells:
    expires = at(obj, "spec.expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        at(obj, "spec.signerName", NONE),
        at(obj, "spec.username", ""),
        NONE if expires is None else human_duration(expires),
        _signing_state(obj),
    ]


def _signing_state(obj: Json) -> str:
    state = "Pending"
    if condition(obj, "Denied"):
        state = "Denied"
    elif condition(obj, "Approved"):
        state = "Approved"
    if condition(obj, "Failed"):
        state += ",Failed"
    return f"{state},Issued" if at(obj, "status.certificate") else state


def _service_of_api(obj: Json, now: float) -> Cells:
    service, available = at(obj, "spec.service"), condition(obj, "Available")
    shown = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    state = "Unknown" if available is None else str(available.get("status"))
    if available is not None and state != "True" and available.get("reason"):
        state = f"{state} ({available['reason']})"
    return [name_of(obj), shown, state, age(obj, now)]


def _webhooks(obj: Json, now: float) -> Cells:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _policy(obj: Json, now: float) -> Cells:
    rules = at(obj, "spec.validations") or at(obj, "spec.mutations") or ()
    kind = at(obj, "spec.paramKind")
    shown = f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else UNSET
    return [name_of(obj), len(rules), shown, age(obj, now)]


def _policy_binding(obj: Json, now: float) -> Cells:
    param, shown = at(obj, "spec.paramRef"), UNSET
    if param and param.get("name"):
        shown = f"{param.get('namespace') or '*'}/{param['name']}"
    return [name_of(obj), at(obj, "spec.policyName", ""), shown, age(obj, now)]


def _of_webhooks() -> Layout:
    about = "Webhooks indicates the number of webhooks registered in this configuration"
    return Layout((NAME, Column("Webhooks", about, "integer"), AGE), _webhooks)


def _of_policies(name: str, about: str) -> Layout:
    kind = "ParamKind specifies the kind of resources used to parameterize this policy"
    return Layout((NAME, Column(name, about, "integer"), Column("ParamKind", kind), AGE), _policy)


def _of_bindings() -> Layout:
    policy = "PolicyName indicates the policy definition which the policy binding binded to"
    param = "ParamRef indicates the param resource which sets the configuration param"
    columns = (NAME, Column("PolicyName", policy), Column("ParamRef", param), AGE)
    return Layout(columns, _policy_binding)


_INFO, _STATUS, _EVENT = "core.v1.NodeSystemInfo", "core.v1.NodeStatus", "core.v1.Event"
_CSR = "certificates.v1.CertificateSigningRequest"
_PRIORITY = "scheduling.v1.PriorityClass"
_EVENTS = Layout(
    (
        Column("Last Seen", f"{_EVENT}#lastTimestamp"),
        Column("Type", f"{_EVENT}#type"),
        Column("Reason", f"{_EVENT}#reason"),
        Column("Object", f"{_EVENT}#involvedObject"),
        wide("Subobject", "core.v1.ObjectReference#fieldPath"),
        wide("Source", f"{_EVENT}#source"),
        Column("Message", f"{_EVENT}#message"),
        wide("First Seen", f"{_EVENT}#firstTimestamp"),
        wide("Count", f"{_EVENT}#count"),
        Column("Name", NAME.about, format="name", priority=1),
    ),
    _event,
)

LAYOUTS = {
    "nodes": Layout(
        (
            NAME,
            Column("Status", "The status of the node"),
            Column("Roles", "The roles of the node"),
            AGE,
            Column("Version", f"{_INFO}#kubeletVersion"),
            wide("Internal-IP", f"{_STATUS}#addresses"),
            wide("External-IP", f"{_STATUS}#addresses"),
            wide("OS-Image", f"{_INFO}#osImage"),
            wide("Kernel-Version", f"{_INFO}#kernelVersion"),
            wide("Container-Runtime", f"{_INFO}#containerRuntimeVersion"),
        ),
        _node,
    ),
    "namespaces": Layout((NAME, Column("Status", "The status of the namespace"), AGE), _namespace),
    "events": _EVENTS,
    "events.events.k8s.io": _EVENTS,
    "leases.coordination.k8s.io": Layout(
        (NAME, Column("Holder", "coordination.v1.LeaseSpec#holderIdentity"), AGE), _lease
    ),
    "priorityclasses.scheduling.k8s.io": Layout(
        (
            NAME,
            Column("Value", f"{_PRIORITY}#value", "integer"),
            Column("Global-Default", f"{_PRIORITY}#globalDefault", "boolean"),
            AGE,
            Column("PreemptionPolicy", f"{_PRIORITY}#preemptionPolicy"),
        ),
        _priority_class,
    ),
    "runtimeclasses.node.k8s.io": Layout(
        (NAME, Column("Handler", "node.v1.RuntimeClass#handler"), AGE), _runtime_class
    ),
    "certificatesigningrequests.certificates.k8s.io": Layout(
        (
            NAME,
            AGE,
            Column("SignerName", f"{_CSR}Spec#signerName"),
            Column("Requestor", f"{_CSR}Spec#request"),
            Column("RequestedDuration", f"{_CSR}Spec#expirationSeconds"),
            Column("Condition", f"{_CSR}Status#conditions"),
        ),
        _signing_request,
    ),
    "apiservices.apiregistration.k8s.io": Layout(
        (
            NAME,
            Column("Service", "The reference to the service that hosts this API endpoint."),
            Column("Available", "Whether this service is available."),
            AGE,
        ),
        _service_of_api,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _of_webhooks(),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _of_webhooks(),
    "validatingadmissionpolicies.admissionregistration.k8s.io": _of_policies(
        "Validations",
        "Validations indicates the number of validation rules defined in this configuration",
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _of_policies(
        "Mutations",
        "Mutation indicates the number of mutations rules defined in this configuration",
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _of_bindings(),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _of_bindings(),
}
