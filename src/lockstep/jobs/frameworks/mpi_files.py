"""The files that an MPI job's pods find below /etc/mpi and /root/.ssh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOUNT: Final = "/etc/mpi"
SSH_MOUNT: Final = "/root/.ssh"

HOSTFILE: Final = "hostfile"
MACHINE_FILE: Final = "machinefile"
DISCOVER: Final = "discover_hosts.sh"
SSHD: Final = "sshd.sh"
WAIT: Final = "wait_for_workers.sh"

EXECUTABLE: Final = frozenset({DISCOVER, SSHD, WAIT})

# An ssh session starts with a bare environment: what names the pod's GPUs is passed on, so that
# the ranks see those and no others. The job's key is the hosts' key too, so that the launcher
# knows whom it talks to.
_SSHD: Final = """\
#!/bin/sh
if [ ! -x /usr/sbin/sshd ]; then
  echo "an MPI worker needs sshd, and /usr/sbin/sshd is not there: install openssh-server" >&2
  exit 127
fi
mkdir -p /run/sshd
set --
for name in CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES; do
  value=$(printenv "$name") && set -- "$@" "$name=$value"
done
[ $# -eq 0 ] || set -- -o "SetEnv=$*"
exec /usr/sbin/sshd -De -f /dev/null -p "$LOCKSTEP_SSH_PORT" -o "ListenAddress=$LOCKSTEP_POD_IP" \\
  -h {ssh}/id_ed25519 -o AuthorizedKeysFile={ssh}/authorized_keys -o StrictModes=no \\
  -o PasswordAuthentication=no -o PidFile=none -o MaxStartups=1024 "$@"
"""

_WAIT: Final = """\
#!/bin/sh
# Ends once {need} of the workers let us in.
ready=$(mktemp -d)
while read -r host _; do
  (
    until ssh -o BatchMode=yes -o ConnectTimeout=5 "$host" true </dev/null; do
      sleep 0.5
    done
    : > "$ready/$host"
  ) &
done < {mount}/{hostfile}
said=-1
until count=$(ls "$ready" | wc -l) && [ "$count" -ge {need} ]; do
  [ "$count" -eq "$said" ] || echo "$count of {need} workers are ready"
  said=$count
  sleep 0.2
done
echo "$count of {need} workers are ready"
"""


def hostfile(hosts: Sequence[str], slots: int) -> str:
    """Return Open MPI's host file."""
    return "".join(f"{host} slots={slots}\n" for host in hosts)


def machine_file(hosts: Sequence[str], slots: int) -> str:
    """Return the host file of Intel MPI and MPICH."""
    return "".join(f"{host}:{slots}\n" for host in hosts)


def discover_hosts(hosts: Sequence[str]) -> str:
    """Return the script that prints the workers that run, for elastic Horovod."""
    return "#!/bin/sh\n" + "".join(f"echo {host}\n" for host in hosts)


def sshd() -> str:
    """Return the script that a worker runs unless it has a command of its own."""
    return _SSHD.format(ssh=SSH_MOUNT)


def wait_for_workers(need: int) -> str:
    """Return the script that ends once *need* workers answer."""
    return _WAIT.format(need=need, mount=MOUNT, hostfile=HOSTFILE)


def ssh_config(port: int, *, pinned: bool) -> str:
    """Return the ssh client's configuration; with *pinned* it knows the hosts' key beforehand."""
    checks = (
        "  StrictHostKeyChecking yes\n"
        if pinned
        else "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
    return (
        f"Host *\n  Port {port}\n  IdentityFile ~/.ssh/id_ed25519\n"
        f"  PasswordAuthentication no\n{checks}"
    )
