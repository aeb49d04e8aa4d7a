"""What is to be done on a host: a pure function of the hosts file and of what was found there.

Each step is a script for ``sh -s``. It may be run again, and a step whose result is there is not
planned, so that a run that broke off is taken up where it ended.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import join, quote
from typing import Final

from lockstep.cli.hosts.file import Host, Site

PLANE: Final = "control-plane"
NODE: Final = "process-node"
AGENT: Final = "agent"
SERVICES: Final = (AGENT, NODE, PLANE)
UNIT: Final = "/etc/systemd/system/lockstep-{name}.service"
LEAST_PYTHON: Final = (3, 11)

_RUNS: Final = """
runs() {
  if [ -d /run/systemd/system ]; then systemctl is-active -q "lockstep-$1"; return; fi
  pid=$(cat "$D/service/$1.pid" 2>/dev/null) || return 1
  tr '\\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null | grep -qF "$D"
}
ends() {
  if [ -d /run/systemd/system ]; then systemctl disable -q --now "lockstep-$1" || true; return; fi
  runs "$1" || return 0
  kill -TERM "$pid"
  for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
  kill -KILL "$pid"
}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do on one host."""

    name: str
    script: str
    remedy: str
    patience: float = 60.0
    """Seconds after which it has failed."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on a host."""

    values: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Facts:
        """Return the facts of what the probe printed: a key and a value each line."""
        pairs = (line.partition(" ") for line in text.splitlines())
        return cls({key: value.strip() for key, _, value in pairs if value.strip()})

    def __getitem__(self, key: str) -> str:
        return self.values.get(key, "")


def probe(host: Host) -> Step:
    """Return what looks at a host and changes nothing."""
    script = f"""D={quote(host.directory)}; P={quote(host.program)}
{_RUNS}
echo system $(uname -s)
echo uid $(id -u)
for p in python3.13 python3.12 python3.11 python3; do
  v=$($p -c 'import sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
  echo python $v; echo interpreter $p; break
done
[ ! -x "$P" ] || echo program $("$P" --version 2>/dev/null)
! command -v ip >/dev/null || echo ip yes
for s in {" ".join(SERVICES)}; do
  ! runs $s || echo service.$s $(sha256sum < "$D/service/$s.run" | cut -d' ' -f1)
done
for f in "$D"/keys/*; do
  [ ! -f "$f" ] || echo file.$(basename "$f") $(sha256sum < "$f" | cut -d' ' -f1)
done
"""
    return Step("look", script, "is it a Linux machine with a shell?")


def missing(facts: Facts, host: Host, wanted: str, may_install: bool) -> list[str]:
    """Return what keeps a host from becoming a node, each with what mends it."""
    found = []
    if facts["system"] != "Linux":
        found.append(f"it runs {facts['system'] or 'no known system'}, not Linux")
    if facts["uid"] != "0":
        found.append(
            f"user {host.user} is not root and may not use sudo without a password: name "
            "another user, or allow it in /etc/sudoers.d"
        )
    if not facts["ip"]:
        found.append("there is no ip command: install iproute2")
    there = facts["program"].rpartition(" ")[2]
    if there == wanted:
        return found
    if not may_install:
        told = f"is version {there}" if there else "is not there"
        found.append(f"{host.program} {told}, not {wanted}: install it, or leave out program:")
        return found
    version = tuple(int(part) for part in facts["python"].split(".") if part.isdigit())
    if version < LEAST_PYTHON:
        found.append(
            f"Python is {facts['python'] or 'not there, or has no venv'}: install Python 3.11 or "
            "newer with its venv module (python3-venv)"
        )
    return found


def program(host: Host, facts: Facts, wanted: str, requirement: str) -> list[Step]:
    """Return the step that installs Lockstep, where the wanted version is not there."""
    if facts["program"].rpartition(" ")[2] == wanted:
        return []
    venv = quote(f"{host.directory}/venv")
    script = f"""set -e
umask 022; mkdir -p {quote(host.directory)}
{facts["interpreter"]} -m venv {venv}
{venv}/bin/python -m pip install -q {quote(requirement)}
"""
    return [Step("install", script, "can the host reach a package index? see install:", 540.0)]


def plane(site: Site, facts: Facts) -> list[Step]:
    """Return the steps of the control plane, which is on the first host."""
    head = site.hosts[0]
    command = [head.program, "up", "--data", f"{head.directory}/cluster", "--host", head.address]
    command += ["--port", str(site.api_port), "--no-process-node"]
    ask = f"{quote(head.program)} list nodes --kubeconfig {quote(admin(head))}"
    wait = f"""for _ in $(seq 90); do ! {ask} >/dev/null 2>&1 || exit 0; sleep 1; done
tail -n 5 {quote(head.directory)}/service/{PLANE}.log >&2; exit 1
"""
    remedy = f"its log is {head.directory}/service/{PLANE}.log on {head.name}"
    begun = _service(head, facts, PLANE, command)
    return [*begun, *([Step("answer", wait, remedy, 180.0)] if begun else [])]


