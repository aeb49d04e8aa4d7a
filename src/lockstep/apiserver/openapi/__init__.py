"""OpenAPI v3 documents of what is served."""

from lockstep.apiserver.openapi.definition import Definition
from lockstep.apiserver.openapi.served import OpenApi

__all__ = ["Definition", "OpenApi"]
