"""llama.cpp in this process, on the default model's own file: real runs, and what cannot be loaded."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from playground.backends.native import open_native
from playground.backends.protocol import BackendError
from playground.core.branch import continued
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.progress import CannotLoad
from playground.engine.sources import gguf
from playground.engine.wheel import original

pytestmark = pytest.mark.model
SHORT = replace(GREEDY, max_new_tokens=12)


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    made = open_native(original(lambda progress: None), 1)
    yield made
    made.close()


def test_it_answers_with_the_records_of_any_other_run(backend: Any) -> None:
    sampled = tuple(Decoding(seed=seed, max_new_tokens=8) for seed in (1, 2))
    run = fold(backend.stream(Request("What is gravity?", (SHORT, *sampled), top_n=20), Control()))
    assert "ravity" in run.lanes[0].text and run.done and not any(lane.failed for lane in run.lanes)
    assert all(step.raw_rank == 1 and len(step.candidates) == 20 for step in run.lanes[0].steps)
    assert backend.facts().device_name == "llama.cpp · CPU" and backend.facts().dtype == "Q4_1"


def test_a_branch_goes_on_from_its_cache(backend: Any) -> None:
    run = fold(backend.stream(Request("What is gravity?", (SHORT,)), Control()))
    again = fold(backend.stream(continued(run, 6), Control()))
    assert again.lanes[0].token_ids[:6] == run.lanes[0].token_ids[6:]
    assert again.prefilled is not None and again.prefilled.tokens_reused > 0


def test_its_port_answers_nobody_else(backend: Any) -> None:
    root = backend._connection.address.root
    assert httpx.post(f"{root}/completion", json={"prompt": "x", "n_predict": 1}).status_code == 401
    assert root not in repr(backend.facts()) and root.rpartition(":")[2] not in backend.address


def test_what_is_no_gguf_is_refused_and_named_without_its_folder(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(BackendError, match=r"cannot read broken\.gguf") as found:
        open_native(broken, 1)
    assert str(tmp_path) not in str(found.value)
    with pytest.raises(CannotLoad, match="give the path of a .gguf file"):
        gguf("Qwen/Qwen3-0.6B")
    assert gguf(str(broken)) == broken
