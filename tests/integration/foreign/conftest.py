"""Other people's programs, as they come."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kubectl import Kubectl, require_kubectl


@pytest.fixture(scope="module")
def kubectl(shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    home: Path = tmp_path_factory.mktemp("home")
    return Kubectl(require_kubectl(), shared_server.kubeconfig, home)
