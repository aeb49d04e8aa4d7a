"""Kubernetes' protobuf, in which Go clients send built-in kinds and would rather have answers."""

from lockstep.apiserver.protobuf.decode import decode
from lockstep.apiserver.protobuf.encode import encode, frame
from lockstep.apiserver.protobuf.tables import MEDIA_TYPE, NotProtobuf

__all__ = ["MEDIA_TYPE", "NotProtobuf", "decode", "encode", "frame"]
