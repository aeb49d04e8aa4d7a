"""Other people's programs, as they come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kubectl import KUBECTLS, Kubectl, need_kubectl


@pytest.fixture(scope="module", params=KUBECTLS)
def program(request: pytest.FixtureRequest) -> str:
    """Each kubectl in turn."""
    return need_kubectl(request.param)


@pytest.fixture(scope="module")
def kubectl_server(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An embedded server for all tests of a file with the same kubectl."""
    running = ApiServer(tmp_path_factory.mktemp("cluster")).start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def kubectl(
    program: str, kubectl_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    home: Path = tmp_path_factory.mktemp("home")
    return Kubectl(program, kubectl_server.kubeconfig, home)
