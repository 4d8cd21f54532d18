"""The outputs in the READMEs are those of the commands above them: python .ci/readme.py writes them anew.

Commands that run the model are shown with their stdout alone, since the story on stderr holds times
of one machine. Run from the repository's root.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from playground.settings import child_environment

ROOT = Path(__file__).resolve().parents[1]
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
RUNS_A_MODEL = {"generate", "compare", "score", "tokens"}
_BLOCK = re.compile(r"```console\n\$ (first-token .*)\n(?:.*\n)*?```\n")


def with_outputs(text: str, wanted: Callable[[str], bool] = lambda _: True) -> str:
    """`text` with the output of every console block whose command is `wanted` made anew."""

    def again(block: re.Match[str]) -> str:
        command = block[1]
        return f"```console\n$ {command}\n{output(command)}```\n" if wanted(command) else block[0]

    return _BLOCK.sub(again, text)


def runs_a_model(command: str) -> bool:
    """Whether the command loads the default model."""
    return command.split()[1] in RUNS_A_MODEL


@cache
def output(command: str) -> str:
    """What the command prints, lines without trailing spaces. Raises `CalledProcessError`."""
    arguments = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "playground", *arguments],
        cwd=ROOT, env=child_environment(COLUMNS="88"), check=True, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if runs_a_model(command) else subprocess.STDOUT,
    )  # fmt: skip
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


if __name__ == "__main__":
    for readme in READMES:
        readme.write_text(with_outputs(readme.read_text(encoding="utf-8")), encoding="utf-8")
