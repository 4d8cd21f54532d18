"""The page as a whole: header, tabs, languages; and serving it.

`build` makes the page without loading anything, `launch` serves it and starts the loading, so
that the page is open before the model is there. Knows no run.
"""

import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import gradio as gr

from playground import catalog, settings
from playground.backends.hosted import Ended, Hosted, Runs
from playground.backends.policy import Policy, policy
from playground.backends.protocol import Backend
from playground.core.run import Run
from playground.core.trace import BadTrace, load_trace
from playground.engine.progress import Progress, Report
from playground.ui import endpoints
from playground.ui.archive import Archive
from playground.ui.guard import middleware
from playground.ui.kv_race import recorded_race
from playground.ui.links import wire_links
from playground.ui.models import Models
from playground.ui.offer import Offer, multilingual, no_offer
from playground.ui.pages import watch_pages
from playground.ui.session import read_tab
from playground.ui.shelf import Shelf
from playground.ui.streaming import Service
from playground.ui.tab_compare import compare_tab
from playground.ui.tab_connect import connect_tab
from playground.ui.tab_kv import kv_tab
from playground.ui.tab_learn import learn_tab
from playground.ui.tab_playground import PRIVATE, WHO, playground_tab
from playground.ui.tab_traces import traces_tab
from playground.ui.text import LANGUAGES, Words, say
from playground.ui.theme import Plain, head, routes
from playground.ui.to_compare import wire_to_compare
from playground.ui.vitals import Vitals
from playground.views.entries import shipped

QUEUE_LIMIT = 64
THREADS_LIMIT = 128
"""Of handlers that work at the same time; each waits less than half a second before others have a turn."""
PORTS_TRIED = 100


def build(
    models: Models, runs: Runs | None = None, traces: Path | None = None, offer: Offer = no_offer,
    saved: Path | None = None, policy: Policy | None = None,
) -> gr.Blocks:  # fmt: skip
    """The page over `models`; `traces` is the folder of recorded runs shown before the first one.

    `offer` names a model that knows Chinese, where there is one to be had. Every run is written into the
    folder `saved`, where one is given and `runs` is not. `policy` says what visitors may ask: without it
    whatever the operator may on a page whose `models` may be named freely, and nothing of their own elsewhere.
    """
    rules = policy or Policy(models.open_names)
    words = Words()
    archive = Archive(saved) if saved is not None else None
    kept = Runs() if runs is None else runs
    vitals = Vitals(models, kept)
    if runs is None:
        kept.at_end = both(archive, vitals)
    service = Service(models, kept, offer)
    folder = traces or settings.assets_dir() / "traces"
    single, several = recorded_runs(folder)
    with gr.Blocks(title="First Token", analytics_enabled=False, fill_width=True) as demo:
        endpoints.register(demo, service)  # first, so that no handler of the page takes one of their names
        who = gr.Textbox(visible=False)
        language = _header(words)
        with gr.Tabs(selected="playground", elem_id="tabs", overflow_behavior="wrap") as tabs:
            with words.make(gr.Tab, {"label": "page.tab_playground"}, id="playground"):
                playground = playground_tab(words, service, who, single)
            with words.make(gr.Tab, {"label": "page.tab_compare"}, id="compare"):
                compare = compare_tab(words, service, who, playground.model, several)
            with words.make(gr.Tab, {"label": "page.tab_kv"}, id="kv") as tab:
                kv = kv_tab(words, service, who, playground.model, tab, recorded_race(folder))
            with words.make(gr.Tab, {"label": "page.tab_learn"}, id="learn") as tab:
                learn_tab(service, who, playground.model, tab)
            with words.make(gr.Tab, {"label": "page.tab_traces"}, id="traces") as tab:
                shelf = Shelf(service, folder, archive, several)
                traces_list = traces_tab(words, shelf, playground, compare, kv, tabs)
            with words.make(gr.Tab, {"label": "page.tab_connect"}, id="connect"):
                connect = connect_tab(words, service, who, playground, rules.reach)
        watch_pages(demo, playground.stage.ready, service.runs.leave)
        wire_to_compare(playground, compare, tabs)
        wire_links(models, playground, compare, tabs)
        _languages(words, language, playground.stage, who)
        kv.follow(language.click, who)
        traces_list.follow(tab.select, language.click, who)
        connect.follow(language.click, who)
        _offering(service, language, playground, who)
    demo.queue(max_size=QUEUE_LIMIT, default_concurrency_limit=8, api_open=False)
    demo.first_token_models, demo.first_token_policy, demo.first_token_vitals = models, rules, vitals
    demo.first_token_runs = kept
    demo.space_id = None  # else Gradio's page asks the Hub for a badge and a font server for its letters
    return demo


