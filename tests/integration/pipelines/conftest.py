"""One control plane for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.pipelines import Pipelines


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipelines]:
    """A control plane with an S3 server and the kfp SDK, for all tests of pipelines."""
    made = Pipelines(tmp_path_factory.mktemp("pipelines"))
    yield made
    made.close()
