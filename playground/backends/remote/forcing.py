"""Tokens that a person puts: a server chooses by itself, so each is appended to the prompt and the run goes on.

What the model thought at that place is asked for with a run of one token; a put token that is not among the
candidates is less probable than the last of them, which is all that is known. Knows no stream of its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from playground.backends.remote.answers import Answer, Ended
from playground.backends.remote.answers import answer as made
from playground.backends.remote.dialect import Asked, Dialect, Opened
from playground.backends.remote.faults import CUT, ServerFault


def answers(dialect: Dialect, asked: Asked, opened: Opened) -> Iterator[Answer | Ended]:
    """The put tokens first, each with the server's candidates, and then what the server chooses."""
    decoding, ids = asked.decoding, asked.ids or ()
    for id in decoding.forced[: decoding.max_new_tokens]:
        one = replace(asked, ids=ids, decoding=replace(decoding, forced=(), max_new_tokens=1))
        yield _put(dialect, id, one, opened)
        ids = (*ids, id)
    left = decoding.max_new_tokens - len(decoding.forced)
    if left > 0:
        rest = replace(asked, ids=ids if decoding.forced else asked.ids)
        yield from dialect.answers(
            replace(rest, decoding=replace(decoding, forced=(), max_new_tokens=left)), opened
        )


def _put(dialect: Dialect, id: int, asked: Asked, opened: Opened) -> Answer:
    for found in dialect.answers(asked, opened):
        if isinstance(found, Answer):
            (token,) = dialect.named((id,))
            known = next((value for one, value in found.top if one.id == id), found.top[-1][1])
            return replace(made(token, known, list(found.top), found.timed), forced=True)
    raise ServerFault(CUT)
