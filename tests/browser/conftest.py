"""Pages on this machine over made runs and the default model; `tests/watching.py` looks at them in Chromium."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from playground.core.decoding import Decoding
from playground.core.events import Event, Finished, Prefilled, StageRecord, Started, Stepped
from playground.core.request import ModelFacts, Request
from playground.core.run import Run, fold
from playground.core.tokens import Candidate, Token
from tests.watching import Watched

ROOT = Path(__file__).parents[2]
BYTES_PER_TOKEN = 46_080
RUN_STEPS = 80
WORDS = (" gravity", " is", " a", " force", " that", " pulls", " things", " together", ".")


def made_run(steps: int = 24, lanes: int = 1, run: str = "recorded") -> Run:
    """A run that was never computed: its numbers agree with each other and with nothing else."""
    decodings = tuple(Decoding(temperature=0.7, top_p=0.9, seed=7 + lane) for lane in range(lanes))
    facts = ModelFacts(
        "tests/made",
        None,
        "cpu",
        "float32",
        49_152,
        8_192,
        BYTES_PER_TOKEN,
        (30, 3, 64, 4),
        9,
        538_000_000,
        2**34,
    )
    prompt = tuple(Token(10 + i, word) for i, word in enumerate(("What", " is", " gravity", "?")))
    events: list[Event] = [
        Started(run, Request("What is gravity?", decodings, chat=False, run=run), facts, prompt, (True,) * 4),
        Prefilled(run, 4, 0, 0.0, 0.08, 4, 4 * BYTES_PER_TOKEN, 4 * BYTES_PER_TOKEN),
    ]
    for step in range(steps):
        events += [_step(run, lane, step) for lane in range(lanes)]
    text = "".join(WORDS[step % len(WORDS)] for step in range(steps))
    events += [Finished(run, lane, "max_new_tokens", text, 0.1 + 0.03 * steps) for lane in range(lanes)]
    return fold(events)


def _step(run: str, lane: int, step: int) -> Stepped:
    word = WORDS[(step + lane * (step > 4)) % len(WORDS)]
    candidates = (
        Candidate(Token(100 + step % 9, word), math.log(0.6), 0.75),
        Candidate(Token(300, " or"), math.log(0.2), 0.25),
        Candidate(Token(301, "<b>x</b>"), math.log(0.1), 0.0, "top_p"),
    )
    start, tokens = 0.08 + 0.03 * step, 4 + step
    return Stepped(
        run, lane, step, tokens, candidates[0].token, word, 1, math.log(0.6), 0.75, 0.31, "drawn", candidates,
        20.0, 1.4, 0.81, 2, 0.8, (StageRecord("temperature", 49_152, 1.0), StageRecord("top_p", 2, 0.8)),
        start, start + 0.03, tokens, tokens * BYTES_PER_TOKEN, tokens * BYTES_PER_TOKEN, 1, tokens - 1,
        kv_predicted_bytes=tokens * BYTES_PER_TOKEN,
    )  # fmt: skip


@dataclass
class Served:
    """A page that is being served, and what stands behind it."""

    url: str
    models: Any
    demo: Any


@pytest.fixture(scope="session")
def serving(first_port: int) -> Iterator[Callable[..., Served]]:
    """`serving(loader, names=(), traces=folder)`: the page over models that the loader makes."""
    from playground.ui.app import build, free_port, launch
    from playground.ui.models import Models

    with ExitStack() as closing:

        def serve(
            loader: Any,
            names: tuple[str, ...] = (),
            traces: Any = None,
            default: str = "tests/made",
            **page: Any,
        ) -> Served:
            models = Models(loader, default, names)
            demo = build(models, traces=traces, **page)
            launch(
                demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True
            )
            closing.callback(demo.close)
            return Served(demo.local_url.rstrip("/"), models, demo)

        yield serve


@pytest.fixture(scope="session")
def recorded_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from playground.core.trace import dump_trace

    folder = tmp_path_factory.mktemp("traces")
    dump_trace(made_run(), folder / "one.jsonl")
    dump_trace(made_run(lanes=3, run="recorded-lanes"), folder / "several.jsonl")
    return folder


@pytest.fixture(scope="session")
def replaying(serving: Callable[..., Served], recorded_folder: Any) -> Served:
    """The page over a replay of 80 tokens at 25 a second; “broken” cannot be loaded, “slow…” takes 2 s."""
    import time

    from playground.backends.replay import ReplayBackend
    from playground.engine.progress import CannotLoad, Progress

    def load(name: str, report: Any) -> Any:
        if name == "broken":
            raise CannotLoad("There is no model “broken”; the one that runs stays.")
        if name.startswith("slow"):
            report(Progress("download", 2**20, 4 * 2**20))
            time.sleep(2)
        return ReplayBackend(made_run(RUN_STEPS), 25.0)

    return serving(load, ("tests/made", "slow", "broken"), recorded_folder, offer=lambda: "slow-zh")


@pytest.fixture(scope="session")
def on_model(serving: Callable[..., Served], default_model: Any) -> Served:
    """The page over the default model, with the recorded runs that come with the program."""
    from playground.backends.local import LocalBackend

    return serving(lambda name, report: LocalBackend(default_model), default=default_model.facts.name)


@pytest.fixture
def reload(watched: Watched) -> Callable[[Any], None]:
    """Reload a page; gradio's own complaint about the stream that it cuts off then does not count."""

    def reload(page: Any) -> None:
        page.reload()
        page.wait_for_function("window.firstTokenStage")
        cut_off = ("AbortError", "Connection errored out")
        watched.complaints[:] = [c for c in watched.complaints if not any(word in c for word in cut_off)]

    return reload


class Files(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".js": "text/javascript"}

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/tests/browser/stage_page.html"
    server.shutdown()


@pytest.fixture
def stage(browser: Any, watched: Any, address: str) -> Iterator[Callable[..., Any]]:
    """`stage("layout=run", width, height)`: a page with an empty stage."""
    contexts = []

    def open_stage(query: str = "quiet", width: int = 1400, height: int = 900, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        watched.attach(page)
        page.goto(f"{address}?{query}")
        page.wait_for_function("window.firstTokenStage")
        return page

    yield open_stage
    for context in contexts:
        context.close()
