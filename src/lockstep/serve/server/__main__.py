"""``python -m lockstep.serve.server``: serve a model, or a directory of them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lockstep.http.server import HttpServer
from lockstep.serve.server.configured import VARIABLE, Configured
from lockstep.serve.server.frameworks import FRAMEWORKS, LoadError, Model, find, load
from lockstep.serve.server.http import BOUNDS, Api
from lockstep.serve.server.repository import Failed, Repository

LAST_ANSWERS = 5.0
"""Seconds that requests under way over gRPC may take when the server is told to end."""


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return what the server was asked for; of KServe's options it skips those it has not."""
    parser = argparse.ArgumentParser(prog="lockstep.serve.server", allow_abbrev=False)
    parser.add_argument("--framework", choices=("any", *FRAMEWORKS), default="any")
    parser.add_argument("--model_name", "--model-name", default="model")
    parser.add_argument("--model_dir", "--model-dir", default="/mnt/models")
    parser.add_argument("--http_port", "--http-port", type=int, default=8080)
    parser.add_argument("--grpc_port", "--grpc-port", type=int, default=8081)
    parser.add_argument(
        "--many",
        action="store_true",
        help="serve each directory below --model_dir as a model of its name, as asked for",
    )
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104 - the pod's own address
    found, unknown = parser.parse_known_args(argv)
    for one in unknown:
        logging.warning("option %s is not known here and is left out", one)
    return found


async def run(options: argparse.Namespace) -> None:
    """Load the model, then serve it until SIGTERM."""
    configured = _configured(options)
    if configured is not None:
        repository = Repository(configured.load, configured.forget)
    else:
        repository = Repository(_loader(options) if options.many else None)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = HttpServer(bounds=BOUNDS)
    server.serve(Api(repository).answer)
    await server.bind(options.host, options.http_port)
    if configured is not None:
        await _load_all(repository, configured)
        logging.info("%d models are ready on port %d", len(repository.names), options.http_port)
    elif not options.many:
        framework = options.framework
        if framework == "any":
            framework = find(options.model_dir)
        name, place = options.model_name, options.model_dir
        repository.add(await asyncio.to_thread(load, framework, name, place))
        logging.info("model %s is ready on port %d", name, options.http_port)
    # Only now: one begun before a model that fails writes after the last line that says why.
    grpc_server = await _grpc(repository, options)
    await ended.wait()
    over_grpc = [grpc_server.stop(LAST_ANSWERS)] if grpc_server is not None else []
    await asyncio.gather(server.close(), *over_grpc)


def _configured(options: argparse.Namespace) -> Configured | None:
    """Return what a file names, where one is given and no model lies in the server's directory."""
    file = os.environ.get(VARIABLE, "")
    there = options.many or Path(options.model_dir).is_dir()
    return Configured(Path(file)) if file and not there else None


async def _load_all(repository: Repository, configured: Configured) -> None:
    """Load what the file names; a model that cannot be loaded leaves the others served."""
    for name in configured.uris():
        try:
            await repository.load(name)
        except Failed as error:
            logging.warning("model %s is not served: %s", name, error)
    repository.settled = True


def _loader(options: argparse.Namespace) -> Callable[[str, str], Model]:
    """Return what loads a model by its name below the server's directory."""
    above = Path(options.model_dir).resolve()

    def loaded(name: str, _: str = "") -> Model:
        place = (above / name).resolve()
        if place.parent != above or not place.is_dir():
            raise LoadError(f"there is no directory {name!r} in {options.model_dir}")
        return load(find(str(place)), name, str(place))

    return loaded


async def _grpc(repository: Repository, options: argparse.Namespace) -> Any:
    """Serve over gRPC as well, where grpcio is installed and a port is given."""
    if not options.grpc_port:
        return None
    try:
        from lockstep.serve.server.grpc_v2 import serve
    except ImportError:
        logging.warning("gRPC is not served: pip install 'lockstep[serve]'")
        return None
    return await serve(repository, options.host, options.grpc_port)


def main() -> None:
    """Run the server; it ends with 1, and a last line that says why, without its model."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s")
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(arguments(sys.argv[1:])))
    except LoadError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
