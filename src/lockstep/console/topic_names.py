"""The topic of a name as the browser writes it: ``jobs?page=2``, ``job/team-a/digits``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from lockstep.console import cluster_topics, job_topics, list_topics
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.logs import Logs
from lockstep.console.sessions import Session
from lockstep.console.topics import Topic
from lockstep.console.views import query

LONGEST: Final = 2_000


def topic(world: ClusterCache, session: Session, name: str) -> Topic:
    """Return the topic of a name as the browser writes it.

    Raises:
        BadQuery: when there is no such topic.
    """
    if len(name) > LONGEST:
        raise query.BadQuery(f"topic: {len(name)} characters; use at most {LONGEST}")
    try:
        parts = urlsplit(name)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        raise query.BadQuery("topic: it is no path with a query") from None
    of_cluster: dict[str, Callable[[ClusterCache, Session], Topic]] = {
        "home": cluster_topics.Home,
        "map": cluster_topics.Map,
        "queues": cluster_topics.Queues,
        "waste": cluster_topics.Waste,
        "server": list_topics.Server,
    }
    match parts.path.split("/"):
        case [word] if word in of_cluster:
            return of_cluster[word](world, session)
        case ["jobs"]:
            return list_topics.JobList(world, session, given)
        case ["nodes"]:
            return cluster_topics.Nodes(world, session, given)
        case ["list", word]:
            return list_topics.List(world, session, word, given)
        case ["node", node]:
            query.require_names(node=node)
            return cluster_topics.NodePage(world, session, node)
        case ["job" | "ranks" as word, namespace, job_name]:
            query.require_names(namespace=namespace, name=job_name)
            made = job_topics.JobPage if word == "job" else job_topics.Ranks
            return made(world, session, namespace, job_name)
        case ["logs", namespace, job_name]:
            return Logs(world, session, namespace, job_name, given)
        case ["object", word, namespace, object_name]:
            query.require_names(name=object_name)
            return job_topics.ObjectPage(world, session, word, namespace, object_name)
    raise query.BadQuery(f"topic: there is no {parts.path[:80]!r}")
