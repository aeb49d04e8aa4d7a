"""Pods: validation, status, binding, eviction and the other subresources."""

from __future__ import annotations

from typing import Any, Final

from tests.support.conformance.script.ask import (
    JSON_PATCH,
    TABLE,
    Ask,
    core,
    delete,
    get,
    is_counted,
    json_patch,
    merge,
    namespace,
    of,
    pod,
    post,
    put,
    strategic,
)

NS: Final = "pods"
PODS: Final = core(NS, "pods")
P: Final = f"{PODS}/p"
BUDGETS: Final = of("policy", NS, "poddisruptionbudgets")
QUIET: Final = {"automountServiceAccountToken": False}


def _pod(name: str, **spec: Any) -> Ask:
    return post(f"pod: {name}", PODS, pod("bad", **QUIET, **spec))


def _container(why: str, **fields: Any) -> Ask:
    return _pod(why, containers=[{"name": "c", "image": "i", **fields}])


def _good(name: str, **spec: Any) -> Ask:
    return post(f"pod: {name}", PODS, pod(name.replace(" ", "-"), **QUIET, **spec))


def _bind(name: str, pod_name: str, **body: Any) -> Ask:
    target = {"apiVersion": "v1", "kind": "Node", "name": "n"}
    binding = {"metadata": {"name": pod_name}, "target": target, **body}
    return post(f"bind: {name}", f"{PODS}/{pod_name}/binding", binding)


