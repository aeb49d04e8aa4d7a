"""Rules of our kinds that a single field's shape cannot say: across fields, and of lists."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.api.gang import GangGroup, GangSpec
from lockstep.api.meta import Condition
from lockstep.api.node_policy import NodePolicySpec
from lockstep.api.node_pool import NodePoolSpec, PoolProvider
from lockstep.api.price_list import Price
from lockstep.api.topology import TopologySpec
from lockstep.api.training import Role, TrainingJobSpec
from lockstep.api.wire import Json


@dataclass(frozen=True)
class Rule:
    """A rule across fields, in CEL: which field it blames, and what to write instead."""

    rule: str
    message: str
    field: str = ""

    def as_json(self) -> Json:
        """Return the rule as ``x-kubernetes-validations`` has it."""
        built = {"rule": self.rule, "message": self.message}
        if self.field:
            built["fieldPath"] = self.field
        return built


def _bound(low: str, high: str, blamed: str, other: str, words: str) -> Rule:
    # No messageExpression with the values: kube-apiserver takes the length of string(int) for
    # unbounded and refuses the whole CRD for its estimated cost.
    return Rule(
        f"!has(self.{low}) || !has(self.{high}) || self.{low} <= self.{high}",
        f"{words} {other}",
        f".{blamed}",
    )


_TIERS_DIFFER = Rule(
    "self.tiers.all(t, self.tiers.exists_one(other, other.name == t.name))",
    "each must have a name of its own",
    ".tiers",
)
RULES: dict[type, tuple[Rule, ...]] = {
    GangSpec: (
        Rule(
            "has(self.minMember) != (has(self.groups) && size(self.groups) > 0)",
            "exactly one of minMember (one group) and groups (several) must be set",
        ),
    ),
    GangGroup: (
        _bound("min", "desired", "desired", "min", "must not be less than"),
        Rule(
            "!has(self.spares) || self.spares == 0 || (has(self.min) && has(self.desired)"
            " && self.spares <= self.desired - self.min)",
            "must not exceed desired less min",
            ".spares",
        ),
    ),
    Role: (
        _bound("min", "replicas", "min", "replicas", "must not exceed"),
        _bound("replicas", "max", "max", "replicas", "must not be less than"),
    ),
    TrainingJobSpec: (
        Rule(
            "self.framework == oldSelf.framework",
            "cannot change; create another job",
            ".framework",
        ),
        Rule(
            "!(self.framework in ['mpi', 'horovod']) || (self.roles.exists(r, r.name == 'launcher')"
            " && self.roles.exists(r, r.name == 'worker'))",
            "frameworks mpi and horovod need the roles launcher and worker",
            ".roles",
        ),
    ),
    Price: (
        Rule(
            "has(self.nodeHour) != has(self.gpuHour)",
            "exactly one of nodeHour and gpuHour must be set",
        ),
    ),
    NodePoolSpec: (_bound("min", "max", "min", "max", "must not exceed"),),
    PoolProvider: (
        Rule(
            "[has(self.simulated), has(self.provisioningRequest), has(self.karpenter), "
            "has(self.command), has(self.hook)].filter(given, given).size() == 1",
            "exactly one of simulated, provisioningRequest, karpenter, command and hook must be "
            "set",
        ),
    ),
    TopologySpec: (_TIERS_DIFFER,),
    NodePolicySpec: (_TIERS_DIFFER,),
}

# Lists whose items are told apart by a key, so that appliers can own single items. Tiers are not
# among them: their order says something, and merged tiers of two appliers would have none.
LIST_KEYS: dict[type, str] = {
    Condition: "type",
    Role: "name",
    GangGroup: "name",
}
