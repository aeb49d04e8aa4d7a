"""Deleting many, and what goes with what is deleted."""

from __future__ import annotations

from typing import Any, Final

from tests.support.conformance.script.ask import (
    Ask,
    config_map,
    core,
    delete,
    get,
    is_ending,
    merge,
    namespace,
    pod,
    post,
    status,
)

NS: Final = "deleting"
MAPS: Final = core(NS, "configmaps")


def _owned(name: str, owner: str, *, block: bool = False, **more: Any) -> Ask:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner,
        "uid": f"${{owner {owner}:metadata.uid}}",
        **({"blockOwnerDeletion": True} if block else {}),
        **more,
    }
    return post(f"owned {name}", MAPS, config_map(name, ownerReferences=[reference]))


def _owner(name: str) -> Ask:
    return post(f"owner {name}", MAPS, config_map(name))


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    _owner("back"),
    _owned("back-1", "back"),
    _owned("back-2", "back-1", uid="${owned back-1:metadata.uid}"),
    delete("in the background", f"{MAPS}/back"),
    get("its dependent goes", f"{MAPS}/back-1", until=status(404)),
    get("and its dependent's", f"{MAPS}/back-2", until=status(404)),
    _owner("front"),
    _owned("front-1", "front", block=True),
    merge("front-1 is held", f"{MAPS}/front-1", {"metadata": {"finalizers": ["a.b/c"]}}),
    delete("in the foreground", f"{MAPS}/front", {"propagationPolicy": "Foreground"}),
    get("the owner waits", f"{MAPS}/front"),
    merge("front-1 is let go", f"{MAPS}/front-1", {"metadata": {"finalizers": None}}),
    get("the owner goes last", f"{MAPS}/front", until=status(404)),
    _owner("orphaner"),
    _owned("orphan", "orphaner"),
    delete("orphaning", f"{MAPS}/orphaner", {"propagationPolicy": "Orphan"}),
    get("the orphaner goes", f"{MAPS}/orphaner", until=status(404)),
    get("the orphan stays", f"{MAPS}/orphan"),
    _owner("older"),
    _owned("older-1", "older"),
    delete("orphaning the older way", f"{MAPS}/older", {"orphanDependents": True}),
    get("the older orphaner goes", f"{MAPS}/older", until=status(404)),
    get("the older orphan stays", f"{MAPS}/older-1"),
    _owner("one-of-two"),
    _owner("two-of-two"),
    post(
        "owned by two",
        MAPS,
        config_map(
            "shared",
            ownerReferences=[
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": n,
                    "uid": f"${{owner {n}:metadata.uid}}",
                }
                for n in ("one-of-two", "two-of-two")
            ],
        ),
    ),
    delete("one of two owners", f"{MAPS}/one-of-two", {"propagationPolicy": "Foreground"}),
    get("the first owner goes", f"{MAPS}/one-of-two", until=status(404)),
    get("the shared stays", f"{MAPS}/shared"),
    delete("the other owner", f"{MAPS}/two-of-two"),
    get("the shared goes", f"{MAPS}/shared", until=status(404)),
    post(
        "owned by nobody",
        MAPS,
        config_map(
            "lost",
            ownerReferences=[
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "never",
                    "uid": "00000000-0000-0000-0000-000000000000",
                }
            ],
        ),
    ),
    get("the lost goes", f"{MAPS}/lost", until=status(404)),
    _owner("pods"),
    post(
        "owned pod",
        core(NS, "pods"),
        pod(
            "po",
            {
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "name": "pods",
                        "uid": "${owner pods:metadata.uid}",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ]
            },
            nodeName="n",
            automountServiceAccountToken=False,
        ),
    ),
    delete("the pods' owner", f"{MAPS}/pods", {"propagationPolicy": "Foreground"}),
    get("its pod ends", f"{core(NS, 'pods')}/po", until=is_ending),
    delete("its pod is gone", f"{core(NS, 'pods')}/po?gracePeriodSeconds=0"),
    get("the pods' owner goes", f"{MAPS}/pods", until=status(404)),
    *(
        post(f"many {n}", MAPS, config_map(f"many-{n}", labels={"many": str(n % 2)}))
        for n in range(4)
    ),
    delete("many as a trial", f"{MAPS}?labelSelector=many&dryRun=All"),
    delete("many by label", f"{MAPS}?labelSelector=many%3D0"),
    get("many left", f"{MAPS}?labelSelector=many"),
    delete("many by field", f"{MAPS}?fieldSelector=metadata.name%3Dmany-1"),
    delete("many by a broken label", f"{MAPS}?labelSelector=%3D"),
    delete("many, a page", f"{MAPS}?labelSelector=many&limit=1"),
    delete("none", f"{MAPS}?labelSelector=nobody"),
    merge("one is held", f"{MAPS}/orphan", {"metadata": {"finalizers": ["a.b/c"]}}),
    delete("the namespace", f"/api/v1/namespaces/{NS}"),
    post("nothing new in it", MAPS, config_map("new")),
    get("the namespace waits", f"/api/v1/namespaces/{NS}"),
    get("one waits to be let go", f"{MAPS}/orphan", until=is_ending),
    merge("one is let go", f"{MAPS}/orphan", {"metadata": {"finalizers": None}}),
    get("the namespace goes", f"/api/v1/namespaces/{NS}", until=status(404)),
    get("what was in it", MAPS),
    delete("a namespace that is not there", "/api/v1/namespaces/nowhere"),
    delete("a namespace that stays", "/api/v1/namespaces/default"),
    merge(
        "a namespace labelled", "/api/v1/namespaces/access", {"metadata": {"labels": {"a": "b"}}}
    ),
    Ask(
        "a namespace finalized",
        "PUT",
        "/api/v1/namespaces/access/finalize",
        {"metadata": {"name": "access"}, "spec": {"finalizers": ["kubernetes", "a.b/c"]}},
    ),
)
