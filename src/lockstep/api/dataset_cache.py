"""What one node keeps of one dataset: ordered by the controller, told by the node's cache."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

OTHER_SCHEMES = ("hf", "hdfs", "webhdfs", "sftp", "ssh", "ftp", "smb", "oss")
"""Sources that are read through fsspec; most need a package of their own on the node."""
DRIVER = "data.lockstep.dev"
"""The CSI driver that PersistentVolumes of datasets name."""
CACHE_NODE_LABEL = "lockstep.dev/cache-node"
"""On a DatasetCache: the node whose cache is meant."""
CAN_CACHE_LABEL = "lockstep.dev/data-cache"
"""On a node: it starts a data cache once a dataset wants one."""

NO_VIEWS_ANNOTATION = "data.lockstep.dev/no-views"
"""On a node: why its data cache can show no views, so that pods wait for whole datasets."""
OWN_CACHE_ANNOTATION = "data.lockstep.dev/own-cache"
"""On a Dataset: it is cached without a runtime of its name, by as many nodes as need it."""
QUOTA_ANNOTATION = "data.lockstep.dev/quota"
"""On a Namespace: how much its datasets may take together on each node, as ``100Gi``."""
EVERYWHERE = "everywhere"
"""Value of that annotation: every node that may caches it, whether a pod there reads it or not."""


class SecretKey(Wire, frozen=True):
    """One key of a Secret of the same namespace."""

    name: Annotated[str, Meta(min_length=1)]
    """Name of the Secret."""
    key: Annotated[str, Meta(min_length=1)]
    """Key in it."""
    optional: bool = False
    """Whether it may be missing."""


class CacheMount(Wire, frozen=True):
    """A source, and where its files lie in the dataset."""

    uri: str
    """Where the files come from, as `s3://bucket/prefix`."""
    path: str = ""
    """Directory in the dataset; empty is its root."""
    options: dict[str, str] = {}
    """Settings of the store, by name."""
    secrets: dict[str, SecretKey] = {}
    """Settings whose values stand in Secrets."""


class CacheTier(Wire, frozen=True):
    """Room for a dataset on one medium of the node."""

    medium: Literal["MEM", "SSD", "HDD"]
    """Kind of medium."""
    path: str = ""
    """Directory; empty is one of the cache's own."""
    bytes: Annotated[int, Meta(ge=0)] = 0
    """Quota; 0 is what the medium has free."""
    high: Annotated[float, Meta(gt=0, le=1)] = 0.95
    """Share of the quota that may fill."""
    low: Annotated[float, Meta(gt=0, le=1)] = 0.7
    """Share of the quota to which eviction goes down."""


class CachePeer(Wire, frozen=True):
    """A node that keeps the dataset too."""

    node: str
    """Name of the node."""
    address: str = ""
    """Where its cache listens; empty until it does."""
    certificate: str = ""
    """SHA-256 of the certificate that it shows; empty without TLS."""
    whole: bool = False
    """Whether it has all of the bound version."""


class DatasetCacheSpec(Wire, frozen=True):
    """What the node is to keep."""

    node: Annotated[str, Meta(min_length=1)]
    """Name of the node."""
    dataset: Annotated[str, Meta(min_length=1)]
    """Name of the dataset."""
    mounts: list[CacheMount] = []
    """Sources of the dataset."""
    tiers: list[CacheTier] = []
    """Room for it, fastest first."""
    version: str = ""
    """Version that is bound; empty until the source was listed."""
    reload: str = ""
    """A new value makes the cache list the source again."""
    targets: list[str] = []
    """Paths in the dataset that are to be on the node."""
    reading: bool = False
    """Whether pods of the node mount the dataset; it stays then."""
    jobs: list[str] = []
    """Jobs whose pods of the node mount the dataset, or such pods by name."""
    pin: bool = False
    """Whether it stays while other datasets need the room."""
    quota: Annotated[int, Meta(ge=0)] = 0
    """Bytes that datasets of the namespace may take together; 0: all."""
    rate: Annotated[int, Meta(ge=0)] = 0
    """Bytes a second that targets may be fetched with; 0: no limit."""
    timeout: Annotated[int, Meta(gt=0)] = 60
    """Seconds that a read waits for a source that fails."""
    peers: list[CachePeer] = []
    """Nodes of the dataset, this one among them."""
    token: SecretKey | None = None
    """What nodes and clients of the dataset show each other."""


