"""Running steps on hosts with OpenSSH's client; a host's key is checked, never just accepted."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lockstep.cli.failure import CommandFailed
from lockstep.cli.hosts.file import Host, chosen
from lockstep.cli.hosts.steps import Step

CONNECT: Final = 10
"""Seconds in which a host must take a connection."""
BROKEN: Final = 255
"""ssh's own exit status where the connection failed."""
_REMEDIES: Final = (
    (
        "host key verification failed",
        "compare its key (on the host: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub) and write "
        "it into the file as hostKey, or into known_hosts",
    ),
    ("identification has changed", "the key differs from known_hosts: find out why before more"),
    ("permission denied", "let your key in: ssh-copy-id, or name another with identity:"),
    ("connection refused", "does sshd run there, at that port?"),
    ("timed out", "is the address right, and does a firewall let ssh through?"),
)


class StepFailed(CommandFailed):
    """A step failed on a host; the message begins with both."""

    def __init__(self, host: Host, step: str, what: str, remedy: str) -> None:
        super().__init__(f"{host.name}: {step}: {what}", remedy)


@dataclass(frozen=True, slots=True)
class Reach:
    """How scripts get onto the hosts."""

    folder: Path
    """A private folder for the keys of hosts that the file names."""

    async def trust(self, host: Host) -> None:
        """Note the key that the file says the host has, after the host showed it.

        Raises:
            StepFailed: when the host shows other keys, or none.
        """
        wanted = host.host_key
        if not wanted:
            return
        at = f"[{host.address}]:{host.port}"
        line = f"{at} {wanted}" if not wanted.startswith("SHA256:") else ""
        if not line:
            command = ["ssh-keyscan", "-T", str(CONNECT), "-p", str(host.port), host.address]
            _, out, error = await _run(command, "", 2.0 * CONNECT)
            line, seen = chosen(out, wanted)
            if not line:
                told = f"it shows {', '.join(seen)}, not {wanted}" if seen else _last(error)
                raise StepFailed(
                    host,
                    "host key",
                    told or f"no key within {CONNECT} s",
                    "is it the machine that you mean? If so, correct hostKey"
                    if seen
                    else "does sshd run there, at that address and port?",
                )
            line = f"{at} {line.partition(' ')[2]}"
        self._known(host).write_text(line + "\n")

    async def run(self, host: Host, step: Step) -> str:
        """Run a step and return what it printed.

        Raises:
            StepFailed: when it fails, or takes longer than it may.
        """
        # The script is the shell's input: no word of it, and no key, is in an argument.
        shell = ["sh", "-s"] if host.user == "root" else ["sudo", "-n", "sh", "-s"]
        try:
            status, out, error = await _run(self._ssh(host, shell), step.script, step.patience)
        except TimeoutError:
            what = f"not done after {step.patience:.0f} s"
            raise StepFailed(host, step.name, what, step.remedy) from None
        if status == 0:
            return out
        told = _last(error) or f"exit status {status}"
        remedy = step.remedy
        if status == BROKEN or "sudo" in told:
            text = error.lower()
            remedy = next((fix for words, fix in _REMEDIES if words in text), remedy)
        raise StepFailed(host, step.name, told, remedy)

    def _ssh(self, host: Host, command: list[str]) -> list[str]:
        program = shutil.which("ssh")
        if program is None:
            raise CommandFailed("there is no ssh on PATH", "install OpenSSH's client")
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(CONNECT),
            "ServerAliveInterval": "15",
            "LogLevel": "ERROR",
        }
        if host.host_key:
            options |= {
                "UserKnownHostsFile": str(self._known(host)),
                "GlobalKnownHostsFile": "/dev/null",
                # ssh leaves the port out of the name where it is 22.
                "HostKeyAlias": f"[{host.address}]:{host.port}",
            }
        if host.identity:
            identity = Path(host.identity).expanduser()
            options |= {"IdentityFile": str(identity), "IdentitiesOnly": "yes"}
        flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        where = ["-p", str(host.port), "-l", host.user, host.address]
        return [program, *flags, *where, "--", *command]

    def _known(self, host: Host) -> Path:
        return self.folder / host.name


async def _run(command: list[str], text: str, patience: float) -> tuple[int, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(patience):
            out, error = await process.communicate(text.encode())
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    return process.returncode or 0, out.decode(errors="replace"), error.decode(errors="replace")


def _last(text: str) -> str:
    """Return the last lines of what a command complained about, as one."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" @\r\n")]
    return "; ".join(lines[-3:])[:500]
