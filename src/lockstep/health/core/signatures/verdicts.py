"""What signatures say of a fault: its class, and what is done about it."""

from __future__ import annotations

from typing import Final

from lockstep.api.diagnosis import Act, Class

Fault = tuple[Class, Act]

HARDWARE_ISOLATE: Final[Fault] = ("hardware", "isolate_node")
HARDWARE_OBSERVE: Final[Fault] = ("hardware", "observe")
HARDWARE_RESET: Final[Fault] = ("hardware", "reset_gpu")
NETWORK_ISOLATE: Final[Fault] = ("network", "isolate_node")
NETWORK_RESTART: Final[Fault] = ("network", "restart_in_place")
PLATFORM_ISOLATE: Final[Fault] = ("platform", "isolate_node")
PLATFORM_RESTART: Final[Fault] = ("platform", "restart_in_place")
SOFTWARE_ISOLATE: Final[Fault] = ("software", "isolate_node")
SOFTWARE_RESTART: Final[Fault] = ("software", "restart_in_place")
STORAGE_PAUSE: Final[Fault] = ("storage", "pause_job")
UNKNOWN_OBSERVE: Final[Fault] = ("unknown", "observe")
UNKNOWN_RESTART: Final[Fault] = ("unknown", "restart_in_place")
USER_STOP: Final[Fault] = ("user", "stop_and_tell_user")