RESOURCES: Final = {
    "requests": {"cpu": "0.5", "memory": "1024Mi", "nvidia.com/gpu": "1"},
    "limits": {"cpu": "1000m", "memory": "1Gi", "nvidia.com/gpu": 1},
}
SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post(
        "node of the pods",
        "/api/v1/nodes",
        {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "8", "memory": "16Gi"}}},
    ),
    post("pod", PODS, pod("p", {"labels": {"app": "p"}}, **QUIET)),
    post("pod with a token", PODS, pod("tokened")),
    _good(
        "much said",
        hostNetwork=False,
        nodeSelector={"disk": "ssd"},
        priorityClassName="system-node-critical",
        restartPolicy="OnFailure",
        terminationGracePeriodSeconds=5,
        securityContext={"runAsUser": 1000, "fsGroup": 2000},
        tolerations=[
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        ],
        containers=[
            {
                "name": "c",
                "image": "repo/image:v1",
                "command": ["sh", "-c"],
                "args": ["true"],
                "env": [
                    {"name": "A", "value": ""},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                "ports": [{"containerPort": 80, "name": "http"}],
                "resources": RESOURCES,
                "livenessProbe": {"httpGet": {"port": "http"}},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
                "volumeMounts": [
                    {"name": "v", "mountPath": "/v"},
                    {"name": "m", "mountPath": "/m"},
                ],
            }
        ],
        initContainers=[{"name": "i", "image": "init@sha256:" + "0" * 64}],
        volumes=[{"name": "v"}, {"name": "m", "configMap": {"name": "m"}}],
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
                ]
            }
        },
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    ),
    _good(
        "guaranteed",
        containers=[
            {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
        ],
    ),
    _good("gated", schedulingGates=[{"name": "a.b/gate"}]),
    _good("placed", nodeName="n"),
    _good("of another scheduler", schedulerName="lockstep", overhead=None),
    _pod("without containers", containers=[]),
    _pod("a bad restart policy", restartPolicy="Often"),
    _pod("a bad DNS policy", dnsPolicy="Mine"),
    _pod("a negative grace", terminationGracePeriodSeconds=-5),
    _pod("a negative deadline", activeDeadlineSeconds=-1),
    _pod("no such priority class", priorityClassName="none"),
    _pod("a priority of its own", priority=5),
    _pod("no such service account", serviceAccountName="nobody"),
    _pod("a bad node name", nodeName="Not A Node"),
    _pod("a bad node selector", nodeSelector={"a b": "c"}),
    _pod("a bad host name", hostname="A_b"),
    _pod("a bad toleration", tolerations=[{"operator": "Sometimes"}]),
    _pod("a toleration of nothing", tolerations=[{"value": "v"}]),
    _pod("two containers of a name", containers=[{"name": "c", "image": "i"}] * 2),
    _pod("a container without an image", containers=[{"name": "c"}]),
    _pod("a container without a name", containers=[{"image": "i"}]),
    _pod(
        "an unknown volume",
        containers=[
            {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        ],
    ),
    _pod(
        "a volume of two sources",
        volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}],
    ),
    _pod(
        "a bad affinity",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]
                }
            }
        },
    ),
    _pod(
        "a bad spread",
        topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Maybe"}],
    ),
    _pod("a bad gate", schedulingGates=[{"name": "not valid!"}]),
    _container("a bad name of a container", name="Big"),
    _container("a bad quantity", resources={"limits": {"cpu": "much"}}),
    _container("a negative quantity", resources={"requests": {"cpu": "-1"}}),
    _container("a fraction of a GPU", resources={"limits": {"nvidia.com/gpu": "0.5"}}),
    _container("a GPU without a limit", resources={"requests": {"nvidia.com/gpu": "1"}}),
    _container(
        "more asked than allowed", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    ),
    _container("an unknown resource", resources={"requests": {"gold": "1"}}),
    _container("a bad port", ports=[{"containerPort": 99999}]),
    _container(
        "two ports of a name",
        ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
    ),
    _container("a bad variable", env=[{"name": "a=b"}]),
    _container(
        "a variable of two values",
        env=[
            {"name": "a", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
        ],
    ),
    _container(
        "a bad field reference",
        env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}],
    ),
    _container("a bad pull policy", imagePullPolicy="Rarely"),
    _container("a probe of nothing", livenessProbe={}),
    _container(
        "a probe of two ways", livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}
    ),
    _container(
        "a privileged child",
        securityContext={"privileged": True, "allowPrivilegeEscalation": False},
    ),
    _container("a wrong type of a port", ports=[{"containerPort": "http"}]),
    merge("pod: change of a fixed field", P, {"spec": {"restartPolicy": "Never"}}),
    merge("pod: change of the node", P, {"spec": {"nodeName": "n"}}),
    strategic(
        "pod: another image", P, {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    ),
    strategic(
        "pod: another command", P, {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}
    ),
    merge(
        "pod: a toleration more",
        P,
        {"spec": {"tolerations": [{"key": "more", "operator": "Exists"}]}},
    ),
    merge("pod: a deadline", P, {"spec": {"activeDeadlineSeconds": 60}}),
    merge("pod: labels", P, {"metadata": {"labels": {"b": "c"}}}),
    json_patch(
        "pod: a gate away", f"{PODS}/gated", [{"op": "remove", "path": "/spec/schedulingGates"}]
    ),
    merge(
        "pod: a gate back", f"{PODS}/gated", {"spec": {"schedulingGates": [{"name": "a.b/gate"}]}}
    ),
    merge(
        "pod: status",
        f"{P}/status",
        {"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}},
    ),
    merge(
        "pod: status and spec",
        f"{P}/status",
        {"spec": {"nodeName": "x"}, "status": {"message": "m"}, "metadata": {"labels": {"s": "1"}}},
    ),
    merge("pod: status past its path", P, {"status": {"phase": "Failed"}}),
    merge("pod: a bad phase", f"{P}/status", {"status": {"phase": "Odd"}}),
    merge("pod: a bad address", f"{P}/status", {"status": {"podIPs": [{"ip": "nowhere"}]}}),
    strategic(
        "pod: a condition",
        f"{P}/status",
        {
            "status": {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "False",
                        "lastTransitionTime": "2020-01-01T00:00:00Z",
                    }
                ]
            }
        },
    ),
    strategic(
        "pod: another condition",
        f"{P}/status",
        {"status": {"conditions": [{"type": "Initialized", "status": "True"}]}},
    ),
    get("pod: its status", f"{P}/status"),
    put("pod: its status replaced", f"{P}/status", {**pod("p"), "status": {"phase": "Pending"}}),
    _bind("a pod", "p"),
    _bind("again", "p"),
    _bind("with a wrong uid", "guaranteed", metadata={"name": "guaranteed", "uid": "x"}),
    _bind(
        "with annotations",
        "guaranteed",
        metadata={"name": "guaranteed", "annotations": {"a": "b"}, "labels": {"c": "d"}},
    ),
    _bind("without a node", "tokened", target={"kind": "Node"}),
    _bind("to something else", "tokened", target={"kind": "Rock", "name": "r"}),
    _bind("nobody", "none"),
    _bind("of another name", "tokened", metadata={"name": "other"}),
    post(
        "bind: the older way",
        core(NS, "bindings"),
        {"metadata": {"name": "tokened"}, "target": {"kind": "Node", "name": "n"}},
    ),
    get("pod once bound", P),
    get("pod bound with annotations", f"{PODS}/guaranteed"),
    get("pods by node", f"{PODS}?fieldSelector=spec.nodeName%3Dn", headers=TABLE),
    strategic(
        "ephemeral container",
        f"{P}/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}},
    ),
    strategic(
        "ephemeral container changed",
        f"{P}/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "debug", "image": "other"}]}},
    ),
    merge(
        "ephemeral container past its path",
        P,
        {"spec": {"ephemeralContainers": [{"name": "late", "image": "x"}]}},
    ),
    strategic(
        "resize",
        f"{PODS}/guaranteed/resize",
        {
            "spec": {
                "containers": [
                    {"name": "c", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}
                ]
            }
        },
    ),
    strategic(
        "resize to another quality",
        f"{PODS}/guaranteed/resize",
        {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}},
    ),
    strategic(
        "resize past its path",
        f"{PODS}/guaranteed",
        {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}},
    ),
    strategic(
        "resize an image",
        f"{PODS}/guaranteed/resize",
        {"spec": {"containers": [{"name": "c", "image": "other"}]}},
    ),
    post(
        "budget",
        BUDGETS,
        {
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
        },
    ),
    get("budget, of which a controller knows", f"{BUDGETS}/b", until=is_counted),
    merge(
        "budget, counted",
        f"{BUDGETS}/b/status",
        {
            "status": {
                "disruptionsAllowed": 0,
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
                "observedGeneration": 1,
            }
        },
    ),
    strategic(
        "pod: ready",
        f"{P}/status",
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
    ),
    post("evict against a budget", f"{P}/eviction", {"metadata": {"name": "p"}}),
    delete("budget away", f"{BUDGETS}/b"),
    post("evict as a trial", f"{P}/eviction?dryRun=All", {"metadata": {"name": "p"}}),
    post("evict", f"{P}/eviction", {"metadata": {"name": "p"}}),
    get("pod once evicted", P),
    post("evict nobody", f"{PODS}/none/eviction", {"metadata": {"name": "none"}}),
    post(
        "evict at once",
        f"{PODS}/placed/eviction",
        {"metadata": {"name": "placed"}, "deleteOptions": {"gracePeriodSeconds": 0}},
    ),
    delete("delete what is evicted", P),
    delete("delete it sooner", f"{P}?gracePeriodSeconds=5"),
    delete("delete it later", f"{P}?gracePeriodSeconds=50"),
    delete("delete it at once", f"{P}?gracePeriodSeconds=0"),
    delete("delete a bound pod", f"{PODS}/guaranteed"),
    delete("delete it at once, in the body", f"{PODS}/guaranteed", {"gracePeriodSeconds": 0}),
    delete("delete a pod that waits", f"{PODS}/gated"),
    delete("delete with a negative grace", f"{PODS}/tokened?gracePeriodSeconds=-1"),
    get("log of a pod that waits", f"{PODS}/much-said/log"),
    get("log of nobody", f"{PODS}/none/log"),
    get("log of an unknown container", f"{PODS}/tokened/log?container=x"),
    Ask("binding read", "GET", f"{P}/binding"),
    Ask("binding patched", "PATCH", f"{P}/binding", [], JSON_PATCH),
    delete("all pods, at once", PODS, {"gracePeriodSeconds": 0}),
    get("no pods left", PODS),
    delete("node of the pods away", "/api/v1/nodes/n"),
)
