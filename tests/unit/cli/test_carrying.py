"""Which jobs take the directory along, and what is written into them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.cli import carrying
from lockstep.cli.build import training_job
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput
from lockstep.cli.flags import Carry, Flags, Framework
from lockstep.kube.errors import Forbidden

HERE = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
FORBIDDEN = Forbidden(403, "Forbidden", "no")


class Server:
    """A cluster with process nodes on the machines *boots*; none may be seen without."""

    def __init__(self, *boots: str, refuses: bool = False) -> None:
        self.boots, self.refuses = boots, refuses
        self.sent: list[str] = []

    async def list(self, *_: Any, **__: Any) -> Any:
        if not self.boots:
            raise FORBIDDEN
        infos = [SimpleNamespace(node_info=SimpleNamespace(boot_id=one)) for one in self.boots]
        return SimpleNamespace(items=[SimpleNamespace(status=one) for one in infos])

    async def upload(self, _: Any, namespace: str, parts: dict[str, bytes]) -> int:
        if self.refuses:
            raise FORBIDDEN
        self.sent.append(namespace)
        return sum(map(len, parts.values()))


async def carried(
    here: Path, server: Server, monkeypatch: pytest.MonkeyPatch, how: Carry, **flags: Any
) -> dict[str, Any]:
    """Return the job as it is sent."""
    monkeypatch.setattr(carrying, "upload", server.upload)
    given = {"framework": Framework.PLAIN, "command": ["python", "train.py"], **flags}
    job = training_job(Flags(**given), str(here))
    session: Any = Session(server, "default", False)  # type: ignore[arg-type]
    await carrying.carry(session, [job], how, str(here))
    return job


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "requirements.txt").write_text("torch\n")
    return tmp_path


@pytest.mark.parametrize(
    "case",
    [
        ([HERE], {}, Carry(), "record"),
        ([HERE, "other"], {}, Carry(), "sent"),
        (["other"], {}, Carry(), "sent"),
        ([], {}, Carry(), "sent"),
        ([HERE], {"image": "pytorch/pytorch"}, Carry(), "sent"),
        ([HERE], {}, Carry(no_code=True), ""),
        (["other"], {"image": "x"}, Carry(no_code=True), ""),
        ([HERE], {"command": ["sleep", "5"]}, Carry(), ""),
        (["other"], {"command": ["python", "/app/train.py"], "image": "x"}, Carry(), ""),
        (["other"], {"image": "x", "working_dir": "/workspace"}, Carry(), ""),
        (["other"], {"simulated": True}, Carry(), ""),
    ],
)
async def test_a_directory_goes_where_it_is_not(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[list[str], dict[str, Any], Carry, str],
) -> None:
    boots, flags, how, is_sent = case
    job = await carried(here, Server(*boots), monkeypatch, how, **flags)
    code = job["spec"].get("code")
    assert {None: "", True: "sent", False: "record"}[code and "parts" in code] == is_sent
    main = job["spec"]["roles"][0]["template"]["spec"]["containers"][0]
    if is_sent == "sent":
        assert "workingDir" not in main
    elif "image" not in flags and "simulated" not in flags:
        assert main["workingDir"] == str(here)


async def test_a_stated_directory_is_always_sent(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how, command = Carry(code=here), ["sh", "-c", "python train.py"]
    job = await carried(here, Server(HERE), monkeypatch, how, command=command)
    assert job["spec"]["code"]["parts"]
    placed = await carried(here, Server(HERE), monkeypatch, how, working_dir="/srv/app", image="x")
    assert placed["spec"]["code"]["directory"] == "/srv/app"


async def test_a_record_that_cannot_be_kept_hinders_no_job(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await carried(here, Server(HERE, refuses=True), monkeypatch, Carry())
    assert (job["spec"]["code"]["files"], job["spec"]["code"]["packages"]) == (2, "")
    with pytest.raises(Forbidden):
        await carried(here, Server(HERE, refuses=True), monkeypatch, Carry(code=here))


async def test_a_directory_that_cannot_be_sent_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match=r"--code .*nowhere: .*nowhere is no directory"):
        await carried(here, Server(HERE), monkeypatch, Carry(code=here / "nowhere"))
