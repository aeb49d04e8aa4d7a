"""A real S3 server, versitygw over a directory, that writes down what it is asked."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store
from tests.support.waiting import stretched
from tools.s3 import build

USER, SECRET = "reader", "not-a-secret-of-anybody"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class S3:
    """The server; its buckets are directories below *root*."""

    def __init__(self, root: Path) -> None:
        program = build.find()
        if program is None:
            pytest.skip("no versitygw: run `make s3`")
        self.buckets = root / "buckets"
        self.buckets.mkdir(parents=True)
        self.log, self._output = root / "access.log", root / "output"
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._command = [
            str(program),
            *("--port", f"127.0.0.1:{self._port}", "--access-log", str(self.log), "posix"),
            str(self.buckets),
        ]
        self.start(SECRET)

    def start(self, secret: str) -> None:
        """Serve with *secret* as the only key."""
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                self._command,
                env={**os.environ, "ROOT_ACCESS_KEY": USER, "ROOT_SECRET_KEY": secret},
                stdout=output,
                stderr=output,
            )
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + stretched(60)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                assert self.process.poll() is None, self._output.read_text()
                assert time.monotonic() < until, "versitygw does not listen"
                time.sleep(0.05)
            else:
                return

    def bucket(self, name: str) -> Bucket:
        """Make a bucket."""
        (self.buckets / name).mkdir()
        return Bucket(self, name)

    def asked(self, what: str) -> list[str]:
        """Return the lines of the access log in which *what* stands."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if what in line]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)


class Bucket:
    """One bucket."""

    def __init__(self, server: S3, name: str) -> None:
        self.server, self.name = server, name
        config: Any = {
            "aws_endpoint": server.url,
            "aws_access_key_id": USER,
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
        }
        self._store = S3Store(name, config=config, client_options={"allow_http": True})

    def put(self, key: str, data: bytes) -> None:
        obstore.put(self._store, key, data, use_multipart=False)

    def delete(self, key: str) -> None:
        obstore.delete(self._store, key)
