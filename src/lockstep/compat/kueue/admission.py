"""What Kueue's webhooks and schemas deny, as far as one object shows it.

Facts: kubernetes-sigs/kueue:pkg/webhooks and apis/kueue/v1beta2.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.api.quantity import parse
from lockstep.compat.admission import different, labelled, qualified
from lockstep.compat.kueue.objects import (
    NamespaceSelector,
    Resource,
    ResourceFlavorSpec,
    ResourceGroup,
)
from lockstep.compat.translation import Refused


def check_groups(
    groups: Sequence[ResourceGroup], parent: str, *, nominal_caps_lending: bool
) -> None:
    """Refuse resource groups that Kueue denies; *parent* is the cohort, empty where there is none.

    Raises:
        Refused: for the first field that breaks a rule.
    """
    at = "spec.resourceGroups"
    different(
        (
            (f"{at}[{g}].coveredResources[{r}]", name)
            for g, group in enumerate(groups)
            for r, name in enumerate(group.covered_resources)
        ),
        "a covered resource",
    )
    different(
        (
            (f"{at}[{g}].flavors[{f}].name", flavor.name)
            for g, group in enumerate(groups)
            for f, flavor in enumerate(group.flavors)
        ),
        "a flavor",
    )
    for g, group in enumerate(groups):
        for r, name in enumerate(group.covered_resources):
            qualified(name, f"{at}[{g}].coveredResources[{r}]")
        for f, flavor in enumerate(group.flavors):
            named = [one.name for one in flavor.resources]
            where = f"{at}[{g}].flavors[{f}].resources"
            if group.covered_resources and named != group.covered_resources:
                told = ", ".join(group.covered_resources)
                raise Refused(where, ", ".join(named), f"must be as coveredResources, {told}")
            for r, one in enumerate(flavor.resources):
                _amounts(one, f"{where}[{r}]", parent, nominal_caps_lending)


def _amounts(one: Resource, at: str, parent: str, nominal_caps_lending: bool) -> None:
    for field, value in (
        ("nominalQuota", one.nominal_quota),
        ("borrowingLimit", one.borrowing_limit),
        ("lendingLimit", one.lending_limit),
    ):
        if value is None:
            continue
        try:
            amount = parse(str(value))
        except ValueError as error:
            raise Refused(f"{at}.{field}", value, str(error)) from None
        if amount < 0:
            raise Refused(f"{at}.{field}", value, "must not be negative")
        if field != "nominalQuota" and not parent:
            raise Refused(f"{at}.{field}", value, "leave it out: there is no cohort to share with")
        capped = field == "lendingLimit" and nominal_caps_lending
        if capped and amount > parse(str(one.nominal_quota)):
            allowed = f"must be at most nominalQuota, {one.nominal_quota}"
            raise Refused(f"{at}.{field}", value, allowed)


def check_selector(selector: NamespaceSelector | None) -> None:
    """Refuse a selector of namespaces that no API server takes.

    Raises:
        Refused: for labels that no namespace can have, or an operator without its values.
    """
    if selector is None:
        return
    at = "spec.namespaceSelector"
    labelled(selector.match_labels, f"{at}.matchLabels")
    for i, one in enumerate(selector.match_expressions):
        qualified(one.key, f"{at}.matchExpressions[{i}].key")
        if (one.operator in ("In", "NotIn")) != bool(one.values):
            allowed = f"must be given for In and NotIn alone, not left to {one.operator}"
            raise Refused(f"{at}.matchExpressions[{i}].values", ", ".join(one.values), allowed)


def check_flavor(spec: ResourceFlavorSpec) -> None:
    """Refuse taints and tolerations that Kueue denies.

    Raises:
        Refused: for the first field that breaks a rule.
    """
    labelled(spec.node_labels, "spec.nodeLabels")
    different(
        ((f"spec.nodeTaints[{i}]", (t.key, t.effect)) for i, t in enumerate(spec.node_taints)),
        "a taint's key and effect",
    )
    for i, one in enumerate(spec.tolerations):
        at = f"spec.tolerations[{i}]"
        if not one.key and one.operator != "Exists":
            raise Refused(f"{at}.operator", one.operator, "must be Exists where there is no key")
        if one.operator == "Exists" and one.value:
            raise Refused(f"{at}.value", one.value, "leave it out: Exists fits any value")
        if one.toleration_seconds is not None and one.effect != "NoExecute":
            allowed = "must be NoExecute where tolerationSeconds is set"
            raise Refused(f"{at}.effect", one.effect, allowed)
