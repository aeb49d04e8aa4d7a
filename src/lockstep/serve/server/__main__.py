"""``python -m lockstep.serve.server``: serve one model."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys

from lockstep.serve.server.frameworks import FRAMEWORKS, LoadError, load
from lockstep.serve.server.http import Connection
from lockstep.serve.server.repository import Repository

LAST_ANSWERS = 5.0
"""Seconds that requests under way may take when the server is told to end."""


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return what the server was asked for; of KServe's options it skips those it has not."""
    parser = argparse.ArgumentParser(prog="lockstep.serve.server", allow_abbrev=False)
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--model_name", "--model-name", default="model")
    parser.add_argument("--model_dir", "--model-dir", default="/mnt/models")
    parser.add_argument("--http_port", "--http-port", type=int, default=8080)
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104 - the pod's own address
    found, unknown = parser.parse_known_args(argv)
    for one in unknown:
        logging.warning("option %s is not known here and is left out", one)
    return found


async def run(options: argparse.Namespace) -> None:
    """Load the model, then serve it until SIGTERM."""
    repository = Repository()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    connections: set[Connection] = set()
    server = await loop.create_server(
        lambda: Connection(repository, connections),
        options.host,
        options.http_port,
        backlog=4096,
    )
    model = await asyncio.to_thread(load, options.framework, options.model_name, options.model_dir)
    repository.add(model)
    logging.info("model %s is ready on port %d", options.model_name, options.http_port)
    await ended.wait()
    server.close()
    answers = [one.idle() for one in connections]
    if answers:
        await asyncio.wait([asyncio.ensure_future(one) for one in answers], timeout=LAST_ANSWERS)


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
