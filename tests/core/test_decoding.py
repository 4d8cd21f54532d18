"""Decoding settings: what is allowed, in words; how they are read and described; the draws."""

import math
from dataclasses import replace

import pytest

from playground.core.decoding import (
    GREEDY,
    Decoding,
    InvalidSetting,
    as_settings,
    chosen_decoding,
    describe,
    parse_decoding,
    validated,
)
from playground.core.draws import SEED_LIMIT, fresh_seed, uniform
from playground.core.stages import ORDERS, STAGE_ORDER, read_order, write_order

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("temperature", -1, "temperature must be a number from 0 to 100 (0 is greedy), not -1."),
        ("temperature", NAN, "temperature must be a number from 0 to 100 (0 is greedy), not nan."),
        ("temperature", INF, "temperature must be a number from 0 to 100 (0 is greedy), not inf."),
        ("temperature", -INF, "temperature must be a number from 0 to 100 (0 is greedy), not -inf."),
        ("temperature", True, "temperature must be a number from 0 to 100 (0 is greedy), not True."),
        ("temperature", "1", "temperature must be a number from 0 to 100 (0 is greedy), not '1'."),
        ("temperature", None, "temperature must be a number from 0 to 100 (0 is greedy), not None."),
        ("temperature", 10**400,
         "temperature must be a number from 0 to 100 (0 is greedy), not one of more than 30 digits."),
        ("top_p", 2, "top_p must be a number from 0 to 1 (1 is off), not 2."),
        ("top_p", -0.1, "top_p must be a number from 0 to 1 (1 is off), not -0.1."),
        ("min_p", 1.5, "min_p must be a number from 0 to 1 (0 is off), not 1.5."),
        ("typical_p", NAN, "typical_p must be a number from 0 to 1 (1 is off), not nan."),
        ("repetition_penalty", 0, "repetition_penalty must be a number from 0.01 to 100 (1 is off), not 0."),
        ("top_k", -1, "top_k must be a whole number from 0 to 2,147,483,647 (0 is off), not -1."),
        ("top_k", 2.0, "top_k must be a whole number from 0 to 2,147,483,647 (0 is off), not 2.0."),
        ("top_k", True, "top_k must be a whole number from 0 to 2,147,483,647 (0 is off), not True."),
        ("max_new_tokens", 0, "max_new_tokens must be a whole number from 1 to 100,000, not 0."),
        ("max_new_tokens", NAN, "max_new_tokens must be a whole number from 1 to 100,000, not nan."),
        ("seed", -1, "seed must be a whole number from 0 to 9,007,199,254,740,991, not -1."),
        ("seed", 2**53, "seed must be a whole number from 0 to 9,007,199,254,740,991, not 9007199254740992."),
        ("strategy", "beam", "strategy must be one of greedy, sample, not 'beam'."),
        ("strategy", "x" * 10_000, "strategy must be one of greedy, sample, not '" + "x" * 59 + "…."),
        ("penalty_scope", "prompt", "penalty_scope must be one of all, output, not 'prompt'."),
        ("stop", ("a", ""), "A stop string must be text of at least one character."),
        ("stop", (3,), "A stop string must be text of at least one character."),
        ("stop", ("a",) * 17, "At most 16 stop strings of at most 1,000 characters are allowed."),
        ("stop", ("a" * 1001,), "At most 16 stop strings of at most 1,000 characters are allowed."),
        ("stop", "end", "stop must be a list of stop strings, so a single one stands in a list of its own."),
        ("order", ("top_p", "heat"), "order must be transformers, llama.cpp, or of these between colons: "
         "bias, repetition_penalty, ban, temperature, top_k, top_p, min_p, typical_p."),
        ("order", (), "order must be transformers, llama.cpp, or of these between colons: "
         "bias, repetition_penalty, ban, temperature, top_k, top_p, min_p, typical_p."),
        ("order", None, "order must be transformers, llama.cpp, or of these between colons: "
         "bias, repetition_penalty, ban, temperature, top_k, top_p, min_p, typical_p."),
        ("order", (["top_p"],), "order must be transformers, llama.cpp, or of these between colons: "
         "bias, repetition_penalty, ban, temperature, top_k, top_p, min_p, typical_p."),
        ("order", ("top_p", "temperature", "top_p"),
         "order must name each stage once, and top_p stands there again."),
        ("order", ("top_p", "top_k"), "order must name every stage that is on, and temperature is missing."),
        ("name", "n" * 201, "The name of a lane must be text of at most 200 characters."),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_refused_in_a_sentence(setting, value, sentence):
    with pytest.raises(InvalidSetting) as refusal:
        validated(replace(Decoding(), **{setting: value}))
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"temperature": 0}, {"temperature": 100}, {"top_k": 10**9}, {"top_p": 0}, {"top_p": 1e-8},
        {"top_p": 1}, {"min_p": 1}, {"seed": SEED_LIMIT - 1}, {"max_new_tokens": 1}, {"stop": ("\n",)},
        {"stop": ["x"]}, {"order": ("top_p", "temperature")}, {"order": list(ORDERS["llama.cpp"])},
    ],
)  # fmt: skip
def test_what_is_in_range_is_kept_as_it_is(changes):
    decoding = Decoding(**changes)
    assert validated(decoding) is decoding


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", Decoding()),
        ("greedy", GREEDY),
        ("sample", Decoding()),
        ("temperature=0.8,top_p=0.9,seed=1", Decoding(temperature=0.8, top_p=0.9, seed=1)),
        (" temperature = 1.4 , top-k=40,", Decoding(temperature=1.4, top_k=40)),
        ("min_p=0.05,name=my lane", Decoding(min_p=0.05, name="my lane")),
        ("stop=END", Decoding(stop=("END",))),
        ("greedy,max_new_tokens=3", replace(GREEDY, max_new_tokens=3)),
        ("order=llama.cpp,top_k=5", Decoding(top_k=5, order=ORDERS["llama.cpp"])),
        ("order=transformers", Decoding()),
        ("order = top-p : temperature", Decoding(order=("top_p", "temperature"))),
    ],
)
def test_specs_are_read(spec, expected):
    assert parse_decoding(spec) == expected


