"""What the environment says: the only place that reads environment variables.

Knows no model, no page and no command line; their own options win over these values.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from playground.core.refusal import Refused

THREADS_LIMIT = 1024

NATIVE = "llamacpp"
"""In place of a server's address: llama.cpp in this process."""
SPACES = "https://huggingface.co/spaces"

_SPACE = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}")
_YES = {"1", "t", "true", "yes", "on"}


class InvalidEnvironment(Refused, ValueError):
    """A variable that cannot be read; the message is one sentence that names it."""

    wrong_use = True


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults of this process.

    `cache_dir` holds our own converted models and nothing else's. `model` None is the default model.
    `threads` None leaves the number of CPU threads to the engine. `device_map` spreads a model over devices.
    `offline` forbids every request that leaves the machine. `on_space` tells a Hugging Face Space, `zero_gpu`
    one whose GPU comes and goes with each call, `space_address` where its visitors see it: the page itself
    stands in a frame there. `public` tells that others reach the page, whatever it listens on; then models
    come from the list with `models` added, and visitors connect to the operator's `servers` alone.
    `server_key` is sent to the operator's own `--server`, `auth` is NAME:PASSWORD that opens the page; both
    are shown nowhere.
    """

    cache_dir: Path
    host: str = "127.0.0.1"
    port: int = 7860
    model: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    device_map: str | None = None
    threads: int | None = None
    offline: bool = False
    on_space: bool = False
    zero_gpu: bool = False
    space_address: str | None = None
    public: bool = False
    models: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    server_key: str = field(default="", repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the variables; raises `InvalidEnvironment`.

    HOST, PORT and MODEL are short names for the Makefile; FIRST_TOKEN_HOST and so on win over
    them. HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE count as offline, the first number of
    OMP_NUM_THREADS as threads.
    """
    env = os.environ if environment is None else environment
    space = env.get("SPACE_ID", "")
    on_space = bool(space)
    cache = _first(env, "FIRST_TOKEN_CACHE") or _cache_dir()
    offline = ("FIRST_TOKEN_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return Settings(
        cache_dir=Path(cache).expanduser(),
        host=_first(env, "FIRST_TOKEN_HOST", "HOST") or ("0.0.0.0" if on_space else "127.0.0.1"),
        port=_whole(env, 1, 65535, "FIRST_TOKEN_PORT", "PORT") or 7860,
        model=_first(env, "FIRST_TOKEN_MODEL", "MODEL"),
        device=_first(env, "FIRST_TOKEN_DEVICE") or "auto",
        dtype=_first(env, "FIRST_TOKEN_DTYPE") or "auto",
        device_map=_first(env, "FIRST_TOKEN_DEVICE_MAP"),
        threads=_whole(env, 1, THREADS_LIMIT, "FIRST_TOKEN_THREADS") or _openmp_threads(env),
        offline=any(_yes(env, name) for name in offline),
        on_space=on_space,
        zero_gpu=_yes(env, "SPACES_ZERO_GPU"),
        public=_yes(env, "FIRST_TOKEN_PUBLIC")
        or (on_space and not env.get("FIRST_TOKEN_PUBLIC", "").strip()),
        models=_list(env, "FIRST_TOKEN_MODELS"),
        servers=_list(env, "FIRST_TOKEN_SERVERS"),
        auth=_auth(env.get("FIRST_TOKEN_AUTH", "")),
        server_key=_first(env, "FIRST_TOKEN_SERVER_KEY") or "",
        space_address=f"{SPACES}/{space}" if _SPACE.fullmatch(space) else None,
    )


def assets_dir() -> Path:
    """The folder of style, texts, models and demo traces: inside the wheel, else the checkout's."""
    here = Path(__file__).resolve().parent
    inside = here / "assets"
    return inside if inside.is_dir() else here.parent / "assets"


def child_environment(**changes: str) -> dict[str, str]:
    """This process's environment with `changes`, for a program started from here."""
    return {**os.environ, **changes}


def _first(env: Mapping[str, str], *names: str) -> str | None:
    return next((value for name in names if (value := env.get(name, "").strip())), None)


def _cache_dir() -> str:
    """Where this system keeps caches."""
    try:
        from platformdirs import user_cache_dir
    except ImportError:  # a GPU box with torch and transformers alone
        return str(Path.home() / ".cache" / "first-token")
    return user_cache_dir("first-token", appauthor=False)


def _list(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    """What stands between commas or spaces."""
    return tuple(env.get(name, "").replace(",", " ").split())


def _auth(text: str) -> tuple[str, str] | None:
    name, colon, password = text.strip().partition(":")
    if not text.strip():
        return None
    if not (name and colon and password):
        raise InvalidEnvironment("FIRST_TOKEN_AUTH must be NAME:PASSWORD; what it holds is not shown.")
    return name, password


def _yes(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").strip().lower() in _YES


def _whole(env: Mapping[str, str], low: int, high: int, *names: str) -> int | None:
    for name in names:
        text = env.get(name, "").strip()
        if not text:
            continue
        if not text.isdecimal() or len(text) > 20 or not low <= int(text) <= high:
            raise InvalidEnvironment(
                f"{name} must be a whole number from {low} to {high}, not {text[:60]!r}."
            )
        return int(text)
    return None


def _openmp_threads(env: Mapping[str, str]) -> int | None:
    """The first number of OpenMP's list, one a level; what else may stand there is not ours to judge."""
    first = env.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    known = first.isdecimal() and len(first) <= 4 and 1 <= int(first) <= THREADS_LIMIT
    return int(first) if known else None
