"""Tables: what ``kubectl get`` prints, for built-in kinds and for custom resources."""

from lockstep.apiserver.tables.layouts import Table, builtin, custom

__all__ = ["Table", "builtin", "custom"]
