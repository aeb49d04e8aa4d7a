"""Reading the protobuf bodies that Go clients send for built-in kinds."""

from lockstep.apiserver.protobuf.decode import NotProtobuf, decode

__all__ = ["NotProtobuf", "decode"]
