"""Server-side apply: ownership, conflicts, lists, subresources."""

from __future__ import annotations

from typing import Any, Final

from tests.support.conformance.script.ask import (
    Ask,
    apply,
    config_map,
    core,
    deployment,
    get,
    json_patch,
    merge,
    namespace,
    of,
    pod,
    post,
    put,
    strategic,
)

NS: Final = "applying"
MAPS: Final = core(NS, "configmaps")
DEPLOYMENTS: Final = of("apps", NS, "deployments")
SERVICES: Final = core(NS, "services")


def _map(name: str, manager: str, data: Any = None, *, force: bool = False, **meta: Any) -> Ask:
    query = f"fieldManager={manager}" + ("&force=true" if force else "")
    return apply(f"apply: {name}", f"{MAPS}/s?{query}", config_map("s", data, **meta))


def _deployment(name: str, manager: str, spec: Any, query: str = "") -> Ask:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    return apply(f"apply: {name}", f"{DEPLOYMENTS}/d?fieldManager={manager}{query}", body)


def _template(*containers: Any, **spec: Any) -> Any:
    return {"template": {"spec": {"containers": list(containers), **spec}}}


def _service(name: str, manager: str, *ports: Any) -> Ask:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "svc"},
        "spec": {"clusterIP": "None", "ports": list(ports)},
    }
    return apply(f"apply: {name}", f"{SERVICES}/svc?fieldManager={manager}", body)


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    _map("creates", "one"),
    _map("the same again", "one"),
    _map("one more field", "one", {"a": "1", "b": "2"}),
    _map("a conflict", "two", {"a": "2"}),
    _map("two conflicts", "two", {"a": "2", "b": "3"}),
    _map("the same value is shared", "two", {"a": "1"}),
    _map("one no longer states it", "one", {"b": "2"}),
    _map("two no longer states it", "two", {}),
    _map("by force", "three", {"b": "9"}, force=True),
    _map("one by one, having lost it", "one", {"b": "2"}),
    _map("labels and annotations", "one", {}, labels={"l": "1"}, annotations={"n": "1"}),
    _map("finalizers, a set", "one", {}, finalizers=["a.b/c"]),
    _map("finalizers of another", "two", {}, finalizers=["d.e/f"]),
    _map("finalizers given up", "one", {}),
    _map(
        "an owner",
        "one",
        {},
        ownerReferences=[
            {"apiVersion": "unknown.example.com/v1", "kind": "Thing", "name": "p", "uid": "u"}
        ],
    ),
    merge("an update over it", f"{MAPS}/s", {"data": {"b": "10", "c": "11"}}),
    _map("a conflict with an update", "one", {"b": "11"}),
    _map("as a trial", "one", {"b": "11"}, force=True),
    get("applied", f"{MAPS}/s"),
    apply("apply: without a manager", f"{MAPS}/s", config_map("s")),
    apply("apply: without a kind", f"{MAPS}/s?fieldManager=one", {"metadata": {"name": "s"}}),
    apply(
        "apply: another version",
        f"{MAPS}/s?fieldManager=one",
        {**config_map("s"), "apiVersion": "v2"},
    ),
    apply(
        "apply: another kind", f"{MAPS}/s?fieldManager=one", {**config_map("s"), "kind": "Secret"}
    ),
    apply("apply: another name", f"{MAPS}/s?fieldManager=one", config_map("t")),
    apply("apply: another namespace", f"{MAPS}/s?fieldManager=one", config_map("s", namespace="x")),
    apply("apply: an unknown field", f"{MAPS}/s?fieldManager=one", {**config_map("s"), "x": 1}),
    apply(
        "apply: an unknown field, strict",
        f"{MAPS}/s?fieldManager=one&fieldValidation=Strict",
        {**config_map("s"), "x": 1},
    ),
    apply("apply: a wrong type", f"{MAPS}/s?fieldManager=one", config_map("s", {"a": {"b": "c"}})),
    apply(
        "apply: managed fields",
        f"{MAPS}/s?fieldManager=one",
        config_map("s", managedFields=[{"manager": "x"}]),
    ),
    apply("apply: its version", f"{MAPS}/s?fieldManager=one", config_map("s", resourceVersion="1")),
    apply("apply: a uid", f"{MAPS}/fresh?fieldManager=one", config_map("fresh", uid="u")),
    apply(
        "apply: as a trial, new", f"{MAPS}/trial?fieldManager=one&dryRun=All", config_map("trial")
    ),
    apply("apply: not YAML", f"{MAPS}/s?fieldManager=one", b"a: ["),
    apply(
        "apply: YAML",
        f"{MAPS}/y?fieldManager=one",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  k: v\n",
    ),
    apply(
        "apply: nothing there, no namespace",
        f"{core('nowhere', 'configmaps')}/s?fieldManager=one",
        config_map("s"),
    ),
    apply("apply: an empty map", f"{MAPS}/e?fieldManager=one", config_map("e", {})),
    apply("apply: null", f"{MAPS}/e?fieldManager=one", config_map("e", {"a": None})),
    post(
        "apply: over a creation",
        f"{MAPS}?fieldManager=maker",
        config_map("c", {"x": "1", "y": "2"}),
    ),
    apply(
        "apply: a conflict with the maker",
        f"{MAPS}/c?fieldManager=one",
        config_map("c", {"x": "2"}),
    ),
    apply(
        "apply: the maker's own name", f"{MAPS}/c?fieldManager=maker", config_map("c", {"x": "2"})
    ),
    apply("apply: kubectl's way", f"{MAPS}/k?fieldManager=kubectl", config_map("k", {"x": "1"})),
    put("apply: replaced past it", f"{MAPS}/k?fieldManager=putter", config_map("k", {"x": "2"})),
    json_patch(
        "apply: a field away",
        f"{MAPS}/k?fieldManager=patcher",
        [{"op": "remove", "path": "/data/x"}],
    ),
    _deployment("a deployment", "one", deployment("d")["spec"]),
    _deployment(
        "a variable", "two", _template({"name": "main", "env": [{"name": "A", "value": "1"}]})
    ),
    _deployment(
        "another variable",
        "three",
        _template({"name": "main", "env": [{"name": "B", "value": "2"}]}),
    ),
    _deployment("an argument list is one value", "two", _template({"name": "main", "args": ["x"]})),
    _deployment("another argument list", "three", _template({"name": "main", "args": ["y"]})),
    _deployment(
        "a second container",
        "two",
        _template({"name": "side", "image": "side", "ports": [{"containerPort": 80}]}),
    ),
    _deployment(
        "the same port twice",
        "two",
        _template(
            {
                "name": "side",
                "image": "side",
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
            }
        ),
    ),
    _deployment(
        "a doubled key",
        "two",
        _template({"name": "side", "image": "a"}, {"name": "side", "image": "b"}),
    ),
    _deployment("no key", "two", _template({"image": "a"})),
    _deployment("a selector is one value", "two", {"selector": {"matchLabels": {"b": "2"}}}),
    _deployment("replicas, a conflict", "two", {"replicas": 3}),
    _deployment(
        "replicas given up",
        "one",
        {k: v for k, v in deployment("d")["spec"].items() if k != "replicas"},
    ),
    _deployment("the container away", "two", {}),
    _deployment(
        "resources", "res", _template({"name": "main", "resources": {"limits": {"cpu": "1000m"}}})
    ),
    _deployment(
        "the same amount", "res", _template({"name": "main", "resources": {"limits": {"cpu": "1"}}})
    ),
    apply(
        "apply: a scale",
        f"{DEPLOYMENTS}/d/scale?fieldManager=scaler&force=true",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "d"},
            "spec": {"replicas": 7},
        },
    ),
    merge(
        "scale by a patch", f"{DEPLOYMENTS}/d/scale?fieldManager=scaler2", {"spec": {"replicas": 8}}
    ),
    apply(
        "apply: a status",
        f"{DEPLOYMENTS}/d/status?fieldManager=st",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]},
        },
    ),
    apply(
        "apply: a status past its path",
        f"{DEPLOYMENTS}/d?fieldManager=st2",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "status": {"replicas": 2},
        },
    ),
    strategic(
        "a status by a patch",
        f"{DEPLOYMENTS}/d/status?fieldManager=st3",
        {"status": {"readyReplicas": 1}},
    ),
    get("the applied deployment", f"{DEPLOYMENTS}/d"),
    _service("a service", "one", {"port": 80, "name": "a"}),
    _service("another port", "two", {"port": 81, "name": "b"}),
    _service("another port without a name", "three", {"port": 82}),
    _service("the same port of UDP", "four", {"port": 80, "name": "u", "protocol": "UDP"}),
    _service("its port given up", "two"),
    apply(
        "apply: a pod",
        f"{core(NS, 'pods')}/p?fieldManager=one",
        pod("p", automountServiceAccountToken=False),
    ),
    apply(
        "apply: what of a pod is fixed",
        f"{core(NS, 'pods')}/p?fieldManager=one",
        pod("p", automountServiceAccountToken=False, hostname="x"),
    ),
    apply(
        "apply: a pod's status",
        f"{core(NS, 'pods')}/p/status?fieldManager=kubelet",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"},
        },
    ),
    apply(
        "apply: a binding role",
        f"{of('rbac.authorization.k8s.io', NS, 'roles')}/r?fieldManager=one",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "r"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        },
    ),
)
