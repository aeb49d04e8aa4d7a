"""Lists: selectors, pages, versions, forms."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from tests.support.conformance.script.ask import (
    PARTIAL_LIST,
    TABLE,
    Ask,
    config_map,
    core,
    delete,
    get,
    namespace,
    pod,
    post,
)

NS: Final = "lists"
MAPS: Final = core(NS, "configmaps")
PODS: Final = core(NS, "pods")
THEN: Final = "${a page:metadata.resourceVersion}"
LABELS: Final = (
    ("a", {"env": "prod", "tier": "1"}),
    ("b", {"env": "prod", "tier": "2"}),
    ("c", {"env": "test"}),
    ("d", {}),
)


def _labels(selector: str) -> Ask:
    return get(f"labels {selector}", f"{MAPS}?labelSelector={quote(selector)}")


def _fields(selector: str, path: str = MAPS) -> Ask:
    kind = path.rpartition("/")[2]
    return get(f"{kind} by fields {selector}", f"{path}?fieldSelector={quote(selector)}")


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    *(post(f"labelled {name}", MAPS, config_map(name, labels=labels)) for name, labels in LABELS),
    get("list", MAPS),
    *map(
        _labels,
        (
            "env=prod",
            "env==prod",
            "env!=prod",
            "env",
            "!env",
            "env in (prod,test)",
            "env notin (prod)",
            "env=prod,tier=2",
            "env in (prod),tier notin (1)",
            "tier>1",
            "tier<2",
            "env=",
            "env===prod",
            "env in prod",
            "env in ()",
            "=prod",
            "env=prod,",
            "a b",
            "env=not valid!",
            "tier>many",
            "Env.example.com/x=1",
            "bad_prefix!/x=1",
        ),
    ),
    *map(
        _fields,
        (
            "metadata.name=a",
            "metadata.name==a",
            "metadata.name!=a",
            f"metadata.namespace={NS}",
            "metadata.name=a,metadata.name=b",
            "metadata.name=nobody",
            "data.a=1",
            "nonsense",
            "metadata.name>a",
            "metadata.labels.env=prod",
        ),
    ),
    get("labels and fields", f"{MAPS}?labelSelector=env%3Dprod&fieldSelector=metadata.name%3Da"),
    get("everywhere by label", "/api/v1/configmaps?labelSelector=env%3Dtest"),
    get("a page", f"{MAPS}?limit=2"),
    get("the next page", f"{MAPS}?limit=2&continue=${{a page:metadata.continue}}"),
    get("a page by label", f"{MAPS}?limit=1&labelSelector=env%3Dprod"),
    get(
        "the next page by label",
        f"{MAPS}?limit=1&labelSelector=env%3Dprod&continue=${{a page by label:metadata.continue}}",
    ),
    get("a page of the whole", f"{MAPS}?limit=4"),
    get("a page of none", f"{MAPS}?limit=0"),
    get("a negative page", f"{MAPS}?limit=-1"),
    get("a page of letters", f"{MAPS}?limit=two"),
    get("a broken token", f"{MAPS}?continue=nonsense"),
    get("a token that is JSON", f"{MAPS}?continue=e30"),
    get(
        "a token and a version", f"{MAPS}?resourceVersion=5&continue=${{a page:metadata.continue}}"
    ),
    get(
        "a token and a match",
        f"{MAPS}?resourceVersionMatch=Exact&continue=${{a page:metadata.continue}}",
    ),
    post("one more while paging", MAPS, config_map("bb")),
    delete("one less while paging", f"{MAPS}/d"),
    get("the next page as it was", f"{MAPS}?limit=5&continue=${{a page:metadata.continue}}"),
    get(
        "as it was",
        f"{MAPS}?resourceVersion=${{a page:metadata.resourceVersion}}&resourceVersionMatch=Exact",
    ),
    get(
        "not older",
        f"{MAPS}?resourceVersion={THEN}&resourceVersionMatch=NotOlderThan",
    ),
    get("not older, unsaid", f"{MAPS}?resourceVersion=${{a page:metadata.resourceVersion}}"),
    get(
        "a page as it was",
        f"{MAPS}?limit=2&resourceVersion={THEN}&resourceVersionMatch=Exact",
    ),
    get("any version", f"{MAPS}?resourceVersion=0"),
    get("any version, exactly", f"{MAPS}?resourceVersion=0&resourceVersionMatch=Exact"),
    get("any version, not older", f"{MAPS}?resourceVersion=0&resourceVersionMatch=NotOlderThan"),
    get("a match without a version", f"{MAPS}?resourceVersionMatch=Exact"),
    get("a match that is none", f"{MAPS}?resourceVersion=1&resourceVersionMatch=Sometime"),
    get("a version of letters", f"{MAPS}?resourceVersion=new"),
    get("a version to come", f"{MAPS}?resourceVersion=99999999&resourceVersionMatch=Exact"),
    get("an object at any version", f"{MAPS}/a?resourceVersion=0"),
    get("an object not older", f"{MAPS}/a?resourceVersion=${{a page:metadata.resourceVersion}}"),
    get("an object, a version of letters", f"{MAPS}/a?resourceVersion=new"),
    get("the list as a table", MAPS, headers=TABLE),
    get("the list as a table, whole", f"{MAPS}?includeObject=Object", headers=TABLE),
    get("the list as a table, bare", f"{MAPS}?includeObject=None", headers=TABLE),
    get("the list as a table, oddly", f"{MAPS}?includeObject=Some", headers=TABLE),
    get("a page as a table", f"{MAPS}?limit=2", headers=TABLE),
    get("the list of metadata", MAPS, headers=PARTIAL_LIST),
    get("an empty list", core(NS, "secrets")),
    get("an empty table", core(NS, "secrets"), headers=TABLE),
    get("a list of no namespace", core("nowhere", "configmaps")),
    post(
        "pod one",
        PODS,
        pod("one", nodeName="n1", schedulerName="other", automountServiceAccountToken=False),
    ),
    post("pod two", PODS, pod("two", restartPolicy="Never", automountServiceAccountToken=False)),
    *(
        _fields(selector, PODS)
        for selector in (
            "spec.nodeName=n1",
            "spec.nodeName=",
            "spec.nodeName!=",
            "spec.restartPolicy=Never",
            "spec.schedulerName=other",
            "spec.serviceAccountName=default",
            "spec.hostNetwork=false",
            "status.phase=Pending",
            "status.phase!=Pending",
            "status.podIP=",
            "status.podIPs=",
            "status.nominatedNodeName=",
            "spec.containers=x",
        )
    ),
    get("pods as a table", PODS, headers=TABLE),
)
