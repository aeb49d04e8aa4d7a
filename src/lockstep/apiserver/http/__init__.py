"""HTTP/1.1 over TLS, as far as an API server needs it."""

from lockstep.apiserver.http.message import Peer, Request, Response, Stream
from lockstep.apiserver.http.protocol import Handler, HttpProtocol
from lockstep.apiserver.http.tunnel import Tunnel

__all__ = ["Handler", "HttpProtocol", "Peer", "Request", "Response", "Stream", "Tunnel"]
