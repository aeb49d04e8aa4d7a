"""Images by table."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.nodes.process import images

TABLE = """
- image: "org/special:*"
  command: [one, "{python}"]
  python: /venv
  user: 1234
- image: "org/*"
  command: [two]
"""


@pytest.fixture
def table(tmp_path: Path) -> images.Images:
    path = tmp_path / "images.yaml"
    path.write_text(TABLE)
    return images.load(path)


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("org/special:1", ["one", "/venv/bin/python"]),
        ("docker.io/org/special:1", ["one", "/venv/bin/python"]),
        ("org/other", ["two"]),
        ("reg:5000/org/other", ["two"]),
        ("xorg/other", None),
        ("other", None),
    ],
)
def test_the_first_entry_whose_pattern_fits_counts(
    table: images.Images, image: str, command: list[str] | None
) -> None:
    found = table.find(image)
    assert (found.command if found else None) == command


def test_shipped_entries_serve_stock_runtimes_and_not_as_root(table: images.Images) -> None:
    found = table.find("kserve/sklearnserver:v0.15.0")
    assert found is not None
    assert found.command[1:4] == ["-P", "-m", "lockstep.serve.server"]
    assert found.uid not in (None, 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- image: a", "command"),
        ("- {image: a, command: []}", "needs an image and a command"),
        ("- {image: a, command: [x], user: no-such-user}", "no-such-user"),
        ("- {image: a, command: [x], colour: red}", "colour"),
        ("[", "images.yaml"),
    ],
)
def test_a_bad_table_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "images.yaml"
    path.write_text(text)
    with pytest.raises(images.BadTable, match=says):
        images.load(path)


@pytest.mark.parametrize(
    ("entry", "furnished", "path"),
    [
        ("python: /venv", True, f"/venv/bin:{images.SYSTEM_PATH}"),
        ("python: /venv\n  env: {PATH: /bin}", True, "/bin"),
        ("env: {PATH: /bin}", True, "/bin"),
        ("mounts: {/a: /b}", True, None),
        ("user: nobody", False, None),
    ],
)
def test_programs_of_an_image_are_there_for_any_command(
    tmp_path: Path, entry: str, furnished: bool, path: str | None
) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(f"- image: a\n  command: [b]\n  {entry}\n")
    found = images.load(file).find("a")
    assert found is not None
    assert (found.furnished, found.env.get("PATH")) == (furnished, path)
