"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

from lockstep.cli.output import Format
from lockstep.cli.target import Only, Target

Cluster = Annotated[Target, Only("kubeconfig", "context")]
Namespaced = Annotated[Target, Only("namespace", "kubeconfig", "context")]
Everywhere = Annotated[Target, Only("namespace", "all_namespaces", "kubeconfig", "context")]
Output = Annotated[Format, "--output", "-o", "How to print it."]
Watch = Annotated[bool, "--watch", "-w", "Go on printing what changes, until interrupted."]
DryRun = Annotated[bool, "--dry-run", "Print the object and send nothing."]
Force = Annotated[bool, "--force", "Delete queues that have children or running jobs too."]
