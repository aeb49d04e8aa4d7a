"""A Prometheus that the tests of a file share."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import eventually_sync

WITHIN = 30.0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that scrapes nothing."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs prometheus")
    place: Path = tmp_path_factory.mktemp("prometheus")
    (place / "prometheus.yml").write_text("scrape_configs: []\n")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address = f"127.0.0.1:{port}"
    options = [f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data"]
    process = subprocess.Popen(
        [program, *options, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL
    )

    def answers() -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    eventually_sync(answers, WITHIN, "prometheus answers")
    yield f"http://{address}"
    process.terminate()
    process.wait()
