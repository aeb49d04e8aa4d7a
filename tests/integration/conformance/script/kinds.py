"""The other built-in kinds: defaults, validation, status, scale, tables."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.conformance.script.ask import (
    TABLE,
    Ask,
    core,
    delete,
    deployment,
    get,
    merge,
    namespace,
    of,
    post,
    put,
    template,
)

NS: Final = "kinds"
DEPLOYMENTS: Final = of("apps", NS, "deployments")
JOBS: Final = of("batch", NS, "jobs")
SERVICES: Final = core(NS, "services")
SELECT: Final = {"selector": {"matchLabels": {"app": "d"}}, "template": template()}
JOB_TEMPLATE: Final = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
}


def _new(name: str, path: str, spec: Any = None, object_name: str = "x", **more: Any) -> Ask:
    body = {"metadata": {"name": object_name}, **more}
    if spec is not None:
        body["spec"] = spec
    return post(name, path, body)


def _tables(*paths: str) -> tuple[Ask, ...]:
    return tuple(get(f"table of {path.rpartition('/')[2]}", path, headers=TABLE) for path in paths)


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("deployment", DEPLOYMENTS, deployment("d")),
    get("scale", f"{DEPLOYMENTS}/d/scale"),
    merge("scale up", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}),
    merge("scale below nothing", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}),
    put(
        "scale replaced",
        f"{DEPLOYMENTS}/d/scale",
        {"metadata": {"name": "d"}, "spec": {"replicas": 3}},
    ),
    put(
        "scale replaced, stale",
        f"{DEPLOYMENTS}/d/scale",
        {"metadata": {"name": "d", "resourceVersion": "1"}, "spec": {"replicas": 4}},
    ),
    put(
        "scale of another name",
        f"{DEPLOYMENTS}/d/scale",
        {"metadata": {"name": "e"}, "spec": {"replicas": 4}},
    ),
    get("scale of nobody", f"{DEPLOYMENTS}/none/scale"),
    merge(
        "deployment, another selector",
        f"{DEPLOYMENTS}/d",
        {"spec": {"selector": {"matchLabels": {"app": "e"}}}},
    ),
    merge(
        "deployment, status",
        f"{DEPLOYMENTS}/d/status",
        {"status": {"replicas": 2, "observedGeneration": 1}},
    ),
    merge("deployment, negative status", f"{DEPLOYMENTS}/d/status", {"status": {"replicas": -2}}),
    merge("deployment, labels only", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}}),
    merge("deployment, paused", f"{DEPLOYMENTS}/d", {"spec": {"paused": True}}),
    _new("deployment without a template", DEPLOYMENTS, {"selector": {"matchLabels": {"a": "b"}}}),
    _new("deployment without a selector", DEPLOYMENTS, {"template": template()}),
    _new(
        "deployment of another selector",
        DEPLOYMENTS,
        {"selector": {"matchLabels": {"a": "b"}}, "template": template()},
    ),
    _new("deployment of negative size", DEPLOYMENTS, {**SELECT, "replicas": -1}),
    _new("deployment, a bad strategy", DEPLOYMENTS, {**SELECT, "strategy": {"type": "Slow"}}),
    _new(
        "deployment, no room to roll",
        DEPLOYMENTS,
        {**SELECT, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
    ),
    _new(
        "deployment, a bad restart policy",
        DEPLOYMENTS,
        {**SELECT, "template": template(restartPolicy="Never")},
    ),
    _new("deployment, a wrong type", DEPLOYMENTS, {**SELECT, "replicas": "two"}),
    _new("replica set", of("apps", NS, "replicasets"), SELECT, "rs"),
    _new(
        "stateful set",
        of("apps", NS, "statefulsets"),
        {
            **SELECT,
            "serviceName": "s",
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "v"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
        "sts",
    ),
    merge(
        "stateful set, another service",
        f"{of('apps', NS, 'statefulsets')}/sts",
        {"spec": {"serviceName": "t"}},
    ),
    get("scale of a stateful set", f"{of('apps', NS, 'statefulsets')}/sts/scale"),
    _new("daemon set", of("apps", NS, "daemonsets"), SELECT, "ds"),
    _new(
        "controller revision",
        of("apps", NS, "controllerrevisions"),
        None,
        "cr",
        revision=1,
        data={"a": 1},
    ),
    _new("job", JOBS, {"template": JOB_TEMPLATE}, "j"),
    _new(
        "indexed job",
        JOBS,
        {
            "template": JOB_TEMPLATE,
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 2,
            "backoffLimitPerIndex": 1,
        },
        "ij",
    ),
    _new(
        "indexed job without a count", JOBS, {"template": JOB_TEMPLATE, "completionMode": "Indexed"}
    ),
    _new("job that always restarts", JOBS, {"template": template()}),
    _new(
        "job with a selector",
        JOBS,
        {"template": JOB_TEMPLATE, "selector": {"matchLabels": {"a": "b"}}},
    ),
    _new("job with a negative count", JOBS, {"template": JOB_TEMPLATE, "parallelism": -1}),
    merge("job, another count", f"{JOBS}/j", {"spec": {"completions": 5}}),
    merge("job, more at once", f"{JOBS}/j", {"spec": {"parallelism": 5}}),
    merge(
        "job, another template",
        f"{JOBS}/j",
        {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "y"}]}}}},
    ),
    merge("job, suspended", f"{JOBS}/j", {"spec": {"suspend": True}}),
    merge(
        "job, status",
        f"{JOBS}/j/status",
        {"status": {"active": 1, "startTime": "2020-01-01T00:00:00Z"}},
    ),
    delete("job gone", f"{JOBS}/j"),
    _new(
        "cron job",
        of("batch", NS, "cronjobs"),
        {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}},
        "cj",
    ),
    _new(
        "cron job, a bad schedule",
        of("batch", NS, "cronjobs"),
        {"schedule": "often", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}},
    ),
    _new(
        "headless service",
        SERVICES,
        {
            "clusterIP": "None",
            "selector": {"a": "b"},
            "ports": [{"port": 80, "targetPort": "http"}],
        },
        "headless",
    ),
    _new(
        "named service", SERVICES, {"type": "ExternalName", "externalName": "example.com"}, "named"
    ),
    _new("service without ports", SERVICES, {"type": "NodePort"}),
    _new("service of an odd type", SERVICES, {"type": "Odd", "ports": [{"port": 80}]}),
    _new("service of a bad port", SERVICES, {"clusterIP": "None", "ports": [{"port": 0}]}),
    _new(
        "service of nameless ports",
        SERVICES,
        {"clusterIP": "None", "ports": [{"port": 1}, {"port": 2}]},
    ),
    _new("service of a bad name", SERVICES, {"clusterIP": "None", "ports": [{"port": 1}]}, "1x"),
    _new("service account", core(NS, "serviceaccounts"), None, "sa"),
    _new(
        "endpoints",
        core(NS, "endpoints"),
        None,
        "ep",
        subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}],
    ),
    _new(
        "endpoint slice",
        of("discovery.k8s.io", NS, "endpointslices"),
        None,
        "es",
        addressType="IPv4",
        endpoints=[{"addresses": ["1.2.3.4"]}],
        ports=[{"port": 80}],
    ),
    _new(
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
    _new(
        "claim of nothing", core(NS, "persistentvolumeclaims"), {"accessModes": ["ReadWriteOnce"]}
    ),
    _new(
        "volume",
        "/api/v1/persistentvolumes",
        {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        },
        "pv",
    ),
    _new(
        "volume of no source",
        "/api/v1/persistentvolumes",
        {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
        "pv2",
    ),
    _new("quota", core(NS, "resourcequotas"), {"hard": {"pods": "1000"}}, "rq"),
    _new(
        "limit range",
        core(NS, "limitranges"),
        {"limits": [{"type": "Container", "max": {"cpu": "8"}}]},
        "lr",
    ),
    _new(
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
    _new(
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
    _new("event, incomplete", of("events.k8s.io", NS, "events"), None, "ev3", type="Normal"),
    _new(
        "event elsewhere",
        core(NS, "events"),
        None,
        "ev4",
        involvedObject={"kind": "Pod", "namespace": "other", "name": "p"},
    ),
    _new(
        "network policy",
        of("networking.k8s.io", NS, "networkpolicies"),
        {"podSelector": {}, "egress": [{}]},
        "np",
    ),
    _new(
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
    _new("ingress of nothing", of("networking.k8s.io", NS, "ingresses"), {}),
    _new(
        "autoscaler",
        of("autoscaling", NS, "horizontalpodautoscalers", "v2"),
        {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        },
        "hpa",
    ),
    _new(
        "budget of both",
        of("policy", NS, "poddisruptionbudgets"),
        {"minAvailable": 1, "maxUnavailable": 1},
    ),
    _new("node", "/api/v1/nodes", {}, "n1", status={"capacity": {"cpu": "4", "memory": "8Gi"}}),
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
    _new(
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
    _new(
        "priority class too high",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        None,
        "pc2",
        value=2000000000,
    ),
    delete("priority class gone", "/apis/scheduling.k8s.io/v1/priorityclasses/pc"),
    _new("storage class", "/apis/storage.k8s.io/v1/storageclasses", None, "sc", provisioner="p"),
    _new("runtime class", "/apis/node.k8s.io/v1/runtimeclasses", None, "rc", handler="h"),
    _new(
        "device class",
        "/apis/resource.k8s.io/v1/deviceclasses",
        {"selectors": [{"cel": {"expression": "true"}}]},
        "dc",
    ),
    _new(
        "resource claim",
        of("resource.k8s.io", NS, "resourceclaims"),
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "dc"}}]}},
        "rcl",
    ),
    _new(
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