def launch(demo: gr.Blocks, host: str, port: int, share: bool = False, **options: Any) -> None:
    """Serve the page; the default model begins to load as soon as the page can be opened."""
    models: Models = demo.first_token_models  # type: ignore[attr-defined]
    rules: Policy = demo.first_token_policy  # type: ignore[attr-defined]
    vitals: Vitals = demo.first_token_vitals  # type: ignore[attr-defined]
    here = settings.from_environment()
    models.begin()
    demo.launch(
        server_name=host, server_port=port, share=share, max_threads=THREADS_LIMIT,
        theme=Plain(), head=head(), auth=here.auth,
        app_kwargs={"routes": [*routes(), *vitals.routes()], "middleware": middleware(rules.open, here.on_space)},
        favicon_path=settings.assets_dir() / "favicon.svg", show_error=False, enable_monitoring=False,
        max_file_size="1mb", footer_links=[], run_history=False, ssr_mode=False, pwa=False, mcp_server=False,
        **options,
    )  # fmt: skip


def serve(
    model: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    share: bool = False,
    offline: bool = False,
    traces: Path | None = None,
    server: str | None = None,
    public: bool = False,
) -> None:
    """Serve the page until it is interrupted; its address is printed.

    `port` None is the first free one from 7860, a given one that is taken moves on likewise. Every run is
    written into the folder `traces`, where one is given. With a `server` its model answers, and none is loaded
    here. `public` says that others reach the page, whatever `host` is.
    """
    rules = rules_of(host, share, public)
    names = rules.open_names
    models = server_models(server, model) if server else local_models(model, device, dtype, offline, names)
    demo = build(models, offer=multilingual(offline), saved=traces, policy=rules)
    serve_until_ended(demo, host, free_port(host, port or 7860), share)


def serve_until_ended(demo: gr.Blocks, host: str, port: int, share: bool = False) -> None:
    """Serve until Ctrl-C or SIGTERM; then running runs are stopped, and their traces whole."""
    with suppress(ValueError):  # signals are heard on the main thread alone
        signal.signal(signal.SIGTERM, _end)
    vitals: Vitals = demo.first_token_vitals  # type: ignore[attr-defined]
    try:
        with suppress(KeyboardInterrupt):  # it may come before gradio waits for it
            launch(demo, host, port, share)
    finally:
        vitals.close()


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def both(*hooks: Ended | None) -> Ended:
    """Each of the hooks that there are, one after another."""
    there = [hook for hook in hooks if hook is not None]

    def told(hosted: Hosted[Any]) -> None:
        for hook in there:
            hook(hosted)

    return told


def rules_of(host: str, shared: bool = False, public: bool = False) -> Policy:
    """What visitors of a page on `host` may ask, by the environment; raises `Refused`."""
    here = settings.from_environment()
    return policy(
        host, shared=shared or here.on_space, public=public or here.public, servers=here.servers
    )  # fmt: skip


def local_models(
    model: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    offline: bool = False,
    open_names: bool = True,
) -> Models:
    """Models that run on this machine: `model` or the default first, then the catalog."""
    default = model or catalog.default_model().hub
    on_zero = _zero_gpu()
    load = _loader("cpu" if on_zero else device, dtype, offline, on_zero)
    listed = (*(known.hub for known in catalog.models()), *settings.from_environment().models)
    return Models(load, default, listed, open_names)


def _zero_gpu() -> Callable[[Any], Backend] | None:
    """What answers on ZeroGPU, where a GPU comes with each call; None elsewhere.

    Imported before the page is served, since the platform then asks which functions take a GPU.
    """
    if not settings.from_environment().zero_gpu:
        return None
    try:
        from playground.backends.zero import ZeroBackend
    except ImportError as error:
        print(f"ZeroGPU cannot be used ({error}); models run on the CPU.", flush=True)
        return None
    return ZeroBackend


def server_models(server: str, model: str | None) -> Models:
    """The model of the operator's server, for everybody who opens the page."""
    if server == settings.NATIVE:
        return Models(
            _native(model), f"llama.cpp · {model or catalog.default_model().title}", open_names=False
        )
    from playground.backends.remote.address import read_address
    from playground.backends.remote.backend import connect

    def load(name: str, report: Report) -> Backend:
        backend = connect(server, settings.from_environment().server_key, model)
        print(f"{backend.facts().name} answers at {backend.address}.", flush=True)
        return backend

    return Models(load, read_address(server).shown, open_names=False)


