"""Which files of a directory go with a job."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lockstep.api import code
from lockstep.kube.code import tree
from lockstep.kube.code.sending import bundle, names_a_file
from lockstep.kube.code.tree import BadCode, read


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        place = root / name.replace("__", "/").replace("_dot_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def paths(root: Path) -> list[str]:
    return [one.path for one in read(root).files]


@pytest.fixture(params=["repository", "directory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory, once with a repository of Git and once without."""
    if request.param == "repository":
        git(tmp_path, "init", "-q")
    return tmp_path


def test_ignore_files_are_honoured(root: Path) -> None:
    write(root, train_dot_py="", data__big="", pkg__m_dot_py="", pkg__m_dot_tmp="", keep="")
    write(root, _dot_gitignore="data/\n", pkg___dot_gitignore="*.tmp\n")
    write(root, _dot_lockstepignore="keep\n", __pycache__x="")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "m.pyc").write_text("")
    found = [path for path in paths(root) if path not in (".gitignore", ".lockstepignore")]
    assert [path for path in found if "pycache" in path] == []
    assert set(found) >= {"pkg/.gitignore", "pkg/m.py", "train.py"}
    assert not {"data/big", "pkg/m.tmp", "keep"} & set(found)


def test_lockstepignore_holds_for_committed_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, train_dot_py="", weights="x")
    git(tmp_path, "add", "-A")
    write(tmp_path, _dot_lockstepignore="weights\n")
    assert paths(tmp_path) == [".lockstepignore", "train.py"]


def test_a_removed_file_is_not_missed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, train_dot_py="", gone="x")
    git(tmp_path, "add", "-A")
    (tmp_path / "gone").unlink()
    assert paths(tmp_path) == ["train.py"]


def test_a_repository_inside_brings_its_files(root: Path) -> None:
    write(root, train_dot_py="", lib__m_dot_py="", lib___dot_gitignore="*.o\n", lib__m_dot_o="")
    git(root / "lib", "init", "-q")
    assert paths(root) == ["lib/.gitignore", "lib/m.py", "train.py"]


def test_virtual_environments_stay(root: Path) -> None:
    write(root, train_dot_py="", env__pyvenv_dot_cfg="", env__lib__m_dot_py="")
    assert paths(root) == ["train.py"]


def test_links_never_lead_out(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    write(outside, secret="x")
    write(root, pkg__m_dot_py="")
    (root / "inner").symlink_to("pkg/m.py")
    (root / "absolute").symlink_to(root / "pkg" / "m.py")
    (root / "file").symlink_to(outside / "secret")
    (root / "directory").symlink_to(outside)
    (root / "circle").symlink_to("circle")
    found = read(root)
    assert {one.path: one.link for one in found.files} == {
        "absolute": "pkg/m.py",
        "inner": "pkg/m.py",
        "pkg/m.py": "",
    }
    assert set(found.left_out) >= {"directory", "file"}


def test_pipes_and_sockets_are_no_code(root: Path) -> None:
    write(root, train_dot_py="")
    os.mkfifo(root / "pipe")
    assert paths(root) == ["train.py"]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (".env", True),
        ("deploy/.env.local", True),
        ("tls/server.key", True),
        ("kubeconfig", True),
        ("credentials.json", True),
        (".env.example", False),
        ("key.py", False),
        ("environment.yml", False),
    ],
)
def test_files_named_like_secrets_are_told(tmp_path: Path, name: str, secret: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    told = bundle(tmp_path).warnings
    assert [name in one for one in told] == ([True] if secret else [])


def test_too_much_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST_BYTES", 1000)
    write(tmp_path, small="x", large="x" * 900, larger="x" * 950)
    with pytest.raises(BadCode, match=r"at most 0 MB; the largest are larger .*, large ") as told:
        read(tmp_path)
    assert ".lockstepignore" in told.value.remedy
    monkeypatch.setattr(tree, "MOST_BYTES", code.MOST_BYTES)
    monkeypatch.setattr(tree, "MOST_FILES", 3)
    write(tmp_path, out__a="", out__b="")
    with pytest.raises(BadCode, match=r"has 5 files, .* at most 3; most are in \. \(3\), out"):
        read(tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCode, match="nowhere is no directory"):
        read(tmp_path / "nowhere")


def test_without_git_only_plain_directories_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    write(tmp_path, train_dot_py="", pkg__m_dot_py="", _dot_git__HEAD="")
    (tmp_path / "link").symlink_to("pkg")
    assert paths(tmp_path) == ["link", "pkg/m.py", "train.py"]
    write(tmp_path, pkg___dot_gitignore="")
    with pytest.raises(BadCode, match=r"pkg/\.gitignore cannot be followed: git is not installed"):
        read(tmp_path)


def test_settings_of_a_repository_start_no_program(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, train_dot_py="a\n", _dot_gitattributes="*.py diff=evil\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    write(tmp_path, train_dot_py="b\n")
    ran = tmp_path.parent / f"{tmp_path.name}-ran"
    for name in ("core.fsmonitor", "diff.evil.command", "diff.evil.textconv", "diff.external"):
        git(tmp_path, "config", name, f"touch {ran}; false")
    assert bundle(tmp_path).code.changes
    assert not ran.exists()


def test_commit_changes_and_packages_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    write(tmp_path, train_dot_py="a\n")
    assert bundle(tmp_path).code.commit == ""
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    first = bundle(tmp_path, carried=False)
    assert (len(first.code.commit), first.code.changes, first.code.parts) == (40, "", [])
    write(tmp_path, train_dot_py="b\n")
    second = bundle(tmp_path).code
    assert second.commit == first.code.commit
    assert second.changes.startswith("sha256:")
    assert second.digest != first.code.digest
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "torch-2.13.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    active = bundle(tmp_path)
    assert active.code.environment == str(tmp_path / "venv")
    assert active.parts[active.code.packages] == b"torch==2.13\n"
    write(tmp_path, requirements_dot_txt="numpy==2\n")
    locked = bundle(tmp_path)
    assert locked.code.environment == "requirements.txt"
    assert locked.parts[locked.code.packages] == b"numpy==2\n"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["python", "train.py", "--lr", "0.1"], True),
        (["torchrun", "--nproc-per-node", "8", "train.py"], True),
        (["python", "-m", "pkg.main"], True),
        (["python", "-m", "pkg"], True),
        (["bash", "pkg/run.sh"], True),
        (["./train.py"], True),
        (["python", "-m", "torch.distributed.run"], False),
        (["python", "/app/train.py"], False),
        (["python", "../train.py"], False),
        (["python", "-c", "import train"], False),
        (["sleep", "5"], False),
        (["ls", "pkg"], False),
        (["x" * 5000, "a\0b"], False),
    ],
)
def test_a_command_names_files_of_its_directory(
    tmp_path: Path, command: list[str], named: bool
) -> None:
    write(tmp_path, train_dot_py="", pkg__main_dot_py="", pkg__run_dot_sh="")
    (tmp_path / "pkg" / "__main__.py").write_text("")
    assert names_a_file(command, tmp_path) is named
