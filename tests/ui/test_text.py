"""The words of the page: the same keys in both languages, nothing missing, one term for one thing."""

import re
import string
from collections.abc import Iterator
from typing import Any

import pytest

from playground.ui.text import LANGUAGES, say, sections

VARIANTS = (
    "令牌", "标记", "提示词", "键值缓存", "KV缓存", "贪心", "贪婪搜索", "种子数", "惊奇度", "信息熵",
    "预填阶段", "解码步骤", "注意力头缓存", "聊天模板", "分支点", "实际测量", "估算", "token", "prompt",
    "首字",
)  # fmt: skip
"""What the glossary has another word for."""


def flat(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


TEXTS = {language: dict(flat(sections(language))) for language in LANGUAGES}


def placeholders(text: str) -> set[str]:
    plain = re.sub(r"\[\[[\w-]+\|([^\]]+)\]\]", r"\1", text)
    return {name for _, name, _, _ in string.Formatter().parse(plain) if name is not None}


def terms(text: str) -> list[str]:
    return sorted(re.findall(r"\[\[([\w-]+)\|", text))


def test_both_languages_have_the_same_keys() -> None:
    assert set(TEXTS["en"]) == set(TEXTS["zh"])
    assert len(TEXTS["en"]) > 60


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_empty(language: str) -> None:
    # a joiner stands between two sentences: a space, or nothing where the script has none
    texts = {key: text for key, text in TEXTS[language].items() if not key.endswith(".join")}
    assert not [key for key, text in texts.items() if not isinstance(text, str) or not text.strip()]


def test_values_to_be_filled_in_are_the_same() -> None:
    differing = [k for k in TEXTS["en"] if placeholders(TEXTS["en"][k]) != placeholders(TEXTS["zh"][k])]
    assert not differing


def test_terms_with_a_definition_are_the_same() -> None:
    assert not [key for key in TEXTS["en"] if terms(TEXTS["en"][key]) != terms(TEXTS["zh"][key])]


@pytest.mark.parametrize("variant", VARIANTS)
def test_chinese_uses_the_terms_of_the_glossary(variant: str) -> None:
    def shown(text: str) -> str:
        return re.sub(r"\{\w+\}|\[\[[\w-]+\||`[^`]*`", "", text)

    using = {key: text for key, text in TEXTS["zh"].items() if variant.lower() in shown(text).lower()}
    assert not using


def test_chinese_is_chinese() -> None:
    same = [
        k for k, text in TEXTS["zh"].items() if text == TEXTS["en"][k] and re.search(r"[A-Za-z]{4,}", text)
    ]
    assert not [key for key in same if TEXTS["en"][key] not in {"logits", "typical-p"}]


def test_a_missing_key_is_an_error_not_a_blank() -> None:
    with pytest.raises(KeyError):
        say("en", "page.nothing_like_this")


def test_an_unknown_language_is_english() -> None:
    assert say("xx", "playground.generate") == "Generate"
