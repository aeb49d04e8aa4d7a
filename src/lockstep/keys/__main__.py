"""``python -m lockstep.keys HOST`` prints a certificate for that host, then its key, as PEM.

A process that serves with them calls this, so as not to keep the 9 MB of the X.509 library itself.
"""

from __future__ import annotations

import sys

from lockstep.keys.authority import self_signed

if __name__ == "__main__":
    sys.stdout.buffer.write(b"".join(self_signed(sys.argv[1])))