def admit(site: Site, host: Host) -> Step:
    """Return what has the control plane give out a host's credentials."""
    head = site.hosts[0]
    command = [head.program, "cluster", "admit", host.name, "--address", host.address]
    command += ["--data", f"{head.directory}/cluster"]
    return Step("admit", join(command), f"look at the control plane: {head.name}")


def node(site: Site, host: Host, facts: Facts, files: Mapping[str, str]) -> list[Step]:
    """Return the steps that make a host a node, given the files of its credentials."""
    keys = f"{host.directory}/keys"
    late = {name for name, text in files.items() if facts[f"file.{name}"] != digest(text)}
    steps = []
    if late:
        lines = ["set -e", "umask 077", f"mkdir -p {quote(keys)}"]
        for name in sorted(late):
            packed = base64.b64encode(files[name].encode()).decode()
            target = quote(f"{keys}/{name}")
            lines.append(
                f"base64 -d > {target}.new <<'END'\n{packed}\nEND\nmv {target}.new {target}"
            )
        steps.append(Step("credentials", "\n".join(lines) + "\n", "is its disk full?"))
    before = [_pod_addresses(host, "replace")]
    before += [
        f"ip route replace {one.pods} via {one.address}"
        for one in site.hosts
        if one.name != host.name
    ]
    runs = [host.program, NODE, "--data", f"{host.directory}/node", "--name", host.name]
    runs += ["--kubeconfig", f"{keys}/{NODE}.kubeconfig", "--hide", keys]
    if host.name == site.hosts[0].name:
        runs += ["--hide", f"{host.directory}/cluster"]
    runs += ["--certificate", f"{keys}/node.crt", "--key", f"{keys}/node.key"]
    runs += ["--address", host.address, "--pod-cidr", host.pods]
    watches = [host.program, AGENT, "--node", host.name, "--any-port"]
    watches += ["--kubeconfig", f"{keys}/{AGENT}.kubeconfig", "--shares"]
    watches += [f"{host.directory}/node/shares"]
    # A process that holds credentials that are no longer there must read the new ones.
    known = Facts({}) if late else facts
    steps += _service(host, known, NODE, runs, before)
    return [*steps, *_service(host, known, AGENT, watches)]


def removed(site: Site, host: Host) -> Step:
    """Return what takes Lockstep off a host, with everything that it kept there."""
    lines = [f"D={quote(host.directory)}", _RUNS]
    for name in SERVICES:
        unit = UNIT.format(name=name)
        lines += [f"ends {name}", f"rm -f {unit}"]
    lines.append("[ ! -d /run/systemd/system ] || systemctl daemon-reload")
    lines.append(_pod_addresses(host, "del") + " 2>/dev/null || true")
    others = [one.pods for one in site.hosts if one.name != host.name]
    lines += [f"ip route del {pods} 2>/dev/null || true" for pods in others]
    # Only a folder that this command made is deleted.
    lines.append('[ ! -d "$D/service" ] || rm -rf "$D"')
    return Step("remove", "\n".join(lines) + "\n", "run it again", 120.0)


def admin(head: Host) -> str:
    """Return the file of the administrator's access on the first host."""
    return f"{head.directory}/cluster/kubeconfig"


def digest(text: str) -> str:
    """Return the SHA-256 of a file's text in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _pod_addresses(host: Host, how: str) -> str:
    """Return the command that gives the host the addresses of its pods, or takes them away.

    A route for the subnet would do for sockets, but gloo looks for an interface with the address.
    """
    begin = host.pods.rpartition(".")[0]
    return f"seq 1 254 | sed 's#.*#addr {how} {begin}.&/32 dev lo#' | ip -force -batch -"


def _service(
    host: Host, facts: Facts, name: str, main: list[str], before: Sequence[str] = ()
) -> list[Step]:
    """Return the step that has a command run for good after what is done before, or none."""
    run = join(main)
    text = "\n".join(["#!/bin/sh", "set -e", *before, f"exec {run}", ""])
    if facts[f"service.{name}"] == digest(text):
        return []
    unit = f"""[Unit]
Description=Lockstep {name}
After=network-online.target
Wants=network-online.target
[Service]
ExecStart={host.directory}/service/{name}.run
Restart=always
# Pods outlive a restart of the node.
KillMode=process
[Install]
WantedBy=multi-user.target
"""
    where = f"{host.directory}/service/{name}"
    script = f"""set -e
D={quote(host.directory)}
{_RUNS}
umask 077; mkdir -p "$D/service"
ends {name}
cat > {quote(where)}.run <<'END'
{text}END
chmod 700 {quote(where)}.run
if [ -d /run/systemd/system ]; then
  cat > {UNIT.format(name=name)} <<'END'
{unit}END
  systemctl daemon-reload; systemctl enable -q lockstep-{name}; systemctl restart lockstep-{name}
else
  setsid {quote(where)}.run > {quote(where)}.log 2>&1 < /dev/null &
  echo $! > {quote(where)}.pid
fi
sleep 1
runs {name} || {{ tail -n 5 {quote(where)}.log >&2; exit 1; }}
"""
    return [Step(name, script, f"its log is {where}.log, or journalctl -u lockstep-{name}")]