def _native(model: str | None) -> Callable[[str, Report], Backend]:
    def load(name: str, report: Report) -> Backend:
        from playground.backends.native import open_native
        from playground.engine.sources import gguf

        backend = open_native(gguf(model, report=_in_terminal(name, report)))
        print(f"{backend.facts().name} answers through llama.cpp in this process.", flush=True)
        return backend

    return load


def _loader(
    device: str, dtype: str, offline: bool, made: Callable[[Any], Backend] | None = None
) -> Callable[[str, Report], Backend]:
    """Loads a model and makes a backend of it: a local one, or what `made` makes."""

    def load(name: str, report: Report) -> Backend:
        tell = _in_terminal(name, report)
        tell(Progress("import"))
        from playground.backends.local import LocalBackend  # the page opens before torch is imported
        from playground.engine.load import load_model

        model = load_model(
            name, device=device, dtype=dtype, offline=offline, progress=tell, leave_a_core=True
        )
        print(f"{name} is ready, {model.facts.dtype} on {model.facts.device_name}.", flush=True)
        return (made or LocalBackend)(model)

    return load


def _in_terminal(name: str, report: Report) -> Report:
    """Also says each step on stdout, once as it begins and once when its size is known."""
    said: set[tuple[str, bool]] = set()

    def tell(progress: Progress) -> None:
        report(progress)
        step = (progress.step, progress.total_bytes is not None)
        if step not in said:
            said.add(step)
            print(f"{name}: {progress.sentence()}", flush=True)

    return tell


def recorded_runs(folder: Path) -> tuple[Run | None, Run | None]:
    """The recorded run of one lane that is read first, and that of several; None where there is none."""
    runs: list[Run] = []
    for path in shipped(folder):
        try:
            runs += load_trace(path).runs
        except BadTrace:
            continue
    single = next((run for run in runs if len(run.lanes) == 1), None)
    return single, next((run for run in runs if len(run.lanes) > 1), None)


def free_port(host: str, first: int) -> int:
    """The first free port from `first` on; `first` itself where none is, so that the error names it."""
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    return first


def _header(words: Words) -> Any:
    with gr.Row(elem_id="top"):
        gr.HTML('<h1 class="brand">First<i>·</i>Token</h1>', apply_default_css=False, elem_id="brand")
        gr.HTML(
            "", html_template='<span class="chip"></span>', apply_default_css=False, elem_id="device-chip"
        )
        tour = words.make(gr.Button, {"value": "page.tour"}, size="sm", elem_id="tour", elem_classes=["chip"])
        theme = words.make(
            gr.Button, {"value": "page.dark"}, size="sm", elem_id="theme", elem_classes=["chip"]
        )
        names = " / ".join(say(one, "page.language") for one in LANGUAGES)
        language = gr.Button(names, size="sm", elem_id="language", elem_classes=["chip"])
    theme.click(None, js="() => window.firstToken.toggleTheme()", api_visibility="private")
    tour.click(None, js="() => window.firstToken.tour()", api_visibility="private")
    return language


def _languages(words: Words, button: Any, stage: Any, who: Any) -> None:
    """One event retranslates every component; the stage's own words are changed by the page."""

    def chosen(asked_by: Any) -> list[dict[str, Any]]:
        return words.updates(read_tab(asked_by).language)

    def remembered(event: gr.EventData) -> list[dict[str, Any]]:
        return words.updates(read_tab(event._data).language)

    button.click(
        chosen, who, words.components, js="() => [window.firstToken.toggleLanguage()]", queue=False, **PRIVATE
    )
    stage.language(remembered, None, words.components, queue=False, **PRIVATE)


def _offering(service: Service, button: Any, playground: Any, who: Any) -> None:
    """On the Chinese page, a model that knows Chinese is offered, as soon as it is known to be had."""

    def offering(asked_by: Any) -> dict[str, Any]:
        name = service.offer() if read_tab(asked_by).language == "zh" else None
        title = (name or "").rpartition("/")[2]
        return gr.update(visible=bool(name), value=say("zh", "models.offer", name=title))

    for event in (button.click, playground.stage.language):
        event(offering, who, playground.offer, js=WHO, queue=False, trigger_mode="multiple", **PRIVATE)
