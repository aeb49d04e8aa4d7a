"""``python -m tools.cluster COMMAND``: a cluster on this machine."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tools.cluster import cluster, install, programs
from tools.cluster.cluster import Cluster, ClusterError
from tools.cluster.layout import Record


def main() -> int:
    """Do what the command line asks and return the exit status."""
    asked = _parser().parse_args()
    try:
        return int(asked.call(asked))
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__)
    parser.add_argument("--name", default="default", help="which cluster; several may run")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("up", help="start a cluster, or find it")
    one.add_argument("--nodes", type=int, default=3, help="how many nodes (3)")
    one.add_argument("--gpus", type=int, default=0, help="stub GPUs of each node (0)")
    one.set_defaults(call=_up)
    one = commands.add_parser("install", help="install Lockstep from the sources, or upgrade it")
    one.add_argument("options", nargs=argparse.REMAINDER, help="options for helm upgrade")
    one.set_defaults(call=_install)
    commands.add_parser("down", help="end a cluster").set_defaults(call=_down)
    for name in ("stop-node", "start-node"):
        one = commands.add_parser(name, help=f"{name.replace('-', ' ')}, as by its power button")
        one.add_argument("node")
        one.set_defaults(call=_stop if name == "stop-node" else _start)
    one = commands.add_parser("kubectl", help="run kubectl as the administrator")
    one.add_argument("words", nargs=argparse.REMAINDER)
    one.set_defaults(call=_kubectl)
    return parser


def _up(asked: argparse.Namespace) -> int:
    started = time.monotonic()
    found, there = cluster.up(asked.name, asked.nodes, asked.gpus)
    seconds = time.monotonic() - started
    print(f"cluster: {asked.name} {'was there' if there else f'is ready after {seconds:.0f} s'}")
    print(f"cluster: export KUBECONFIG={found.kubeconfig}")
    return 0


def _install(asked: argparse.Namespace) -> int:
    install.install(_existing(asked.name), *asked.options)
    return 0


def _down(asked: argparse.Namespace) -> int:
    there = cluster.down(asked.name)
    print(f"cluster: {asked.name} {'ended' if there else 'did not run'}")
    return 0


def _stop(asked: argparse.Namespace) -> int:
    _existing(asked.name).stop_node(asked.node)
    return 0


def _start(asked: argparse.Namespace) -> int:
    _existing(asked.name).start_node(asked.node)
    return 0


def _kubectl(asked: argparse.Namespace) -> int:
    program = str(programs.kubernetes("kubectl"))
    config = f"--kubeconfig={_existing(asked.name).kubeconfig}"
    os.execv(program, [program, config, *asked.words])  # noqa: S606


def _existing(name: str) -> Cluster:
    record = Record.load(name)
    if record is None:
        raise ClusterError(f"no cluster {name} runs. Run: make cluster")
    return Cluster(record)


if __name__ == "__main__":
    sys.exit(main())
