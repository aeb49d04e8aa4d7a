"""What objects may look like: compiled OpenAPI v3 and structural schemas."""

from lockstep.apiserver.schema.causes import Cause, Reason

__all__ = ["Cause", "Reason"]