class TargetStatus(Wire, frozen=True):
    """How much of one target is on the node."""

    files: int = 0
    bytes: int = 0
    cached_files: int = 0
    cached_bytes: int = 0

    @property
    def done(self) -> bool:
        """Whether all of it is there."""
        return self.cached_files == self.files


class DatasetCacheStatus(Wire, frozen=True):
    """What the node keeps."""

    phase: Literal["Pending", "Loading", "Ready", "Failed"] = "Pending"
    """Ready: all targets are on the node."""
    reason: str = ""
    """Why it failed, in one word."""
    message: str = ""
    """Why it failed, in words."""
    listed: str = ""
    """Version that the source had when it was last listed."""
    version: str = ""
    """Version that these figures are about."""
    reload: str = ""
    """The last `reload` that was carried out."""
    path: str = ""
    """Directory of the node where the version's files lie."""
    files: int = 0
    """Files of the dataset."""
    bytes: int = 0
    """Their bytes."""
    capacity: int = 0
    """Bytes that the tiers may hold."""
    cached_files: int = 0
    """Files on the node."""
    cached_bytes: int = 0
    """Their bytes."""
    fetched_bytes: int = 0
    """Bytes asked of the source since the cache started."""
    peer_bytes: int = 0
    """Bytes that other nodes gave."""
    served_bytes: int = 0
    """Bytes given to other nodes."""
    read_bytes: int = 0
    """Bytes that pods read through the cache from the node's disk."""
    evicted_bytes: int = 0
    """Bytes that made room for others."""
    waited_seconds: float = 0.0
    """Seconds that reads of pods waited for bytes that were not here."""
    job_waits: dict[str, float] = {}
    """Of those seconds, the share of each job; jobs that read at one time share alike. The latest
    50."""
    rate: int = 0
    """Bytes a second that come in now."""
    address: str = ""
    """Where the node's cache listens."""
    certificate: str = ""
    """SHA-256 of the certificate that it shows; empty without TLS."""
    view: str = ""
    """File system of the version; it shows files that are not on the node yet."""
    bound: bool = False
    """Whether all files are here and stay: pods may have them directly."""
    targets: dict[str, TargetStatus] = {}
    """By path."""
    rejected: list[str] = []
    """Keys that cannot be files, with the reason; 20, and how many more."""

    @property
    def whole(self) -> bool:
        """Whether all files of the version are on the node."""
        return bool(self.version) and self.cached_files == self.files


class DatasetCache(OwnObject, frozen=True):
    """What one node keeps of one dataset."""

    spec: DatasetCacheSpec
    status: DatasetCacheStatus = DatasetCacheStatus()
    kind: str = "DatasetCache"


DATASET_CACHES = Resource(GROUP, VERSION, "datasetcaches", "DatasetCache", True, DatasetCache)


FETCHING = "is being fetched to this node"
"""What a pod says while it waits for a dataset that comes."""


def shown(cache: DatasetCache) -> tuple[str, str]:
    """Return the directory of the node in which pods read a dataset, else why there is none.

    It is that of the files where all are on the node and stay, else of the view.
    """
    status, dataset = cache.status, cache.spec.dataset
    if status.version == cache.spec.version and (status.bound or status.view):
        return (status.path if status.bound else status.view), ""
    if status.phase == "Failed":
        return "", f"dataset {dataset!r}: {status.reason}: {status.message}"
    return "", f"dataset {dataset!r} {FETCHING}"


def cache_name(dataset: str, node: str) -> str:
    """Return the name of what *node* keeps of *dataset*."""
    return f"{dataset}.{node}"[:253]


NO_CACHE = "no"
"""What that label says of a node without a data cache, to which the dataset cannot come."""


def share_label(namespace: str, dataset: str) -> str:
    """Return the label of nodes that says how much of a dataset they have, in per cent."""
    name = f"{namespace}.{dataset}"
    if len(name) > 63:
        name = f"{name[:40].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"share.data.lockstep.dev/{name}"


def label_of(node: str) -> str:
    """Return *node* as a label's value, which has at most 63 characters."""
    if len(node) <= 63:
        return node
    return f"{node[:40].rstrip('-.')}-{hashlib.sha256(node.encode()).hexdigest()[:16]}"
