"""Models of Hugging Face's hub, fetched into a pod from a hub of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

COMMIT = "5" * 40
FILES = {"config.json": b"{}", "weights/model 1.safetensors": b"w" * (9 << 20)}


class Hub(BaseHTTPRequestHandler):
    """One model whose branch ``main`` is at one commit; gated."""

    names: ClassVar[list[str]] = list(FILES)
    cut = 0
    """Bytes that are missing at the end of each file."""

    def do_GET(self) -> None:
        listing = f"/api/models/org/tiny/revision/{self.server.revision}"  # type: ignore[attr-defined]
        found = {f"/org/tiny/resolve/{COMMIT}/{k.replace(' ', '%20')}": v for k, v in FILES.items()}
        told = {"sha": COMMIT, "siblings": [{"rfilename": name} for name in self.names]}
        found[listing] = json.dumps(told).encode()
        body = found.get(self.path)
        if self.headers["Authorization"] != "Bearer open":
            body = None
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write((body or b"")[: -self.cut or None if self.path != listing else None])

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    """The hub, named by the environment."""
    handler = type("Handler", (Hub,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.revision = "main"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_TOKEN", "open")
    yield server
    server.shutdown()
    server.server_close()


def fetched(uri: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run what the init container of a pod runs."""
    command = [sys.executable, "-m", "lockstep.serve.fetch", uri, str(directory)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=dict(os.environ)
    )


@pytest.mark.parametrize(
    ("uri", "revision"), [("hf://org/tiny", "main"), ("hf://org/tiny:v1", "v1")]
)
def test_all_files_of_a_revision_are_fetched(
    hub: ThreadingHTTPServer, tmp_path: Path, uri: str, revision: str
) -> None:
    hub.revision = revision  # type: ignore[attr-defined]
    found = fetched(uri, tmp_path)
    assert found.returncode == 0, found.stderr
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == FILES


def test_a_token_does_not_follow_to_another_host(hub: ThreadingHTTPServer, tmp_path: Path) -> None:
    seen: list[str | None] = []

    class Storage(BaseHTTPRequestHandler):
        """Where the hub keeps large files: each address is signed by itself."""

        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"large")

        def log_message(self, format: str, *args: object) -> None: ...

    class Sends(hub.RequestHandlerClass):  # type: ignore[name-defined, misc]
        def do_GET(self) -> None:
            if "/resolve/" not in self.path:
                super().do_GET()
                return
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{storage.server_port}/x?signed=1")
            self.end_headers()

    storage = ThreadingHTTPServer(("127.0.0.1", 0), Storage)
    threading.Thread(target=storage.serve_forever, daemon=True).start()
    hub.RequestHandlerClass = Sends
    found = fetched("hf://org/tiny", tmp_path)
    storage.shutdown()
    storage.server_close()
    assert found.returncode == 0, found.stderr
    assert seen == [None] * len(FILES)
    assert (tmp_path / "config.json").read_bytes() == b"large"


@pytest.mark.parametrize(
    ("uri", "change", "words"),
    [
        ("hf://tiny", {}, "hf://ORG/MODEL"),
        ("hf://org/other", {}, "404"),
        ("hf://org/tiny", {"names": ["../../out"]}, "leads out"),
        ("hf://org/tiny", {"names": []}, "there is nothing"),
        ("hf://org/tiny", {"cut": 1}, "broke after"),
    ],
)
def test_models_that_cannot_be_fetched_say_why(
    hub: ThreadingHTTPServer, tmp_path: Path, uri: str, change: dict[str, object], words: str
) -> None:
    for name, value in change.items():
        setattr(hub.RequestHandlerClass, name, value)
    found = fetched(uri, tmp_path)
    assert (found.returncode, words in found.stderr) == (1, True), found.stderr


def test_gated_models_ask_for_a_token(
    hub: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert "set HF_TOKEN" in fetched("hf://org/tiny", tmp_path).stderr
