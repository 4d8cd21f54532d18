"""`app.py` and the command serve by the same rules: who may name a path, and where the page listens."""

import runpy
import socket
from pathlib import Path
from typing import Any

import pytest

from playground.ui import app

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What would have been served: (page, host, port, share)."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(app, "launch", lambda *given: calls.append(given))
    for name in ("SPACE_ID", "HOST", "PORT", "FIRST_TOKEN_HOST", "FIRST_TOKEN_PORT"):
        monkeypatch.delenv(name, raising=False)
    return calls


@pytest.mark.parametrize(
    ("environment", "open_names"),
    [
        ({}, True),
        ({"HOST": "localhost"}, True),
        ({"HOST": "0.0.0.0"}, False),
        ({"FIRST_TOKEN_HOST": "192.168.0.7"}, False),
        ({"SPACE_ID": "someone/space"}, False),
        ({"SPACE_ID": "someone/space", "HOST": "127.0.0.1"}, False),
    ],
)
def test_only_where_nobody_else_comes_may_a_name_be_a_path(
    launched: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    open_names: bool,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made = runpy.run_path(str(ROOT / "app.py"), run_name="app")
    assert made["models"].open_names is open_names
    assert launched == []
    if "SPACE_ID" not in environment:
        app.serve(host=made["here"].host)
        assert launched[0][0].first_token_models.open_names is open_names


def test_no_handler_of_the_page_reports_its_progress_to_gradio() -> None:
    """Gradio tells all that ever was reported on of each event, and below the tabs that is every component."""
    demo = app.build(app.local_models())
    reporting = [
        fn.api_name for fn in demo.fns.values() if fn.fn and fn.outputs and fn.show_progress_on is None
    ]
    assert sorted(reporting) == ["compare", "generate", "kv", "race", "score", "tokens"]


def test_a_shared_page_is_open_to_others(launched: list[tuple[Any, ...]]) -> None:
    app.serve(share=True)
    page, host, _, share = launched[0]
    assert (page.first_token_models.open_names, host, share) == (False, "127.0.0.1", True)


def test_app_py_listens_where_the_environment_says(
    launched: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("PORT", str(port))
        runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
        monkeypatch.setenv("SPACE_ID", "someone/space")
        runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
    (_, host, moved_on, _), (_, space_host, space_port, _) = launched
    assert (host, space_host, space_port) == ("127.0.0.1", "0.0.0.0", port)
    assert port < moved_on <= port + 100
