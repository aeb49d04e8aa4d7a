"""A real Prometheus that scrapes what a test names, and promtool."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.s3 import free_port
from tests.support.waiting import stretched
from tools.prometheus import build


def promtool() -> Path:
    found = build.PROMTOOL.find()
    if found is None:
        pytest.skip("no promtool: run `make prometheus`")
    return found


class Prometheus:
    """The server on a directory of its own; it scrapes each second."""

    def __init__(self, root: Path, *targets: str) -> None:
        program = build.PROMETHEUS.find()
        if program is None:
            pytest.skip("no Prometheus: run `make prometheus`")
        root.mkdir(parents=True, exist_ok=True)
        jobs = [{"job_name": "lockstep", "static_configs": [{"targets": list(targets)}]}]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        (root / "prometheus.yaml").write_text(json.dumps(config))
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        with (root / "output").open("wb") as output:
            self.process = subprocess.Popen(
                [
                    str(program),
                    f"--config.file={root / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={root / 'data'}",
                    f"--web.listen-address={address}",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._await()

    def _await(self) -> None:
        end = time.monotonic() + stretched(60)
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310
                    return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end
                time.sleep(0.05)

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series that *expression* gives now."""
        asked = urllib.parse.urlencode({"query": expression})
        url = f"{self.url}/api/v1/query?{asked}"
        with urllib.request.urlopen(url, timeout=stretched(20)) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
        assert found["status"] == "success", found
        return [(one["metric"], float(one["value"][1])) for one in found["data"]["result"]]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
