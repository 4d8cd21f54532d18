"""What a load reports while it works."""

import threading

import pytest

from playground.engine.progress import Progress, measured


@pytest.mark.parametrize(
    ("progress", "sentence"),
    [
        (Progress("hub-check"), "Asking the Hugging Face Hub …"),
        (Progress("download", 0, 2**20), "Downloading the model: 0 B of 1 MiB"),
        (Progress("download", 3 * 2**20), "Downloading the model: 3 MiB"),
        (Progress("convert", None, 517 * 2**20), "Converting the model, once: 517 MiB"),
    ],
)
def test_a_sentence_for_the_terminal(progress: Progress, sentence: str) -> None:
    assert progress.sentence() == sentence


def test_bytes_are_seen_while_the_work_goes_on_and_never_exceed_the_total() -> None:
    steps: list[Progress] = []
    sizes = iter([40, 70, 200])
    seen = threading.Event()

    def report(progress: Progress) -> None:
        steps.append(progress)
        if len(steps) == 4:
            seen.set()

    with measured(report, "download", 100, lambda: next(sizes, 200), every_seconds=0.001):
        assert seen.wait(5)
    assert [step.done_bytes for step in steps[:4]] == [0, 40, 70, 100]
    assert steps[-1] == Progress("download", 100, 100)


def test_a_failure_does_not_report_the_end() -> None:
    steps: list[Progress] = []

    def fail() -> None:
        with measured(steps.append, "download", 100, lambda: 1, every_seconds=60):
            raise OSError

    with pytest.raises(OSError):
        fail()
    assert steps == [Progress("download", 0, 100)]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("progress-")]


def test_negative_growth_counts_as_nothing() -> None:
    steps: list[Progress] = []
    done = threading.Event()

    def report(progress: Progress) -> None:
        steps.append(progress)
        if len(steps) > 1:
            done.set()

    with measured(report, "download", 100, lambda: -5, every_seconds=0.001):
        assert done.wait(5)
    assert steps[1].done_bytes == 0
