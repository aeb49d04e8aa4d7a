"""Discovery: which groups, versions and resources are served."""

from lockstep.apiserver.discovery.aggregated import group_discovery
from lockstep.apiserver.discovery.listed import (
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
)

__all__ = [
    "api_group",
    "api_group_list",
    "api_resource_list",
    "api_versions",
    "group_discovery",
]
