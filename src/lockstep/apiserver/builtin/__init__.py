"""The built-in kinds: what they are called, their defaults, and their validation."""

from lockstep.apiserver.builtin.kind import Kind
from lockstep.apiserver.builtin.registry import BUILTINS
from lockstep.apiserver.builtin.reviews import REVIEWS

__all__ = ["BUILTINS", "REVIEWS", "Kind"]
