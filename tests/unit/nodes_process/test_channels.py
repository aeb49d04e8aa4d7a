"""What the channels of remote commands carry beside bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lockstep.nodes.process.channels import END, Size, ended, failed, size


def status(message: bytes) -> Any:
    assert message[0] == END
    return json.loads(message[1:])


def test_how_a_command_ended_is_told_as_clients_read_it() -> None:
    assert status(ended(0)) == {"metadata": {}, "status": "Success"}
    told = status(ended(3))
    assert (told["status"], told["reason"]) == ("Failure", "NonZeroExitCode")
    assert told["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert status(failed("no terminal left"))["message"] == "no terminal left"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b'{"Width":80,"Height":24}', Size(80, 24)),
        (b'{"Width":0,"Height":24}', None),
        (b'{"Width":80}', None),
        (b'{"Width":1e9,"Height":24}', None),
        (b"[1]", None),
        (b"80x24", None),
        (b"", None),
    ],
)
def test_only_a_sensible_size_of_a_terminal_is_taken(message: bytes, expected: Size | None) -> None:
    assert size(message) == expected
