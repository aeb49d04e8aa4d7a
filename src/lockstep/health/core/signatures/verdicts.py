"""What signatures say of a fault: its class, what is done about it, and how sure that is."""

from __future__ import annotations

from functools import partial
from typing import Final

from lockstep.health.core.signature import Verdict

HARDWARE_ISOLATE: Final = partial(Verdict, "hardware", "isolate_node")
HARDWARE_OBSERVE: Final = partial(Verdict, "hardware", "observe")
HARDWARE_RESET: Final = partial(Verdict, "hardware", "reset_gpu")
NETWORK_ISOLATE: Final = partial(Verdict, "network", "isolate_node")
NETWORK_OBSERVE: Final = partial(Verdict, "network", "observe")
NETWORK_RESTART: Final = partial(Verdict, "network", "restart_in_place")
NETWORK_STOP: Final = partial(Verdict, "network", "stop_and_tell_user")
PLATFORM_ISOLATE: Final = partial(Verdict, "platform", "isolate_node")
PLATFORM_RESTART: Final = partial(Verdict, "platform", "restart_in_place")
SOFTWARE_ISOLATE: Final = partial(Verdict, "software", "isolate_node")
SOFTWARE_OBSERVE: Final = partial(Verdict, "software", "observe")
SOFTWARE_RESTART: Final = partial(Verdict, "software", "restart_in_place")
STORAGE_ISOLATE: Final = partial(Verdict, "storage", "isolate_node")
STORAGE_PAUSE: Final = partial(Verdict, "storage", "pause_job")
UNKNOWN_OBSERVE: Final = partial(Verdict, "unknown", "observe")
UNKNOWN_RESTART: Final = partial(Verdict, "unknown", "restart_in_place")
USER_RESTART: Final = partial(Verdict, "user", "restart_in_place")
USER_STOP: Final = partial(Verdict, "user", "stop_and_tell_user")
