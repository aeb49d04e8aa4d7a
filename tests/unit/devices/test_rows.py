"""Device files that a ConfigMap names."""

from __future__ import annotations

import pytest

from lockstep.devices.core.rows import BadRow, Row, cards, in_order, rows

FPGA = "- {resource: example.com/fpga, files: ['/dev/fpga*']}"


def test_each_usable_file_is_a_device() -> None:
    (row,) = rows(FPGA)
    there = {"/dev/fpga*": ["/dev/fpga1", "/dev/fpga0", "/dev/fpga-disk"]}
    found = cards(row, lambda pattern: there[pattern], lambda file: "disk" not in file)
    assert [(card.uuid, card.nodes) for card in found] == [
        ("dev-fpga0", ["/dev/fpga0"]),
        ("dev-fpga1", ["/dev/fpga1"]),
    ]
    assert in_order(["b", "a", "c"], ["c"], 2) == ["c", "a"]


def test_no_text_is_no_row() -> None:
    assert rows("") == []
    assert rows(FPGA) == [Row(resource="example.com/fpga", files=["/dev/fpga*"])]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "devices.yaml"),
        ("- {resource: fpga, files: []}", "given 'fpga'; write example.com/fpga"),
        ("- {resource: nvidia.com/gpu, files: []}", "nvidia.com/gpu is handed out already"),
        (f"{FPGA}\n{FPGA}", "example.com/fpga is handed out already"),
        ("- {resource: a.b/c, files: [/etc/shadow]}", "given '/etc/shadow'; write a path below"),
        ("- {resource: a.b/c, files: [/dev/../etc/shadow]}", "write a path below /dev"),
        ("- {resource: x.lockstep.dev/c, files: []}", "write example.com/fpga"),
    ],
)
def test_a_wrong_row_is_named(text: str, told: str) -> None:
    with pytest.raises(BadRow, match=told):
        rows(text, ["nvidia.com/gpu"])