def test_a_spec_changes_only_what_it_names():
    base = Decoding(temperature=1.1, seed=4, max_new_tokens=9)
    assert parse_decoding("top_p=0.5", base) == replace(base, top_p=0.5)
    assert parse_decoding("greedy", base) == replace(base, strategy="greedy", temperature=0.0, top_p=1.0)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("temperature=hot", "temperature cannot be 'hot'; it takes a number."),
        ("top_k=1.5", "top_k cannot be '1.5'; it takes a number."),
        ("seed=" + "9" * 5000, "seed cannot be '9"),
        ("temperature=-1", "not -1.0."),
        ("temperature=nan", "not nan."),
        ("heat=1", "'heat' is not a setting; known are strategy, temperature,"),
        ("fast", "strategy must be one of greedy, sample, not 'fast'."),
        ("__class__=1", "is not a setting"),
        ("order=", "order must be transformers, llama.cpp"),
        ("order=top_p:temperature:heat", "order must be transformers, llama.cpp"),
        ("order=top_p", "temperature is missing"),
        ("order=top_p:temperature,min_p=0.1", "min_p is missing"),
    ],
)
def test_specs_that_are_not_understood_are_named(spec, words):
    with pytest.raises(InvalidSetting) as refusal:
        parse_decoding(spec)
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 250


def test_temperature_zero_is_greedy_and_leaves_only_the_penalty():
    decoding = Decoding(temperature=0, top_k=5, repetition_penalty=1.2)
    assert decoding.greedy
    assert decoding.active_stages() == ("repetition_penalty",)
    assert describe(decoding) == "greedy, penalty 1.2"


def test_active_stages_come_in_the_order_of_generate():
    decoding = Decoding(temperature=0.5, top_k=3, top_p=0.9, min_p=0.1, typical_p=0.9, repetition_penalty=1.1)
    assert decoding.active_stages() == (
        "repetition_penalty", "temperature", "top_k", "top_p", "min_p", "typical_p",
    )  # fmt: skip
    assert Decoding(temperature=1, top_p=1).active_stages() == ()
    assert describe(decoding) == "T 0.5, top-k 3, top-p 0.9, min-p 0.1, typical-p 0.9, penalty 1.1"


