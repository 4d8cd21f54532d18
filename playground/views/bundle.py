"""The stage's ES modules as one script, for a page that is opened from a disk, where modules cannot import.

Each module becomes a function that returns its exports, in the order in which they need each other. Knows
the forms of `import` and `export` that the stage is written in, and refuses any other.
"""

import re
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "(\.{1,2}/[\w./]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function|const) (\w+))", re.MULTILINE)
_LEFT_OVER = re.compile(r"^\s*(?:import|export)\b|\bimport\(|</script|<!--", re.MULTILINE | re.IGNORECASE)


class CannotBundle(ValueError):
    """A module that is written in a form which is not known here."""


@cache
def bundled(entry: Path) -> str:
    """The module `entry` and all that it imports, as the text of one inline script."""
    modules: dict[Path, str] = {}
    _add(entry.resolve(), modules, ())
    names = {path: f"m{n}" for n, path in enumerate(modules)}
    parts = [_wrapped(path, source, names) for path, source in modules.items()]
    return '"use strict";\n' + "\n".join(parts)


def _add(path: Path, modules: dict[Path, str], within: tuple[Path, ...]) -> None:
    """The modules that `path` needs, then itself."""
    if path in modules:
        return
    if path in within:
        raise CannotBundle(f"{path.name} imports itself by way of {within[-1].name}.")
    source = path.read_text(encoding="utf-8")
    for _, needed in _IMPORT.findall(source):
        _add((path.parent / needed).resolve(), modules, (*within, path))
    modules[path] = source


def _wrapped(path: Path, source: str, names: dict[Path, str]) -> str:
    def imported(found: re.Match[str]) -> str:
        taken = found[1].replace(" as ", ": ")
        return f"const {{ {taken} }} = {names[(path.parent / found[2]).resolve()]};"

    exports = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", _IMPORT.sub(imported, source))
    if _LEFT_OVER.search(body):
        raise CannotBundle(f"{path.name} imports or exports in a form that is not known here.")
    return f"const {names[path]} = (() => {{\n{body}return {{ {exports} }};\n}})();"
