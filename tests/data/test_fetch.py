"""Files by checksum: where they are looked for, and that nothing wrong ever gets a final name."""

import gzip
import hashlib
import io
import resource
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.fetch import Source, cache_dir, fetch, open_binary, verify
from dpbench.errors import UserError

CONTENT = b"1, a\n2, b\n" * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PAGE = b"\n<!DOCTYPE html><html><body>Please log in</body></html>"
PARTS = {"toy/one.csv": b"x,y\r\n7,2\r\n1,2", "toy/two.csv": b"x,y\n10,3\n1,2\n"}  # a table in two parts
JOINED = b"x,y\n1,2\n1,2\n10,3\n7,2\n"


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


ZIPS = {
    "/zip": zipped(PARTS),
    "/one": zipped({"toy/one.csv": PARTS["toy/one.csv"]}),
    "/other": zipped({**PARTS, "toy/two.csv": b"x,y\n10,3\n1,3\n"}),
    "/damaged": zipped(PARTS).replace(b"10,3", b"10,4"),
}


@dataclass
class Server:
    """A web server on this machine; `hits` are the paths asked for, `fail` the answers to spoil first."""

    url: str = ""
    hits: list[str] = field(default_factory=list)
    fail: int = 0

    def source(self, path: str) -> Source:
        return Source("toy/toy.data", f"{self.url}/{path}", SHA256)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.hits.append(self.path)
            body = {"/html": PAGE, "/short": CONTENT[:-7], **ZIPS}.get(self.path, CONTENT)
            if state.fail:
                state.fail -= 1
                body = PAGE
            self.send_response(404 if self.path == "/missing" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.path == "/cut":
                body = body[: len(body) // 2]
            if self.path == "/slow":
                time.sleep(0.05)
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{web.server_address[1]}"
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    web.shutdown()
    thread.join()
    web.server_close()


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("layout", ["toy.data", "toy/toy.data", "elsewhere/toy.data"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mirror_is_looked_at_first(places, monkeypatch, server, layout, suffix):
    put(places / "cache" / "toy" / "toy.data", CONTENT)
    put(places / "second" / f"{layout}{suffix}", CONTENT)
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", f"{places / 'no such folder'}:{places / 'second'}")
    path = fetch(server.source("right"))
    assert path == places / "second" / f"{layout}{suffix}"
    with open_binary(path) as stream:
        assert stream.read() == CONTENT
    assert server.hits == []


def test_mirror_is_searched_one_folder_deep(places, monkeypatch, server):
    put(places / "mirror" / "a" / "b" / "toy.data", CONTENT)
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    with pytest.raises(UserError, match="is not here"):
        fetch(server.source("right"), offline=True)


def test_wrong_file_in_mirror_is_passed_over_and_named(places, monkeypatch, server, caplog):
    wrong = put(places / "mirror" / "toy.data", CONTENT[:-1])
    broken = put(places / "mirror" / "toy" / "toy.data.gz", CONTENT)
    broken.write_bytes(broken.read_bytes()[:-20])
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    with pytest.raises(UserError) as caught:
        fetch(server.source("right"), offline=True)
    assert f"{wrong}: another sha256" in str(caught.value)
    assert f"{broken}: cannot be read" in str(caught.value)
    assert fetch(server.source("right")).read_bytes() == CONTENT
    assert str(wrong) in caplog.text


def test_download_is_cached(places, server):
    path = fetch(server.source("right"))
    assert path == places / "cache" / "toy" / "toy.data"
    assert path.read_bytes() == CONTENT
    assert fetch(server.source("right")) == path
    assert server.hits == ["/right"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("cut", "download failed"),
        ("short", "another sha256 than expected: a file of 199,993 bytes"),
        ("html", "an HTML page of"),
        ("missing", "404"),
    ],
)
def test_wrong_download_leaves_nothing(places, server, path, reason):
    with pytest.raises(UserError) as caught:
        fetch(server.source(path), alternative="toy_synth")
    assert reason in str(caught.value)
    assert f"{server.url}/{path}" in str(caught.value)
    assert "dataset=toy_synth" in str(caught.value)
    assert files(places) == []


def test_download_is_tried_again(places, server, monkeypatch):
    monkeypatch.setattr("dpbench.data.fetch.RETRIES", 1)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    server.fail = 1
    assert fetch(server.source("right")).read_bytes() == CONTENT
    assert len(server.hits) == 2


def test_damaged_cache_is_replaced(places, server):
    cached = put(places / "cache" / "toy" / "toy.data", CONTENT[: len(CONTENT) // 2])
    with pytest.raises(UserError, match=f"{cached}: another sha256"):
        fetch(server.source("right"), offline=True)
    assert fetch(server.source("right")).read_bytes() == CONTENT


def test_offline_message_says_all_that_helps(places, monkeypatch, server):
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    with pytest.raises(UserError) as caught:
        fetch(server.source("right"), offline=True, alternative="toy_synth")
    for part in (
        "toy/toy.data",
        str(places / "mirror"),
        str(places / "cache"),
        server.url,
        "`dpbench data fetch toy`",
        "dataset=toy_synth",
    ):
        assert part in str(caught.value)
    assert server.hits == []


def test_no_network(places):
    with pytest.raises(UserError, match="the download failed"):
        fetch(Source("toy/toy.data", "http://127.0.0.1:9/toy.data", SHA256))  # port 9: nobody listens
    assert files(places) == []


def test_cache_that_is_no_folder(places, server):
    put(places / "cache", b"")
    with pytest.raises(UserError, match=r"cannot be stored in the cache folder .* set DPBENCH_CACHE"):
        fetch(server.source("right"))


def test_full_disk_leaves_nothing(places, server):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(CONTENT) // 2, hard))
    try:
        with pytest.raises(UserError, match=r"cannot be stored in the cache folder .* free some space"):
            fetch(server.source("right"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(places) == []


def test_many_fetch_at_once(places, server):
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: fetch(server.source("slow")), range(8)))
    assert len(server.hits) > 1  # they did meet
    assert set(paths) == {places / "cache" / "toy" / "toy.data"}
    assert paths[0].read_bytes() == CONTENT
    assert files(places) == ["cache/toy/toy.data"]


# --- a table in two parts, its rows in any order ---------------------------------------------------------


def parted(server: Server, path: str) -> Source:
    return Source("toy/toy.csv", f"{server.url}/{path}", hashlib.sha256(JOINED).hexdigest(), tuple(PARTS))


def test_parts_of_a_zip_file_are_joined(places, server):
    path = fetch(parted(server, "zip"))
    assert path.read_bytes() == JOINED
    assert fetch(parted(server, "zip")) == path
    assert server.hits == ["/zip"]


@pytest.mark.parametrize("path", ["one", "other", "damaged", "html", "right"])
def test_zip_file_with_other_parts_is_refused(places, server, path):
    with pytest.raises(UserError, match=r"(?s)another sha256.*toy/one\.csv and toy/two\.csv of that zip file"):
        fetch(parted(server, path))
    assert files(places) == []


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (b"x,y\n7,2\n10,3\n1,2\n1,2\n", "ok"),
        (b"x,y\r\n1,2\r\n10,3\r\n1,2\r\n\r\n7,2", "ok"),
        (b"x,y\n7,2\n10,3\n1,2\n", "another"),  # a row that is there twice counts twice
        (b"y,x\n7,2\n10,3\n1,2\n1,2\n", "another"),
        (b"7,2\nx,y\n10,3\n1,2\n1,2\n", "another"),
        (b"", "another"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_rows_in_any_order_are_the_same_file(places, monkeypatch, server, content, state, suffix):
    put(places / "mirror" / f"toy.csv{suffix}", content)
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    ((_, found, _),) = verify([parted(server, "zip")])
    assert found.split()[0] == state


def test_verify_states(places, monkeypatch, server):
    source = server.source("right")
    assert verify([source]) == [("toy/toy.data", "absent", "")]
    wrong = put(places / "mirror" / "toy.data", b"else")
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))
    ((_, state, where),) = verify([source])
    assert state.startswith("another sha256")
    assert where == str(wrong)
    cached = put(places / "cache" / "toy" / "toy.data", CONTENT)
    assert verify([source]) == [("toy/toy.data", "ok", str(cached))]
    assert server.hits == []


@pytest.mark.parametrize("file", ["../toy.data", "toy.data", "/etc/passwd", "toy/../../x", "toy/.."])
def test_source_stays_in_the_cache(file):
    with pytest.raises(UserError, match="<dataset>/<name>"):
        Source(file, "http://127.0.0.1", SHA256)


def test_sources_need_all_three():
    with pytest.raises(UserError, match="file, url and sha256"):
        _ = Dataset.of({"sources": [{"file": "toy/toy.data", "url": "http://127.0.0.1"}]}).sources
    with pytest.raises(UserError, match="64 lower-case hex digits"):
        _ = Dataset.of({"sources": [{"file": "toy/toy.data", "url": "http://127.0.0.1", "sha256": "md5"}]}).sources


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("DPBENCH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_dir() == Path("/x/dpbench")
    monkeypatch.setenv("DPBENCH_CACHE", "/y")
    assert cache_dir() == Path("/y")
