"""Watches: every durable change, encoded once and shared among those who watch it."""

from lockstep.apiserver.watch.hub import Hub, Watcher
from lockstep.apiserver.watch.stream import WatchRequest, watch_stream

__all__ = ["Hub", "WatchRequest", "Watcher", "watch_stream"]
