"""HTTP/1.1 for servers and clients; what is received is parsed by httptools."""

from lockstep.http.connections import Connections
from lockstep.http.message import Peer, Request, Response, Stream
from lockstep.http.protocol import Handler, HttpProtocol
from lockstep.http.tunnel import ByteTunnel, Tunnel

__all__ = [
    "ByteTunnel",
    "Connections",
    "Handler",
    "HttpProtocol",
    "Peer",
    "Request",
    "Response",
    "Stream",
    "Tunnel",
]
