"""What each answer of the server carries, whom it answers, and which files it gives."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from playground.backends.policy import Policy
from playground.ui.app import build, free_port, launch
from playground.ui.models import Models
from tests.ui.conftest import Echo

FILES = (
    "/assets/../pyproject.toml", "/assets/%2e%2e/pyproject.toml", "/assets/..%2fpyproject.toml",
    "/assets//etc/hostname", "/assets/%2fetc%2fhostname", "/assets/traces/../../pyproject.toml",
    "/gradio_api/file=/etc/hostname", "/gradio_api/file=pyproject.toml", "/gradio_api/file=../../../etc/hostname",
    "/gradio_api/file/etc/hostname", "/file=/etc/hostname", "/gradio_api/static/../../../../../../etc/hostname",
    "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/hostname", "/gradio_api/component_server/../../etc/hostname",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(first_port: int) -> Iterator[Any]:
    closing = []

    def serve(**page: Any) -> str:
        demo = build(Models(lambda name, report: Echo(), "tests/none", open_names=False), **page)
        launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
        closing.append(demo.close)
        return str(demo.local_url).rstrip("/")

    yield serve
    for close in closing:
        close()


@pytest.fixture(scope="module")
def public(served: Any) -> str:
    return str(served(policy=Policy(open=False)))


@pytest.fixture(scope="module")
def own(served: Any) -> str:
    return str(served(policy=Policy(open=True)))


def ask(root: str, path: str, **more: Any) -> httpx.Response:
    url = httpx.URL(root).copy_with(raw_path=path.encode())
    return httpx.get(url, timeout=20, **more)


@pytest.mark.parametrize("path", ["/", "/config", "/assets/page.js", "/nothing", "/gradio_api/info"])
def test_every_answer_says_what_the_browser_must_refuse(public: str, path: str) -> None:
    headers = ask(public, path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "object-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy and "http" not in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", FILES)
def test_no_file_outside_of_assets_is_served(public: str, path: str) -> None:
    answer = ask(public, path)
    assert answer.status_code in (400, 403, 404, 405, 422)
    assert "[project]" not in answer.text and "First Token" not in answer.text


def test_a_page_of_ones_own_answers_to_its_own_names_alone(own: str, public: str) -> None:
    for name in ("127.0.0.1", "localhost", "127.0.0.1:7860", "localhost:80", "[::1]:7860"):
        assert ask(own, "/config", headers={"Host": name}).status_code == 200
    for name in ("evil.example", "evil.example:7860", "localhost.evil.example", "127.0.0.1.evil.example"):
        assert ask(own, "/config", headers={"Host": name}).status_code == 400
        assert ask(public, "/config", headers={"Host": name}).status_code == 200


def test_the_operators_password_opens_the_page_and_nothing_does_without(
    served: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRST_TOKEN_AUTH", "teacher:correct horse")
    root = served()
    assert ask(root, "/config").status_code == 401
    queue = httpx.post(f"{root}/gradio_api/queue/join", json={"data": [], "fn_index": 0, "session_hash": "x"})
    assert queue.status_code == 401
    with httpx.Client(base_url=root) as client:
        wrong = client.post("/login", data={"username": "teacher", "password": "wrong"})
        assert wrong.status_code == 400
        assert client.post("/login", data={"username": "teacher", "password": "correct horse"}).is_success
        page = client.get("/config")
        assert page.status_code == 200 and "correct horse" not in page.text
    assert "correct horse" not in "".join(capfd.readouterr())
