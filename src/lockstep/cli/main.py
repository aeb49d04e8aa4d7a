"""The root of the ``lockstep`` command.

Commands are named here and imported when they are called, so that ``lockstep --help`` and shell
completion stay fast however large the rest grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from lockstep.cli import wording
from lockstep.cli.failure import reported


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that has not been imported yet."""

    name: str
    section: str
    help: str
    module: str
    group: bool = False
    """Whether the module's app is a group of that name, or holds the command among others."""


RUN = "Run Lockstep"
JOBS = "Jobs"
CLUSTER = "Cluster"
PARTS = "Parts of Lockstep, each alone against any API server"

ENTRIES = (
    Entry("up", RUN, "Run the embedded control plane on this machine.", "up.command"),
    Entry("status", RUN, "Show which server this is and what is there.", "standing"),
    Entry("down", RUN, "Stop it.", "up.command"),
    Entry("submit", JOBS, "Submit a job from flags, or objects from a file.", "submit"),
    Entry("list", JOBS, "List jobs, gangs, queues, nodes, pods or events.", "listing"),
    Entry("get", JOBS, "Get objects by name.", "listing"),
    Entry("describe", JOBS, "Show everything worth knowing about one object.", "listing"),
    Entry("explain", JOBS, "Say why a job, a gang or a pod waits.", "insight"),
    Entry("diagnose", JOBS, "Say from logs what failed, and whose fault it is.", "diagnose"),
    Entry("advise", JOBS, "Say why a job is slow, and what mends it.", "advise"),
    Entry("logs", JOBS, "Print what a job's pods, or one pod, wrote.", "logs"),
    Entry("exec", JOBS, "Run a command in a pod of a job.", "inside"),
    Entry("attach", JOBS, "Show what a running container writes from now on.", "inside"),
    Entry("cp", JOBS, "Copy files into a pod of a job or out of it.", "inside"),
    Entry("port-forward", JOBS, "Serve ports of a job's pod on this machine.", "inside"),
    Entry("wait", JOBS, "Wait for jobs to end, run or go.", "scaling"),
    Entry("scale", JOBS, "Change how many pods a job has.", "scaling"),
    Entry("share", JOBS, "Change a running pod's share of its GPUs.", "share"),
    Entry("suspend", JOBS, "Take jobs off the cluster and keep them.", "lifecycle"),
    Entry("resume", JOBS, "Let suspended jobs wait for their place again.", "lifecycle"),
    Entry("restart", JOBS, "Start jobs anew, with what was changed of them.", "lifecycle"),
    Entry("delete", JOBS, "Delete jobs with their pods, or other objects.", "lifecycle"),
    Entry("pipeline", JOBS, "Run graphs of steps, stop and repeat them.", "pipeline", group=True),
    Entry("arena", JOBS, "Take Arena's command lines.", "arena.app"),
    Entry("dev", JOBS, "Make and list places to work in: notebooks, shells.", "dev", group=True),
    Entry("ssh", JOBS, "Open a shell in a notebook with OpenSSH's client.", "ssh"),
    Entry("code", JOBS, "Open a notebook in VS Code or another editor.", "code"),
    Entry("tensorboard", JOBS, "Show the curves of a job's events in the browser.", "tensorboard"),
    Entry("top", CLUSTER, "Show who uses which GPUs, and what each does.", "top"),
    Entry("cost", CLUSTER, "Show who used which GPUs, and what it cost.", "cost"),
    Entry("report", CLUSTER, "Report a month: what GPU time went into, what to do.", "report"),
    Entry("estimate", JOBS, "Say how much GPU memory a training step takes.", "estimate"),
    Entry("queue", CLUSTER, "List, create, explain and delete queues.", "queues", group=True),
    Entry("team", CLUSTER, "List, create, change and delete teams.", "team", group=True),
    Entry("data", CLUSTER, "List, warm and evict datasets.", "data", group=True),
    Entry("serve", CLUSTER, "List, release and roll back inference services.", "serve", group=True),
    Entry("node", CLUSTER, "List, cordon and drain nodes.", "nodes", group=True),
    Entry("pool", CLUSTER, "List, describe and explain node pools.", "pool", group=True),
    Entry("cluster", CLUSTER, "Set Lockstep up on a cluster.", "cluster", group=True),
    Entry("network", CLUSTER, "Check and discover the training network.", "network", group=True),
    Entry("doctor", CLUSTER, "Say what nodes have, what is missing, what mends it.", "doctor"),
    Entry("defrag", CLUSTER, "Move jobs so that one that waits fits; shown first.", "defrag"),
    Entry("snapshot", CLUSTER, "Write down what the scheduler goes by.", "snapshot"),
    Entry("simulate", CLUSTER, "Run the scheduler over simulated time.", "simulate", group=True),
    Entry("console", CLUSTER, "Open the console in the browser, or serve it.", "console"),
    Entry("version", CLUSTER, "Print the versions of client and server.", "standing"),
    Entry("manifests", CLUSTER, "Print manifests to apply to a cluster.", "manifests", group=True),
    Entry("apiserver", PARTS, "Run the embedded API server.", "processes"),
    Entry("scheduler", PARTS, "Run the gang scheduler.", "processes"),
    Entry("controllers", PARTS, "Run the job controllers.", "processes"),
    Entry("recorder", PARTS, "Record who used which GPU.", "processes"),
    Entry("router", PARTS, "Carry requests to inference services.", "processes"),
    Entry("gateway", PARTS, "Serve kernels and notebooks.", "processes"),
    Entry("admission", PARTS, "Send pods with shares of GPUs here.", "processes"),
    Entry("process-node", PARTS, "Make this machine a node that runs pods.", "node_processes"),
    Entry("agent", PARTS, "Find, hand out and watch this node's devices.", "agent"),
    Entry("data-cache", PARTS, "Keep datasets on this node.", "node_processes"),
    Entry("simulate-nodes", PARTS, "Simulate nodes with GPUs.", "node_processes"),
)


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and imports one when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which help shows them."""
        return [entry.name for entry in ENTRIES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command called *cmd_name*; None when there is none."""
        entry = next((e for e in ENTRIES if e.name == cmd_name), None)
        if entry is None:
            return None
        app = import_module(f"lockstep.cli.{entry.module}").app
        group = typer.main.get_group(app)
        if entry.group:
            group.name = entry.name
            return group
        return group.commands[entry.name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that *args* begins with, or say which ones look like it."""
        from typer._click.exceptions import UsageError

        # The parent class looks for similar names among commands that are loaded.
        self.commands = cast("Any", dict.fromkeys(self.list_commands(ctx)))
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            if meant := wording.command(args[0]):
                error.message = f"No such command {args[0]!r}. Did you mean {meant!r}?"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or say which options an unknown one may stand for."""
        from typer._click.exceptions import NoSuchOption

        try:
            return super().invoke(ctx)
        except NoSuchOption as error:
            params = error.ctx.command.params if error.ctx else []
            known = [name for one in params for name in one.opts]
            near = wording.option(error.option_name, known) or error.possibilities
            if near:
                meant = ", ".join(repr(one) for one in near)
                error.message = f"No such option {error.option_name!r}. Did you mean {meant}?"
                error.possibilities = None
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section, without importing any of them."""
        for section in dict.fromkeys(entry.section for entry in ENTRIES):
            with formatter.section(section):
                formatter.write_dl([(e.name, e.help) for e in ENTRIES if e.section == section])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a command's name without importing any of them."""
        from typer._click.shell_completion import CompletionItem

        return [
            CompletionItem(e.name, help=e.help) for e in ENTRIES if e.name.startswith(incomplete)
        ]


app = typer.Typer(
    cls=LazyGroup,
    help="Run AI workloads on GPU clusters: gangs, training jobs, an embedded control plane.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from lockstep import __version__

        typer.echo(f"lockstep {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the client's version.", callback=_show_version, is_eager=True
        ),
    ] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace; also behind the command.")
    ] = "",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Which API server; also behind the command.")
    ] = None,
    context: Annotated[
        str, typer.Option(help="Context of the kubeconfig; also behind the command.")
    ] = "",
) -> None:
    if not (namespace or kubeconfig or context):
        return
    from lockstep.cli import connect
    from lockstep.cli.target import Target

    connect.before_command = Target(kubeconfig, context or None, namespace or None)


def main() -> None:
    """Run the command line; ends the process with the exit code."""
    reported(lambda: app(prog_name="lockstep"))
