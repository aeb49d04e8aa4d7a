from __future__ import annotations

import pytest

from lockstep.cli import kinds, quantities
from lockstep.cli.log_lines import Prefixed


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("digits", "TrainingJob", "digits"),
        ("job/digits", "TrainingJob", "digits"),
        ("tj/digits", "TrainingJob", "digits"),
        ("Gang/g1", "Gang", "g1"),
        ("queues/research", "Queue", "research"),
        ("po/digits-worker-0", "Pod", "digits-worker-0"),
        ("node/sim-0", "Node", "sim-0"),
    ],
)
def test_what_a_name_names(text: str, kind: str, name: str) -> None:
    found = kinds.reference(text)
    assert (found.resource.kind, found.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "KIND/NAME"),
        ("gang/", "KIND/NAME"),
        ("/g1", "KIND/NAME"),
        ("ns/gang/g1", "KIND/NAME"),
        ("gangster/g1", "'gangster' is not a kind; use one of job, gang, queue"),
    ],
)
def test_a_name_that_names_nothing(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        kinds.reference(text)


def test_amounts_of_resources() -> None:
    given = ["gpu=8", "cpu=500m", "example.com/fpga=1"]
    assert quantities.amounts(given) == {
        "nvidia.com/gpu": "8",
        "cpu": "500m",
        "example.com/fpga": "1",
    }


@pytest.mark.parametrize(
    ("pair", "says"),
    [("gpu", "RESOURCE=AMOUNT"), ("=8", "RESOURCE"), ("gpu=x", "quantity"), ("gpu=-1", "negative")],
)
def test_an_amount_that_is_none(pair: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quantities.amounts([pair])


@pytest.mark.parametrize(
    ("chunks", "out"),
    [
        ([b"a\nb\n"], b"[p] a\n[p] b\n"),
        ([b"a", b"b\nc"], b"[p] ab\n[p] c\n"),
        ([b"", b"\n"], b"[p] \n"),
        ([], b""),
        ([b"caf\xc3", b"\xa9\n"], "[p] café\n".encode()),
    ],
)
def test_lines_are_cut_and_prefixed_whatever_the_chunks(chunks: list[bytes], out: bytes) -> None:
    lines = Prefixed("[p] ")
    assert b"".join(lines.feed(chunk) for chunk in chunks) + lines.end() == out
