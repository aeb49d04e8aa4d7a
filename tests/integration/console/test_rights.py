"""What a user gets from the console is what the API server lets the user have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.apiserver import ApiServer
from tests.support.console import Console, Visitor
from tests.support.console_teams import RBAC, job, team
from tests.support.waiting import eventually_sync

from lockstep.api.names import API_VERSION
from lockstep.console.reading import VERBS
from lockstep.console.views.kinds import KINDS, OBJECTS


@pytest.fixture
def console(any_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    running = Console(any_server, tmp_path_factory.mktemp("console"))
    yield running
    running.stop()
    for namespace in ("reading", "editing", "leaving"):
        any_server.request("DELETE", f"/apis/{API_VERSION}/namespaces/{namespace}/trainingjobs")


def test_a_user_sees_and_does_what_the_api_server_allows(
    any_server: ApiServer, console: Console
) -> None:
    reader = console.visitor(token=team(any_server, "reading", "view"))
    editor = console.visitor(token=team(any_server, "editing", "edit"))
    admin = console.visitor(code=console.code())
    both = {"editing/own", "reading/own"}
    eventually_sync(lambda: both <= set(admin.jobs()), what="the cache has both jobs")
    assert reader.jobs() == ["reading/own"]
    assert reader.jobs("namespace=editing") == []
    assert editor.jobs() == ["editing/own"]

    refused = reader.request("POST", "/api/jobs", {"object": job("reading", "more")})
    assert refused.status == 403
    assert "cannot create resource" in refused.json["error"]["message"]
    assert reader.request("GET", "/api/objects/jobs/editing/own").status == 403
    assert reader.request("DELETE", "/api/objects/jobs/reading/own").status == 403
    assert editor.request("POST", "/api/jobs", {"object": job("editing", "more")}).status == 201
    assert editor.request("DELETE", "/api/objects/jobs/editing/more").status == 200


def test_each_kind_and_verb_is_what_the_api_server_says(
    any_server: ApiServer, console: Console
) -> None:
    """The table of users, kinds and verbs: rights that are told, and lists that are shown."""
    tokens = {role: team(any_server, f"{role}ing", role.removeprefix("read") or "view")
              for role in ("read", "edit")}  # fmt: skip
    for role, secret in tokens.items():
        space, visitor = f"{role}ing", console.visitor(token=secret)
        told = visitor.request("GET", f"/api/rights?namespace={space}").json["items"]
        assert {one["word"] for one in told} == set(OBJECTS)
        for one in told:
            res = OBJECTS[one["word"]]
            where = space if res.namespaced else ""
            for verb in VERBS:
                asked = {"verb": verb, "group": res.group, "resource": res.plural}
                said = _may(any_server, space, {**asked, "namespace": where})
                assert one["verbs"][verb] == said, (role, one["word"], verb)
        for word, kind in KINDS.items():
            may = any(one["verbs"]["list"] for one in told if one["word"] == word)
            listed = visitor.request("GET", f"/api/lists/{word}")
            assert (listed.status == 200) == may, (role, word, listed.body)
            if may:
                spaces = {row["namespace"] for row in listed.json["items"]}
                assert spaces <= {space}, (role, word)
            assert kind.resource == OBJECTS[word]


def _may(server: ApiServer, space: str, attributes: dict[str, str]) -> bool:
    """Tell what the server says of the member of a namespace, asked by the administrator."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{space}", "system:authenticated"]
    user = {"user": f"system:serviceaccount:{space}:member", "groups": groups}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {**user, "resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = server.request("POST", path, review)
    assert answer.status == 201, answer.body
    return bool(answer.json["status"]["allowed"])


def test_a_withdrawn_right_is_gone_within_15_s(any_server: ApiServer, console: Console) -> None:
    visitor = console.visitor(token=team(any_server, "leaving", "view"))
    eventually_sync(lambda: visitor.jobs() == ["leaving/own"], what="the job is seen")
    path = f"/apis/{RBAC}/v1/namespaces/leaving/rolebindings/member"
    assert any_server.request("DELETE", path).status == 200
    eventually_sync(lambda: visitor.jobs() == [], 15.0, "the job is seen no more")


def test_a_one_time_link_works_once(console: Console) -> None:
    code = console.code()
    console.visitor(code=code)
    again = Visitor(console.url).request("POST", "/api/session", {"code": code})
    assert again.status == 403
    assert "this link was used" in again.json["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"Host": "evil.example"}, "Host"),
        ({"Origin": "https://evil.example"}, "Origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "Sec-Fetch-Site"),
        ({"X-Lockstep-Console": "0"}, "X-Lockstep-Console"),
    ],
)
def test_requests_of_other_pages_are_refused(
    shared: Console, headers: dict[str, str], says: str
) -> None:
    visitor = shared.visitor(code=shared.code())
    refused = visitor.request("POST", "/api/jobs", {"object": job("default", "x")}, headers)
    assert (refused.status, refused.json["error"]["message"].partition(":")[0]) == (403, says)


def test_a_wrong_token_and_no_session_are_refused(shared: Console) -> None:
    wrong = Visitor(shared.url).request("POST", "/api/session", {"token": "wrong"})
    assert wrong.status == 403
    assert "does not accept" in wrong.json["error"]["message"]
    for path in (
        "session",
        "jobs",
        "stream",
        "queues",
        "objects/jobs/default/x",
        "rights",
        "audit",
        "cost",
    ):
        assert Visitor(shared.url).request("GET", f"/api/{path}").status == 401


def test_signing_out_ends_the_session(shared: Console) -> None:
    visitor = shared.visitor(code=shared.code())
    cookie = visitor.cookie
    assert visitor.request("DELETE", "/api/session").status == 200
    visitor.cookie = cookie
    assert visitor.request("GET", "/api/session").status == 401


def test_every_answer_forbids_what_is_not_the_consoles_own(shared: Console) -> None:
    for path in ("/", "/jobs", "/static/app.js", "/api/session", "/api/none"):
        headers = Visitor(shared.url).request("GET", path).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'self';"), path
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.fixture(scope="module")
def shared(shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    running = Console(shared_server, tmp_path_factory.mktemp("console"))
    yield running
    running.stop()
