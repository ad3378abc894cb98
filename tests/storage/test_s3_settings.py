"""S3 settings reach both clients alike: obstore, which keeps small objects, and Lance, which keeps tables."""

from __future__ import annotations

import dataclasses
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.graph import _context
from omnigraph.settings import Settings
from omnigraph.storage.places import open_root
from omnigraph.storage.s3 import S3Access, S3ObjectStore

pytestmark = pytest.mark.slow

ACCESS = S3Access(
    region="eu-central-7",
    access_key_id="the-key",
    secret_access_key="the-secret",
    session_token="the-token",
    endpoint="http://127.0.0.1:9000",
    path_style=True,
    allow_http=True,
    timeout_ms=1_500,
    retry_timeout_ms=7_000,
    retries=3,
)


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class StubStore:
    """Answers every request alike and writes it down."""

    port: int = 0
    status: int = 404
    seen: list[Request] = field(default_factory=list)
    silence: threading.Event | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def access(self, **more: Any) -> S3Access:
        return dataclasses.replace(ACCESS, endpoint=self.endpoint, **more)


@pytest.fixture
def stub() -> Iterator[StubStore]:
    stub = StubStore()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            stub.seen.append(Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            if stub.silence is not None:
                stub.silence.wait(30)
            self.send_response(stub.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield stub
    if stub.silence is not None:
        stub.silence.set()
    server.shutdown()
    server.server_close()


def by_obstore(access: S3Access) -> None:
    S3ObjectStore("s3://bucket/some/graph", access).get("one")


def by_lance(access: S3Access) -> None:
    lance.dataset("s3://bucket/some/graph/__manifest", storage_options=access.lance_options())


CLIENTS = pytest.mark.parametrize("ask", [by_obstore, by_lance], ids=["obstore", "lance"])
Ask = Callable[[S3Access], None]


def asked(ask: Ask, access: S3Access) -> None:
    """Ask, whatever comes of it."""
    try:
        ask(access)
    except (og.OmniError, ValueError, OSError):
        return


# ---- what each client is told


def test_lance_is_told_everything_in_its_own_words() -> None:
    assert ACCESS.lance_options() == {
        "aws_region": "eu-central-7",
        "aws_access_key_id": "the-key",
        "aws_secret_access_key": "the-secret",
        "aws_session_token": "the-token",
        "aws_endpoint": "http://127.0.0.1:9000",
        "aws_virtual_hosted_style_request": "false",
        "allow_http": "true",
        "timeout": "1500ms",
        "client_max_retries": "3",
        "client_retry_timeout": "7",
    }


def test_obstore_is_told_the_same() -> None:
    store: Any = ACCESS.open("bucket", "some/graph")
    assert store.prefix == "some/graph"
    assert dict(store.config) == {
        "bucket": "bucket",
        "region": "eu-central-7",
        "access_key_id": "the-key",
        "secret_access_key": "the-secret",
        "session_token": "the-token",
        "endpoint": "http://127.0.0.1:9000",
        "virtual_hosted_style_request": "false",
    }
    assert dict(store.client_options) == {"allow_http": "true", "timeout": "1500ms"}
    retries = store.retry_config
    assert (retries["max_retries"], retries["retry_timeout"]) == (3, timedelta(seconds=7))
    backoff = retries["backoff"]
    assert timedelta(0) < backoff["init_backoff"] < backoff["max_backoff"]
    assert backoff["base"] > 1


def test_what_is_not_set_is_not_told() -> None:
    told = S3Access().lance_options()
    assert not {"aws_access_key_id", "aws_session_token", "aws_endpoint"} & set(told)
    assert (told["aws_virtual_hosted_style_request"], told["allow_http"]) == ("true", "false")
    assert not {"session_token", "endpoint"} & set(S3Access().open("bucket", "").config)


def test_a_deadline_below_a_second_is_a_second_for_lance_and_never_none() -> None:
    assert S3Access(retry_timeout_ms=20).lance_options()["client_retry_timeout"] == "1"


@pytest.mark.parametrize(("path_style", "endpoint"), [(True, None), (False, "http://127.0.0.1:9"), (True, "http://x")])
def test_an_endpoint_of_its_own_means_path_style_for_both(path_style: bool, endpoint: str | None) -> None:
    access = S3Access(path_style=path_style, endpoint=endpoint)
    assert access.lance_options()["aws_virtual_hosted_style_request"] == "false"
    assert access.open("bucket", "").config["virtual_hosted_style_request"] == "false"


# ---- from settings and environment

ENVIRONMENT = {
    "AWS_REGION": "eu-central-7",
    "AWS_ACCESS_KEY_ID": "the-key",
    "AWS_SECRET_ACCESS_KEY": "the-secret",
    "AWS_SESSION_TOKEN": "the-token",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
    "AWS_S3_FORCE_PATH_STYLE": "true",
    "AWS_ALLOW_HTTP": "true",
    "OMNIGRAPH_STORAGE_TIMEOUT_MS": "1500",
    "OMNIGRAPH_STORAGE_RETRY_TIMEOUT_MS": "7000",
}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def options_of(settings: Settings) -> dict[str, str]:
    root = _context("s3://bucket/graph", settings).root
    assert root.storage_options is not None
    return dict(root.storage_options)


def test_the_environment_reaches_the_tables(environment: pytest.MonkeyPatch) -> None:
    wanted = dataclasses.replace(ACCESS, retries=S3Access().retries).lance_options()
    assert options_of(Settings.resolve()) == wanted


def test_the_s3_endpoint_wins_over_the_general_one(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9001")
    assert options_of(Settings.resolve())["aws_endpoint"] == "http://127.0.0.1:9001"


def test_arguments_win_over_the_environment(environment: pytest.MonkeyPatch) -> None:
    settings = Settings.resolve(aws_session_token="another", storage_retry_timeout_ms=2_000)
    told = options_of(settings)
    assert (told["aws_session_token"], told["client_retry_timeout"]) == ("another", "2")


def test_temporary_credentials_are_shipped_but_never_printed(environment: pytest.MonkeyPatch) -> None:
    settings = Settings.resolve()
    assert pickle.loads(pickle.dumps(settings)) == settings
    root = open_root("s3://bucket/graph", ACCESS)
    shown = repr(settings) + repr(ACCESS) + repr(root)
    assert not any(secret in shown for secret in ("the-key", "the-secret", "the-token"))


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_ALLOW_HTTP", "perhaps"), ("OMNIGRAPH_STORAGE_RETRY_TIMEOUT_MS", "soon")]
)
def test_a_setting_that_makes_no_sense_is_named(environment: pytest.MonkeyPatch, name: str, value: str) -> None:
    environment.setenv(name, value)
    with pytest.raises(og.BadRequest, match=name):
        Settings.resolve()


# ---- what goes over the wire


@CLIENTS
def test_temporary_credentials_sign_every_request(stub: StubStore, ask: Ask) -> None:
    asked(ask, stub.access())
    assert stub.seen
    for request in stub.seen:
        assert request.headers["x-amz-security-token"] == "the-token"
        assert "Credential=the-key/" in request.headers["authorization"]
        assert "/eu-central-7/s3/" in request.headers["authorization"]


@CLIENTS
def test_the_bucket_is_in_the_path_and_not_in_the_host(stub: StubStore, ask: Ask) -> None:
    asked(ask, stub.access())
    for request in stub.seen:
        assert request.path.split("?")[0].split("/")[1] == "bucket"
        assert request.headers["host"] == f"127.0.0.1:{stub.port}"


@CLIENTS
def test_plain_http_is_refused_unless_it_is_allowed(stub: StubStore, ask: Ask) -> None:
    asked(ask, stub.access(allow_http=False, retries=0))
    assert stub.seen == []


def test_a_store_that_is_busy_is_asked_again_as_often_as_set(stub: StubStore) -> None:
    stub.status = 503
    with pytest.raises(og.Unavailable, match="503"):
        by_obstore(stub.access(retries=3))
    assert len(stub.seen) == 4


def test_the_deadline_ends_the_retries_though_some_are_left(stub: StubStore) -> None:
    stub.status = 503
    with pytest.raises(og.Unavailable):
        by_obstore(stub.access(retries=10_000, retry_timeout_ms=400))
    assert 1 < len(stub.seen) < 100


def test_a_store_that_accepts_and_never_answers_is_given_up(stub: StubStore) -> None:
    stub.silence = threading.Event()
    with pytest.raises(og.Unavailable) as refused:
        by_obstore(stub.access(timeout_ms=200, retries=1, retry_timeout_ms=1_000))
    assert refused.value.what == "store"
    assert stub.seen


@pytest.mark.slow
def test_lance_asks_again_too_and_gives_up(stub: StubStore) -> None:
    stub.status = 503
    with pytest.raises((ValueError, OSError), match="503"):
        by_lance(stub.access(retries=2, retry_timeout_ms=1_000))
    first = stub.seen[0]
    assert sum(1 for r in stub.seen if r.path == first.path) >= 3


def test_refused_credentials_are_not_asked_again_and_are_named(stub: StubStore) -> None:
    stub.status = 403
    with pytest.raises(og.Unavailable, match="credentials") as refused:
        by_obstore(stub.access(retries=5))
    assert (refused.value.what, len(stub.seen)) == ("credentials", 1)
