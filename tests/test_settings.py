"""What the environment may say, and what is refused."""

from pathlib import Path

import pytest

from playground.settings import InvalidEnvironment, assets_dir, child_environment, from_environment


def test_nothing_set() -> None:
    found = from_environment({})
    assert (found.host, found.port, found.model, found.offline) == ("127.0.0.1", 7860, None, False)
    assert (found.device, found.dtype, found.threads) == ("auto", "auto", None)
    assert found.cache_dir.name == "first-token"
    assert not found.on_space


def test_short_names_for_the_makefile_and_ours_over_them() -> None:
    short = {"HOST": "0.0.0.0", "PORT": "8000", "MODEL": "gpt2"}
    found = from_environment(short)
    assert (found.host, found.port, found.model) == ("0.0.0.0", 8000, "gpt2")
    ours = {"FIRST_TOKEN_HOST": "::1", "FIRST_TOKEN_PORT": "9", "FIRST_TOKEN_MODEL": "qwen3-0.6b"}
    found = from_environment(short | ours)
    assert (found.host, found.port, found.model) == ("::1", 9, "qwen3-0.6b")


def test_empty_means_unset() -> None:
    assert from_environment({"MODEL": "", "PORT": " ", "FIRST_TOKEN_CACHE": ""}) == from_environment({})


@pytest.mark.parametrize("name", ["FIRST_TOKEN_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize(
    ("value", "offline"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("", False)]
)
def test_offline(name: str, value: str, offline: bool) -> None:
    assert from_environment({name: value}).offline is offline


@pytest.mark.parametrize("value", ["0", "65536", "-1", "80.5", "http", "٣x", "9" * 5000])
def test_a_port_that_is_none(value: str) -> None:
    with pytest.raises(InvalidEnvironment, match="PORT must be a whole number from 1 to 65535"):
        from_environment({"PORT": value})


def test_threads() -> None:
    assert from_environment({"OMP_NUM_THREADS": "3"}).threads == 3
    assert from_environment({"OMP_NUM_THREADS": "3", "FIRST_TOKEN_THREADS": "2"}).threads == 2


@pytest.mark.parametrize(
    ("value", "threads"),
    [("4,2", 4), (" 8 , 1", 8), ("many", None), ("0", None), ("9" * 5000, None), ("", None)],
)
def test_the_list_of_openmp_never_keeps_the_program_from_starting(value: str, threads: int | None) -> None:
    assert from_environment({"OMP_NUM_THREADS": value}).threads == threads


def test_a_space_listens_to_the_world() -> None:
    found = from_environment({"SPACE_ID": "someone/space"})
    assert (found.on_space, found.host) == (True, "0.0.0.0")


def test_the_cache_can_be_moved(tmp_path: Path) -> None:
    assert from_environment({"FIRST_TOKEN_CACHE": str(tmp_path)}).cache_dir == tmp_path


def test_a_child_sees_the_changes_and_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_THING", "kept")
    child = child_environment(TMPDIR="there")
    assert (child["SOME_THING"], child["TMPDIR"]) == ("kept", "there")


def test_assets_of_a_checkout_and_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.settings.__file__", str(tmp_path / "playground" / "settings.py"))
    assert assets_dir() == tmp_path / "assets"
    (tmp_path / "playground" / "assets").mkdir(parents=True)
    assert assets_dir() == tmp_path / "playground" / "assets"


@pytest.mark.parametrize(
    ("environment", "public"),
    [
        ({}, False), ({"FIRST_TOKEN_PUBLIC": "1"}, True), ({"SPACE_ID": "a/b"}, True),
        ({"SPACE_ID": "a/b", "FIRST_TOKEN_PUBLIC": "0"}, False), ({"FIRST_TOKEN_PUBLIC": "no"}, False),
    ],
)  # fmt: skip
def test_a_space_is_public_unless_the_operator_says_otherwise(
    environment: dict[str, str], public: bool
) -> None:
    assert from_environment(environment).public is public


def test_lists_and_the_password_of_the_page() -> None:
    found = from_environment(
        {
            "FIRST_TOKEN_SERVERS": "http://a:1, http://b:2",
            "FIRST_TOKEN_MODELS": "x/y z",
            "FIRST_TOKEN_AUTH": "me:a:b",
        }
    )
    assert found.servers == ("http://a:1", "http://b:2") and found.models == ("x/y", "z")
    assert found.auth == ("me", "a:b") and "a:b" not in repr(found)
    for bad in ("sesame", ":sesame", "sesame:"):
        with pytest.raises(InvalidEnvironment, match="is not shown") as error:
            from_environment({"FIRST_TOKEN_AUTH": bad})
        assert "sesame" not in str(error.value)