def test_the_order_changes_what_acts_when():
    decoding = Decoding(temperature=0.5, top_k=3, order=ORDERS["llama.cpp"])
    assert decoding.active_stages() == ("top_k", "top_p", "temperature")
    assert describe(decoding) == "T 0.5, top-k 3, top-p 0.9, order top-k > top-p > T"
    assert describe(replace(decoding, top_k=0, top_p=1.0)) == "T 0.5"  # one stage has no order
    assert replace(decoding, temperature=0.0).active_stages() == ()
    incomplete = replace(decoding, order=("top_p",))  # a trace may hold it; it runs nowhere
    assert incomplete.active_stages() == ("top_p", "temperature", "top_k")


@pytest.mark.parametrize("order", [*ORDERS.values(), ("top_p", "temperature")])
def test_an_order_is_written_as_it_is_read(order):
    assert read_order(write_order(order)) == order
    assert set(ORDERS["llama.cpp"]) == set(STAGE_ORDER)


def test_the_scope_of_a_penalty_is_said():
    """Case 16."""
    assert describe(Decoding(repetition_penalty=1.2, top_p=1.0)) == "T 0.7, penalty 1.2"
    answer = Decoding(repetition_penalty=1.2, top_p=1.0, penalty_scope="output")
    assert describe(answer) == "T 0.7, penalty 1.2 on the answer"


def test_settings_are_json_values():
    assert as_settings(Decoding())["order"] == list(STAGE_ORDER)
    assert as_settings(Decoding(stop=("a",)))["stop"] == ["a"]
    assert set(as_settings(Decoding())) == set(Decoding.__slots__)


# --- draws


@pytest.mark.parametrize(
    ("seed", "step", "draw"),
    [
        (0, 0, 0.0564663990004608),
        (0, 1, 0.44008326622012284),
        (0, 2, 0.9278949661433847),
        (1, 0, 0.6487508310490744),
        (2**53 - 1, 10**6, 0.4053345521516727),
    ],
)
def test_draws_are_the_same_everywhere_and_for_ever(seed, step, draw):
    assert uniform(seed, step) == draw


def test_draws_are_uniform():
    draws = [uniform(seed, step) for seed in range(40) for step in range(250)]
    assert all(0 <= draw < 1 for draw in draws)
    counts = [sum(n / 10 <= draw < (n + 1) / 10 for draw in draws) for n in range(10)]
    chi_squared = sum((count - 1000) ** 2 / 1000 for count in counts)
    assert chi_squared < 27.9  # 9 degrees of freedom, p = 0.001
    assert len(set(draws)) == len(draws)


def test_lanes_with_different_seeds_are_independent():
    n = 4000
    a, b = [[uniform(seed, step) - 0.5 for step in range(n)] for seed in (7, 8)]
    later = a[1:] + a[:1]
    for other in (b, later):
        correlation = sum(x * y for x, y in zip(a, other, strict=True)) / n * 12
        assert abs(correlation) < 4 / math.sqrt(n)


def test_a_fresh_seed_is_a_valid_one():
    assert all(0 <= fresh_seed() < 1_000_000 for _ in range(100))


@pytest.mark.parametrize(
    ("spec", "stop"),
    [
        ("stop=END", ("END",)),
        ("stop=a,stop=b", ("a", "b")),
        ('stop=" a, b\\n",seed=1', (" a, b\n",)),
        ('stop="\\"",stop="x"', ('"', "x")),
        ('stop=say "x"', ('say "x"',)),
    ],
)
def test_stop_strings_of_a_spec(spec, stop):
    assert parse_decoding(spec).stop == stop


@pytest.mark.parametrize("spec", ['stop="', 'stop="a', 'stop="a"b', "stop=", 'stop=""'])
def test_a_stop_string_that_is_none_is_one_sentence(spec):
    with pytest.raises(InvalidSetting):
        parse_decoding(spec)


def test_an_option_that_samples_asks_for_sampling():
    assert chosen_decoding(None, {"temperature": None}, max_new_tokens=5) == replace(GREEDY, max_new_tokens=5)
    assert chosen_decoding(None, {"temperature": 1.5}, seed=3) == Decoding(temperature=1.5, seed=3)
    assert chosen_decoding("sample", {}) == Decoding()
    assert chosen_decoding("greedy", {"temperature": 0.9}).greedy
