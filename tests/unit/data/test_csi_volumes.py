"""Which dataset a CSI volume shows, by its attributes."""

from __future__ import annotations

import pytest

from lockstep.api.meta import ObjectMeta
from lockstep.data.claims import ClaimingPod, ClaimName, Inline, Spec, Volume, claims_of
from lockstep.data.csi.asked import EPHEMERAL, POD_NAMESPACE, Asked, BadVolume, asked

CLAIM = {POD_NAMESPACE: "ann", EPHEMERAL: "false", "csi.storage.k8s.io/pod.uid": "u"}
WRITTEN = {**CLAIM, EPHEMERAL: "true"}


@pytest.mark.parametrize(
    ("context", "found"),
    [
        ({**CLAIM, "namespace": "ann", "dataset": "d"}, Asked("ann", "d")),
        ({**CLAIM, "namespace": "bob", "dataset": "d", "path": "a/b"}, Asked("bob", "d", "a/b")),
        ({**WRITTEN, "dataset": "d"}, Asked("ann", "d", by_name=True)),
        ({**WRITTEN, "namespace": "ann", "dataset": "d"}, Asked("ann", "d", by_name=True)),
    ],
)
def test_attributes_name_a_dataset(context: dict[str, str], found: Asked) -> None:
    assert asked(context) == found


@pytest.mark.parametrize(
    ("context", "named"),
    [
        (WRITTEN, "no dataset"),
        ({**WRITTEN, "dataset": "d", "namespace": "bob"}, "'bob'"),
        ({**CLAIM, "dataset": "d", "path": "../other"}, "'../other'"),
        ({**CLAIM, "dataset": "d", "path": "/etc"}, "'/etc'"),
        ({**WRITTEN, "dataset": "d", "subpath": "x"}, "subpath"),
    ],
)
def test_wrong_attributes_are_named(context: dict[str, str], named: str) -> None:
    with pytest.raises(BadVolume, match=named):
        asked(context)


def test_a_volume_written_into_a_pod_reads_as_its_claim() -> None:
    inline = Inline("data.lockstep.dev", {"dataset": "d"})
    other = Inline("csi.example.org", {"dataset": "e"})
    volumes = [Volume(ClaimName("c")), Volume(csi=inline), Volume(csi=other)]
    pod = ClaimingPod(ObjectMeta(name="p", namespace="ann"), Spec(volumes=volumes))
    assert list(claims_of(pod)) == ["ann/c", "ann/d"]
