"""Which form of an object an ``Accept`` header gets."""

from __future__ import annotations

from functools import partial

import pytest

from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.catalog import of_builtin
from lockstep.apiserver.crds import served_versions
from lockstep.apiserver.negotiation import accepted, require_as_it_is
from lockstep.apiserver.status import StatusError
from lockstep.http import Request
from lockstep.http.message import Peer

JSON, YAML, PROTOBUF = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
)
META = "g=meta.k8s.io;v=v1"
TABLE, PARTIAL = f"as=Table;{META}", f"as=PartialObjectMetadata;{META}"
KUBECTL = f"{JSON};{TABLE},{JSON};as=Table;v=v1beta1;g=meta.k8s.io,{JSON}"

# Header, and what is answered for a built-in kind, a custom one, and a watch of a built-in kind.
# None is 406.
CASES = [
    ("", JSON, JSON, JSON),
    ("*/*", JSON, JSON, JSON),
    ("application/*", JSON, JSON, JSON),
    ("*", JSON, JSON, JSON),
    (YAML, YAML, YAML, None),
    (f"{PROTOBUF},{JSON}", PROTOBUF, JSON, PROTOBUF),
    (f"{PROTOBUF}, */*", PROTOBUF, JSON, PROTOBUF),
    (PROTOBUF, PROTOBUF, None, PROTOBUF),
    (f"{JSON},{PROTOBUF}", JSON, JSON, JSON),
    (f"{JSON};q=0.5,{PROTOBUF}", PROTOBUF, JSON, PROTOBUF),
    (f"{PROTOBUF};q=0.1,{YAML};q=0.9", YAML, YAML, None),
    (f"{JSON};stream=watch", JSON, JSON, JSON),
    (f"{JSON};stream=other", None, None, None),
    ("text/html", None, None, None),
    ("text/html,application/yaml", YAML, YAML, None),
    ("json", None, None, None),
]
CONVERTED = [
    (f"{JSON};{TABLE}", JSON, "Table"),
    (KUBECTL, JSON, "Table"),
    (f"{PROTOBUF};{TABLE}", None, ""),
    (f"{PROTOBUF};{TABLE},{JSON}", JSON, ""),
    (f"{YAML};{TABLE}", YAML, "Table"),
    (f"{PROTOBUF};{PARTIAL},{JSON}", PROTOBUF, "PartialObjectMetadata"),
    (f"{JSON};as=Table;g=meta.k8s.io;v=v2", None, ""),
    (f"{JSON};as=Other;{META},{JSON}", JSON, ""),
    (f"{JSON};v=v1", None, ""),
]

CONFIG_MAP = of_builtin(next(kind for kind in BUILTINS if kind.kind == "ConfigMap"))
CRD = {
    "metadata": {"name": "things.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "Things"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}
THING = served_versions(CRD)[0]


def asked(header: str) -> Request:
    return Request("GET", "/", {"accept": header} if header else {}, b"", Peer())


@pytest.mark.parametrize(("header", "builtin", "custom", "stream"), CASES)
def test_the_first_form_that_is_made_is_chosen(
    header: str, builtin: str | None, custom: str | None, stream: str | None
) -> None:
    cases = [
        (partial(accepted, served=CONFIG_MAP), builtin),
        (partial(accepted, served=THING), custom),
        (partial(accepted, served=CONFIG_MAP, stream=True), stream),
    ]
    for choose, expected in cases:
        if expected is None:
            with pytest.raises(StatusError, match=r"Acceptable|only the following") as error:
                choose(asked(header))
            assert error.value.code == 406
        else:
            assert choose(asked(header)).type == expected


@pytest.mark.parametrize(("header", "type_", "as_"), CONVERTED)
@pytest.mark.parametrize("served", [CONFIG_MAP, THING], ids=["builtin", "custom"])
def test_tables_and_metadata_are_made_as_kubernetes_does(
    header: str, type_: str | None, as_: str, served: object
) -> None:
    if type_ is None:
        with pytest.raises(StatusError):
            accepted(asked(header), served)  # type: ignore[arg-type]
    else:
        found = accepted(asked(header), served)  # type: ignore[arg-type]
        assert (found.type, found.as_) == (type_, as_)


def test_an_answer_without_a_table_is_sent_plain_or_refused() -> None:
    for header in ("", JSON, f"{JSON};{TABLE},{JSON}", PROTOBUF, "*/*"):
        require_as_it_is(asked(header))
    for header in (f"{JSON};{TABLE}", f"{JSON};{PARTIAL}"):
        with pytest.raises(StatusError, match="only the following media types"):
            require_as_it_is(asked(header))
