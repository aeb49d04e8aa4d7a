"""The built-in kinds: what they are called, their defaults, and their validation."""

from lockstep.apiserver.builtin.kind import Kind
from lockstep.apiserver.builtin.registry import BUILTINS

__all__ = ["BUILTINS", "Kind"]
