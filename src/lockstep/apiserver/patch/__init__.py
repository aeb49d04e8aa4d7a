"""Patches of every kind, and who owns which field, as functions of plain objects."""

from lockstep.apiserver.patch.apply import apply, relevant
from lockstep.apiserver.patch.errors import PatchError
from lockstep.apiserver.patch.json_patch import json_patch
from lockstep.apiserver.patch.managed import Writer, track
from lockstep.apiserver.patch.merge_patch import merge_patch
from lockstep.apiserver.patch.strategic import strategic_merge
from lockstep.apiserver.patch.types import Type, builtin, custom

__all__ = [
    "PatchError",
    "Type",
    "Writer",
    "apply",
    "builtin",
    "custom",
    "json_patch",
    "merge_patch",
    "relevant",
    "strategic_merge",
    "track",
]
