"""What objects may look like: compiled OpenAPI v3 and structural schemas."""

from lockstep.apiserver.schema.causes import Cause, Reason
from lockstep.apiserver.schema.compiled import Schema

__all__ = ["Cause", "Reason", "Schema"]
