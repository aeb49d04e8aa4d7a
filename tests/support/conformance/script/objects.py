"""Creating, reading, replacing and deleting objects."""

from __future__ import annotations

from typing import Final

from tests.support.conformance.script.ask import (
    PARTIAL,
    TABLE,
    Ask,
    config_map,
    core,
    delete,
    get,
    merge,
    namespace,
    of,
    post,
    put,
)

NS: Final = "objects"
MAPS: Final = core(NS, "configmaps")
SECRETS: Final = core(NS, "secrets")
LEASES: Final = of("coordination.k8s.io", NS, "leases")
YAML: Final = b"""apiVersion: v1
kind: ConfigMap
metadata:
  name: from-yaml
data:
  on: "yes"
  time: "2001-01-01"
"""

SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("namespace again", "/api/v1/namespaces", {"metadata": {"name": NS}}),
    post("namespace with a bad name", "/api/v1/namespaces", {"metadata": {"name": "A_b"}}),
    get("namespace read", f"/api/v1/namespaces/{NS}"),
    post("create", MAPS, config_map("m", labels={"x": "1"})),
    post("create again", MAPS, config_map("m")),
    get("get", f"{MAPS}/m"),
    post("create with a prefix", MAPS, {"metadata": {"generateName": "gen-"}, "data": {"g": "1"}}),
    get("get by generated name", f"{MAPS}/${{create with a prefix:metadata.name}}"),
    delete("delete by generated name", f"{MAPS}/${{create with a prefix:metadata.name}}"),
    post("create from YAML", MAPS, YAML, content_type="application/yaml"),
    post("create without kind", MAPS, {"metadata": {"name": "bare"}}),
    post("create with binary data", MAPS, {**config_map("bin"), "binaryData": {"b": "AAEC"}}),
    post("create with bad binary data", MAPS, {**config_map("b2"), "binaryData": {"b": "%"}}),
    post("create with a doubled key", MAPS, {**config_map("b3"), "binaryData": {"a": "AAEC"}}),
    post("create with a bad key", MAPS, config_map("b4", {"a b": "1"})),
    post("create as a trial", f"{MAPS}?dryRun=All", config_map("trial")),
    get("get what the trial made", f"{MAPS}/trial"),
    post(
        "create by a named manager",
        f"{MAPS}?fieldManager=somebody",
        config_map("managed", labels={"a": "b"}, annotations={"c": "d"}, finalizers=["e.f/g"]),
    ),
    post(
        "create with a server's fields",
        MAPS,
        config_map(
            "given",
            uid="mine",
            creationTimestamp="2001-01-01T00:00:00Z",
            generation=7,
            selfLink="/x",
            deletionGracePeriodSeconds=5,
        ),
    ),
    put("put", f"{MAPS}/m", config_map("m", {"a": "2"}, labels={"x": "1"})),
    put("put the same", f"{MAPS}/m", config_map("m", {"a": "2"}, labels={"x": "1"})),
    put(
        "put, its version",
        f"{MAPS}/m",
        config_map("m", resourceVersion="${put:metadata.resourceVersion}"),
    ),
    put("put, a stale version", f"{MAPS}/m", config_map("m", resourceVersion="1")),
    put("put, another uid", f"{MAPS}/m", config_map("m", uid="someone-elses")),
    put("put, another name", f"{MAPS}/m", config_map("other")),
    put("put, no name", f"{MAPS}/m", {"data": {}}),
    put("put, another namespace", f"{MAPS}/m", config_map("m", namespace="default")),
    put("put of what is not there", f"{MAPS}/none", config_map("none", uid="x")),
    put("put of what is not there, plain", f"{MAPS}/none", config_map("none")),
    put("put as a trial", f"{MAPS}/m?dryRun=All", config_map("m", {"dry": "run"})),
    put("put by another", f"{MAPS}/m?fieldManager=other", config_map("m", {"a": "3", "b": "4"})),
    get("get as a table", f"{MAPS}/m", headers=TABLE),
    get("get the metadata", f"{MAPS}/m", headers=PARTIAL),
    get("get as YAML", f"{MAPS}/m", headers={"Accept": "application/yaml"}),
    get("get as what is not made", f"{MAPS}/m", headers={"Accept": "text/html"}),
    get(
        "get as a table of no version",
        f"{MAPS}/m",
        headers={"Accept": "application/json;as=Table;v=v9;g=meta.k8s.io"},
    ),
    get(
        "get as a table in protobuf",
        f"{MAPS}/m",
        headers={"Accept": "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"},
    ),
    get(
        "get by weight",
        f"{MAPS}/m",
        headers={"Accept": "text/html,application/yaml;q=0.1,application/json;q=0.9"},
    ),
    get("get prettily", f"{MAPS}/bare?pretty=true"),
    post("lease", LEASES, {"metadata": {"name": "l"}}),
    put(
        "put that creates",
        f"{LEASES}/made",
        {
            "metadata": {"name": "made"},
            "spec": {"holderIdentity": "me", "renewTime": "2020-01-01T00:00:00.000000Z"},
        },
    ),
    put(
        "put that creates, with a version",
        f"{LEASES}/made2",
        {"metadata": {"name": "made2", "resourceVersion": "5"}},
    ),
    merge("lease, a negative duration", f"{LEASES}/l", {"spec": {"leaseDurationSeconds": -1}}),
    merge(
        "lease, held",
        f"{LEASES}/l",
        {"spec": {"leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.123456Z"}},
    ),
    merge("lease, a bad time", f"{LEASES}/l", {"spec": {"renewTime": "yesterday"}}),
    post("secret", SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "plain"}}),
    post("secret, not base64", SECRETS, {"metadata": {"name": "s2"}, "data": {"a": "%%%"}}),
    post(
        "secret for TLS, incomplete",
        SECRETS,
        {"metadata": {"name": "s3"}, "type": "kubernetes.io/tls", "data": {}},
    ),
    merge("secret, another type", f"{SECRETS}/s", {"type": "other"}),
    merge("secret, more text", f"{SECRETS}/s", {"stringData": {"b": "more"}}),
    get("secrets as a table", SECRETS, headers=TABLE),
    post("immutable", MAPS, {**config_map("fixed"), "immutable": True}),
    merge("change what is immutable", f"{MAPS}/fixed", {"data": {"a": "9"}}),
    merge("make it mutable", f"{MAPS}/fixed", {"immutable": None}),
    delete("delete as a trial", f"{MAPS}/m?dryRun=All"),
    delete("delete with a wrong uid", f"{MAPS}/m", {"preconditions": {"uid": "x"}}),
    delete("delete with a wrong version", f"{MAPS}/m", {"preconditions": {"resourceVersion": "1"}}),
    delete(
        "delete with the right uid",
        f"{MAPS}/bin",
        {"preconditions": {"uid": "${create with binary data:metadata.uid}"}},
    ),
    merge("a finalizer", f"{MAPS}/m", {"metadata": {"finalizers": ["a.b/c"]}}),
    delete("delete with a finalizer", f"{MAPS}/m"),
    delete("delete it again", f"{MAPS}/m"),
    merge(
        "a finalizer once deleted", f"{MAPS}/m", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}
    ),
    merge("other data once deleted", f"{MAPS}/m", {"data": {"late": "yes"}}),
    merge("the finalizer done", f"{MAPS}/m", {"metadata": {"finalizers": None}}),
    get("get once deleted", f"{MAPS}/m"),
    delete("delete again", f"{MAPS}/m"),
    delete("delete at last", f"{MAPS}/fixed"),
)
