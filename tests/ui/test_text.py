"""The words of the page: the same keys in every language, nothing missing or past them, one term for one thing."""

import ast
import json
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import playground
from playground.settings import assets_dir
from playground.ui.text import LANGUAGES, say, sections

CODE = Path(playground.__file__).parent

VARIANTS = (
    "令牌", "标记", "提示词", "键值缓存", "KV缓存", "贪心", "贪婪搜索", "种子数", "惊奇度", "信息熵",
    "预填阶段", "解码步骤", "注意力头缓存", "聊天模板", "分支点", "实际测量", "估算", "token", "prompt",
    "首字", "词符", "代币", "保留质量", "踪迹", "追踪", "车道", "通道", "显存带宽", "访存带宽", "首个词元时间",
    "字间", "因果遮罩", "因果屏蔽", "正向传播", "前向计算", "标记器", "词元化器", "分组注意力", "采样后的概率",
    "惊讶", "提示语", "估测", "预估", "首令牌",
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys(language: str) -> None:
    assert set(TEXTS[language]) == set(TEXTS["en"])
    assert {"en", "zh"} <= set(LANGUAGES)


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
        return re.sub(r"First Token|\{\w+\}|\[\[[\w-]+\||`[^`]*`", "", text)

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


SHOWN = {
    "label",
    "placeholder",
    "info",
    "value",
    "title",
    "text",
    "name",
    "hovertemplate",
    "description",
    "alt",
}
PROSE = re.compile(r"[A-Z][a-z]{2,}|[A-Za-z]{2,},? [a-z]{2,}|[\u4e00-\u9fff]")
NAME = re.compile(r"First(·| )Token")
PROMPTS = {"Write one sentence about the sea.", "What is gravity? Answer in two sentences."}
"""What the page opens with is asked of the model, whatever language the page speaks."""


def spoken(node: ast.Call) -> Iterator[str]:
    """The literals of a call that people would read."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = getattr(getattr(function, "value", None), "id", "")
    built = owner == "gr" or name in {"make", "Markup", "update"}
    values = [*(node.args[:1] if built else []), *(k.value for k in node.keywords if k.arg in SHOWN)]
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield NAME.sub("", re.sub(r"<[^>]*>|\{\w+\}", "", value.value)).strip()


def python_literals(file: Path) -> list[str]:
    calls = (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call))
    found = (text for call in calls for text in spoken(call))
    return [text for text in found if PROSE.search(text) and text not in PROMPTS]


@pytest.mark.parametrize("layer", ["ui", "views"])
def test_no_string_of_the_page_stands_in_its_python(layer: str) -> None:
    found = {file.name: python_literals(file) for file in (CODE / layer).rglob("*.py")}
    assert {name: texts for name, texts in found.items() if texts} == {}


LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`", re.DOTALL
)
NOT_SHOWN = re.compile(  # keys, selectors, calls, classes
    r"[^A-Z\u4e00-\u9fff ][^ \u4e00-\u9fff]*|[#.\[(:].*|.*\[[\w-]+[\]=].*|\w+\(.*|[a-z]{2}-[\w-]+( [a-z]{2}-[\w-]+)*"
)
KEYS = {"Enter", "Escape", "Home", "End", "Tab", "ArrowLeft", "ArrowRight"}
PYTHON_CODE = {"recompute.js"}


def script_literals(source: str) -> list[str]:
    literals = (
        next((part for part in found.groups() if part is not None), "") for found in LITERAL.finditer(source)
    )
    plain = (re.sub(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "", text).strip() for text in literals)
    named = (NAME.sub("", text) for text in plain)
    return [
        text for text in named if PROSE.search(text) and text not in KEYS and not NOT_SHOWN.fullmatch(text)
    ]


def test_no_string_of_the_page_stands_in_its_scripts() -> None:
    scripts = [file for file in assets_dir().rglob("*.js") if file.name not in PYTHON_CODE]
    found = {file.name: script_literals(file.read_text("utf-8")) for file in scripts}
    assert len(scripts) > 30
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_a_string_that_bypasses_the_texts_would_be_found() -> None:
    calls = [
        n for n in ast.walk(ast.parse('gr.Button("Press me")\nf(label="某")')) if isinstance(n, ast.Call)
    ]
    assert [text for call in calls for text in spoken(call) if PROSE.search(text)] == ["Press me", "某"]
    assert script_literals('a.textContent = "No run yet."; // a comment here') == ["No run yet."]
    assert script_literals("b.title = 'Copied'; c.append(`${n} 个`)") == ["Copied", "个"]
    assert script_literals('make("p", "ft-quiet ft-why"); query("#prompt textarea")') == []


THIRD = """
import sys
from pathlib import Path
from playground import settings
settings.assets_dir = lambda: Path(sys.argv[1])
from playground.ui import session, text, theme
words = text.Words()
import gradio as gr
with gr.Blocks():
    words.make(gr.Button, {"value": "playground.generate"})
print(text.LANGUAGES, words.updates("eo")[0]["value"], session.read_tab({"language": "eo"}).language)
print(theme.head().splitlines()[0])
"""


def test_a_language_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "i18n").mkdir()
    for language in LANGUAGES:
        (tmp_path / "i18n" / f"{language}.json").write_text(json.dumps(sections(language)), "utf-8")
    third: dict[str, Any] = json.loads(json.dumps(sections("en")))
    third["playground"]["generate"] = "Generi"
    (tmp_path / "i18n" / "eo.json").write_text(json.dumps(third), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", THIRD, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=CODE.parent,
    )
    said, fact = done.stdout.splitlines()
    assert said == "('en', 'eo', 'zh') Generi eo"
    assert 'content="en eo zh"' in fact
