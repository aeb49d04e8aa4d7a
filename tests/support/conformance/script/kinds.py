"""The other built-in kinds: defaults, validation, status; tables of them and of the workloads."""

from __future__ import annotations

from typing import Final

from tests.support.conformance.script.ask import TABLE, Ask, core, delete, get, merge, new, of
from tests.support.conformance.script.workloads import DEPLOYMENTS, JOBS, NS

SERVICES: Final = core(NS, "services")


def _tables(*paths: str) -> tuple[Ask, ...]:
    return tuple(get(f"table of {path.rpartition('/')[2]}", path, headers=TABLE) for path in paths)


SCRIPT: Final[tuple[Ask, ...]] = (
    new(
        "headless service",
        SERVICES,
        {
            "clusterIP": "None",
            "selector": {"a": "b"},
            "ports": [{"port": 80, "targetPort": "http"}],
        },
        "headless",
    ),
    new(
        "named service", SERVICES, {"type": "ExternalName", "externalName": "example.com"}, "named"
    ),
    new("service without ports", SERVICES, {"type": "NodePort"}),
    new("service of an odd type", SERVICES, {"type": "Odd", "ports": [{"port": 80}]}),
    new("service of a bad port", SERVICES, {"clusterIP": "None", "ports": [{"port": 0}]}),
    new(
        "service of nameless ports",
        SERVICES,
        {"clusterIP": "None", "ports": [{"port": 1}, {"port": 2}]},
    ),
    new("service of a bad name", SERVICES, {"clusterIP": "None", "ports": [{"port": 1}]}, "1x"),
    new("service account", core(NS, "serviceaccounts"), None, "sa"),
    new(
        "endpoints",
        core(NS, "endpoints"),
        None,
        "ep",
        subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}],
    ),
    new(
        "endpoint slice",
        of("discovery.k8s.io", NS, "endpointslices"),
        None,
        "es",
        addressType="IPv4",
        endpoints=[{"addresses": ["1.2.3.4"]}],
        ports=[{"port": 80}],
    ),
    new(
        "claim",
        core(NS, "persistentvolumeclaims"),
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "pvc",
    ),
    merge(
        "claim, another mode",
        f"{core(NS, 'persistentvolumeclaims')}/pvc",
        {"spec": {"accessModes": ["ReadWriteMany"]}},
    ),
    new("claim of nothing", core(NS, "persistentvolumeclaims"), {"accessModes": ["ReadWriteOnce"]}),
    new(
        "volume",
        "/api/v1/persistentvolumes",
        {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        },
        "pv",
    ),
    new(
        "volume of no source",
        "/api/v1/persistentvolumes",
        {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
        "pv2",
    ),
    new("quota", core(NS, "resourcequotas"), {"hard": {"pods": "1000"}}, "rq"),
    new(
        "limit range",
        core(NS, "limitranges"),
        {"limits": [{"type": "Container", "max": {"cpu": "8"}}]},
        "lr",
    ),
    new(
        "event",
        core(NS, "events"),
        None,
        "ev",
        involvedObject={"kind": "Pod", "namespace": NS, "name": "p"},
        reason="Made",
        message="made",
        type="Normal",
        count=1,
        firstTimestamp="2020-01-01T00:00:00Z",
        lastTimestamp="2020-01-01T00:00:00Z",
        source={"component": "test"},
    ),
    get("event in the other group", f"{of('events.k8s.io', NS, 'events')}/ev"),
    get(
        "events of a pod",
        f"{core(NS, 'events')}?fieldSelector=involvedObject.name%3Dp,type%3DNormal",
    ),
    new(
        "event of the other group",
        of("events.k8s.io", NS, "events"),
        None,
        "ev2",
        regarding={"kind": "Pod", "namespace": NS, "name": "p"},
        reason="Made",
        note="made",
        type="Normal",
        action="Make",
        reportingController="a.b/c",
        reportingInstance="i",
        eventTime="2020-01-01T00:00:00.000000Z",
    ),
    new("event, incomplete", of("events.k8s.io", NS, "events"), None, "ev3", type="Normal"),
    new(
        "event elsewhere",
        core(NS, "events"),
        None,
        "ev4",
        involvedObject={"kind": "Pod", "namespace": "other", "name": "p"},
    ),
    new(
        "network policy",
        of("networking.k8s.io", NS, "networkpolicies"),
        {"podSelector": {}, "egress": [{}]},
        "np",
    ),
    new(
        "ingress",
        of("networking.k8s.io", NS, "ingresses"),
        {
            "rules": [
                {
                    "host": "a.example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        },
        "in",
    ),
    new("ingress of nothing", of("networking.k8s.io", NS, "ingresses"), {}),
    new(
        "autoscaler",
        of("autoscaling", NS, "horizontalpodautoscalers", "v2"),
        {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
        "hpa",
    ),
    new(
        "budget of both",
        of("policy", NS, "poddisruptionbudgets"),
        {"minAvailable": 1, "maxUnavailable": 1},
    ),
    new("node", "/api/v1/nodes", {}, "n1", status={"capacity": {"cpu": "4", "memory": "8Gi"}}),
    merge("node, unschedulable", "/api/v1/nodes/n1", {"spec": {"unschedulable": True}}),
    merge(
        "node, status",
        "/api/v1/nodes/n1/status",
        {
            "status": {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "R",
                        "message": "m",
                        "lastHeartbeatTime": "2020-01-01T00:00:00Z",
                        "lastTransitionTime": "2020-01-01T00:00:00Z",
                    }
                ]
            }
        },
    ),
    merge(
        "node, a bad taint",
        "/api/v1/nodes/n1",
        {"spec": {"taints": [{"key": "a", "effect": "Odd"}]}},
    ),
    get("nodes that are open", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse"),
    get("table of the node", "/api/v1/nodes/n1", headers=TABLE),
    delete("node gone", "/api/v1/nodes/n1"),
    new(
        "priority class",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        None,
        "pc",
        value=10,
        description="d",
    ),
    merge(
        "priority class, another value",
        "/apis/scheduling.k8s.io/v1/priorityclasses/pc",
        {"value": 11},
    ),
    new(
        "priority class too high",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        None,
        "pc2",
        value=2000000000,
    ),
    delete("priority class gone", "/apis/scheduling.k8s.io/v1/priorityclasses/pc"),
    new("storage class", "/apis/storage.k8s.io/v1/storageclasses", None, "sc", provisioner="p"),
    new("runtime class", "/apis/node.k8s.io/v1/runtimeclasses", None, "rc", handler="h"),
    new(
        "device class",
        "/apis/resource.k8s.io/v1/deviceclasses",
        {"selectors": [{"cel": {"expression": "true"}}]},
        "dc",
    ),
    new(
        "resource claim",
        of("resource.k8s.io", NS, "resourceclaims"),
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dc"}}]}},
        "rcl",
    ),
    new(
        "signing request",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {"request": "eA==", "signerName": "a.b/c", "usages": ["client auth"]},
        "csr",
    ),
    *_tables(
        DEPLOYMENTS,
        of("apps", NS, "replicasets"),
        of("apps", NS, "statefulsets"),
        of("apps", NS, "daemonsets"),
        JOBS,
        of("batch", NS, "cronjobs"),
        SERVICES,
        core(NS, "serviceaccounts"),
        core(NS, "endpoints"),
        of("discovery.k8s.io", NS, "endpointslices"),
        core(NS, "persistentvolumeclaims"),
        core(NS, "resourcequotas"),
        core(NS, "limitranges"),
        core(NS, "events"),
        of("networking.k8s.io", NS, "ingresses"),
        of("networking.k8s.io", NS, "networkpolicies"),
        of("autoscaling", NS, "horizontalpodautoscalers", "v2"),
        "/apis/storage.k8s.io/v1/storageclasses",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/api/v1/persistentvolumes",
    ),
    delete("storage class gone", "/apis/storage.k8s.io/v1/storageclasses/sc"),
    delete("runtime class gone", "/apis/node.k8s.io/v1/runtimeclasses/rc"),
    delete("device class gone", "/apis/resource.k8s.io/v1/deviceclasses/dc"),
)
