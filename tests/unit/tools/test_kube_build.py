"""The build of Kubernetes' programs: where they go, and when nothing is left to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support import kube_binaries
from tools.kube import build


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a search path without Go."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "cache"


def fill(directory: Path) -> None:
    directory.mkdir(parents=True)
    for name in [*(name for _, _, name in build.programs()), build.STAGES]:
        (directory / name).touch()


def test_nothing_is_built_where_all_is_there(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(build.directory())
    assert build.main() == 0
    assert f"all programs are in {cache}" in capsys.readouterr().out


@pytest.mark.parametrize("lost", ["kubelet", build.STAGES])
def test_what_is_missing_needs_go(
    cache: Path, capsys: pytest.CaptureFixture[str], lost: str
) -> None:
    fill(build.directory())
    (build.directory() / lost).unlink()
    assert build.main() == 1
    assert "Go is not on the PATH" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["kubernetes/go.sum", "etcd/go.mod", "kwok/go.sum"])
def test_another_pin_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    before = build.directory()
    copy = Path(shutil.copytree(build.HERE, tmp_path / "kube"))
    monkeypatch.setattr(build, "HERE", copy)
    assert build.directory() == before
    with (copy / file).open("a") as pins:
        pins.write("\n")
    assert build.directory() != before


def test_assets_that_the_user_names_come_first(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(build.directory())
    assert kube_binaries.find("etcd") == build.directory() / "etcd"
    fill(tmp_path / "mine")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "mine"))
    assert kube_binaries.find("etcd") == tmp_path / "mine" / "etcd"
