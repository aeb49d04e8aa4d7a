"""The entry by which an editor reaches a notebook."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.cli import ssh
from lockstep.cli.code import INCLUDE, keep


def test_the_config_includes_the_entry_once_and_keeps_the_rest(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host old\n    User me\n")
    for text in ("Host ana\n", "Host ana\n    User user\n"):
        keep(tmp_path, "ana", text)
    assert config.read_text() == f"{INCLUDE}\nHost old\n    User me\n"
    assert (tmp_path / "lockstep.d/ana.conf").read_text() == "Host ana\n    User user\n"
    assert config.stat().st_mode & 0o077 == 0


def test_a_config_that_is_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("")
    (tmp_path / "config").symlink_to(tmp_path / "dotfiles")
    keep(tmp_path, "ana", "Host ana\n")
    assert (tmp_path / "config").is_symlink()
    assert INCLUDE in (tmp_path / "dotfiles").read_text()


def test_an_entry_goes_through_the_api_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    text = ssh.entry("ana", ssh.settings("ana", ["--namespace", "lab"]))
    assert text.startswith("Host ana\n    HostName pod\n")
    assert "exec -i --namespace lab pod/ana-0 -- python" in text
