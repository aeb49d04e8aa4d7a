"""Sources beside S3: fsspec's own memory file system, and stand-ins of Azure and Google."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from lockstep.api.dataset_cache import CacheMount
from lockstep.api.meta import ObjectMeta
from lockstep.compat.fluid.objects import Dataset, DatasetSpec, Mount
from lockstep.compat.fluid.translate import Problem, translate_mount
from lockstep.data.core.manifest import build

pytest.importorskip("obstore", reason="needs the data extra")

DATA = b"0123456789"
WHEN = "Mon, 02 Jan 2023 03:04:05 GMT"
ISO = "2023-01-02T03:04:05.000Z"


async def test_fsspec_reads_what_the_version_names_and_nothing_else() -> None:
    import fsspec

    from lockstep.data.cache.other_sources import OtherSource
    from lockstep.data.cache.sources import SourceFailed

    memory = fsspec.filesystem("memory")
    memory.pipe({"/set/a/one": DATA, "/set/two": b"22"})
    source = OtherSource(CacheMount(uri="memory://set"), {})
    found = await source.list()
    assert {(one.key, one.size) for one in found} == {("a/one", 10), ("two", 2)}
    entries = {one.path: one for one in build([("", found)]).entries}
    assert await source.read(entries["a/one"], 2, 5) == b"234"
    memory.pipe("/set/two", b"other")
    with pytest.raises(SourceFailed, match="not the file any more"):
        await source.read(entries["two"], 0, 2)
    memory.rm("/set/a/one")
    with pytest.raises(SourceFailed, match="not there any more"):
        await source.read(entries["a/one"], 0, 2)
    with pytest.raises(SourceFailed) as missing:
        await OtherSource(CacheMount(uri="memory://none"), {}).list()
    assert missing.value.reason == "SourceMissing"


def test_a_scheme_without_its_package_says_so() -> None:
    from lockstep.data.cache.other_sources import OtherSource
    from lockstep.data.cache.sources import SourceFailed

    with pytest.raises(SourceFailed, match="hdfs"):
        OtherSource(CacheMount(uri="hdfs://host/x"), {})


class StandIn:
    """A fake of Azure's and Google's servers: one object in one container, listed and read."""

    def __init__(self) -> None:
        self.asked: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        if request.query.get("comp") == "list":
            return web.Response(text=AZURE, content_type="application/xml")
        if request.query.get("list-type") == "2":
            return web.Response(text=GOOGLE, content_type="application/xml")
        headers = {"ETag": '"e"', "Last-Modified": WHEN}
        span = request.headers.get("x-ms-range") or request.headers.get("Range")
        if not span:
            return web.Response(body=DATA, headers=headers)
        first, last = (int(one) for one in span.removeprefix("bytes=").split("-"))
        headers["Content-Range"] = f"bytes {first}-{last}/{len(DATA)}"
        return web.Response(status=206, body=DATA[first : last + 1], headers=headers)


AZURE = f"""<?xml version="1.0"?><EnumerationResults><Blobs><Blob><Name>p/one</Name><Properties>
<Last-Modified>{WHEN}</Last-Modified><Content-Length>10</Content-Length><Etag>e</Etag>
<Content-Type>x</Content-Type></Properties></Blob></Blobs><NextMarker/></EnumerationResults>"""
GOOGLE = f"""<?xml version="1.0"?><ListBucketResult><Contents><Key>p/one</Key>
<LastModified>{ISO}</LastModified><ETag>"e"</ETag><Size>10</Size></Contents></ListBucketResult>"""


@pytest.fixture
async def stand_in() -> AsyncIterator[tuple[StandIn, str]]:
    served, app = StandIn(), web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    yield served, f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("az://box/p", {"account_name": "acc"}),
        ("abfss://box@acc.dfs.core.windows.net/p", {}),
        ("gs://box/p", {}),
    ],
)
async def test_azure_and_google_are_listed_and_read_in_parts(
    stand_in: tuple[StandIn, str], uri: str, options: dict[str, str]
) -> None:
    from lockstep.data.cache.sources import Source

    served, url = stand_in
    source = Source(CacheMount(uri=uri, options={**options, "endpoint": url}), {})
    [found] = await source.list()
    assert (found.key, found.size) == ("one", 10)
    [entry] = build([("", [found])]).entries
    assert bytes(await source.read(entry, 2, 5)) == b"234"
    # Never with the rights of the machine that the cache runs on.
    assert not any("Authorization" in one.headers for one in served.asked)


@pytest.mark.parametrize(
    ("mount", "says"),
    [
        ({"mount_point": "nfs://server/x"}, "its scheme must be one of"),
        ({"mount_point": "az://b", "options": {"account-key": "k"}}, "put it into a Secret"),
        ({"mount_point": "sftp://h/x", "options": {"password": "p"}}, "put it into a Secret"),
    ],
)
def test_sources_that_cannot_be_are_refused(mount: dict[str, Any], says: str) -> None:
    one = Mount(**mount)
    dataset = Dataset(ObjectMeta(name="d"), DatasetSpec(mounts=[one]))
    with pytest.raises(Problem, match=says):
        translate_mount(dataset, 0, one)
