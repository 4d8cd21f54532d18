"""Many draws in a terminal: the tree of continuations, one line a branch, the counts before the text.

Pure: a run and a width in, a renderable out.
"""

from rich.text import Text
from rich.tree import Tree

from playground.core.printable import one_line
from playground.core.run import Run
from playground.core.tree import Branch, tree

BRANCHES_SHOWN = 48
"""Lines at most; the rarest continuations are counted below their branch."""
TEXT_CHARACTERS = 400


def draws_tree(run: Run) -> Tree:
    """All lanes of `run` as draws of one distribution."""
    root = tree(run.lanes)
    shown = _most_drawn(root, BRANCHES_SHOWN)
    drawing = Tree(_line(root, len(run.lanes)), guide_style="dim")
    _grow(drawing, root, len(run.lanes), shown)
    return drawing


def draws_sentence(run: Run) -> str:
    """`16 draws, 11 different continuations; all share the first 3 tokens.`"""
    root = tree(run.lanes)
    shared = len(root.token_ids)
    ways = f"{root.endings:,} different continuation{'s' if root.endings != 1 else ''}"
    first = "first token" if shared == 1 else f"first {shared:,} tokens"
    common = f"all share the {first}" if shared else "they part at the first token"
    return f"{len(run.lanes)} draws, {ways}; {common}."


def _grow(place: Tree, branch: Branch, total: int, shown: set[int]) -> None:
    hidden = [child for child in branch.children if id(child) not in shown]
    for child in branch.children:
        if id(child) in shown:
            _grow(place.add(_line(child, total)), child, total, shown)
    if hidden:
        more = sum(child.count for child in hidden)
        place.add(Text(f"{more} more in {sum(child.endings for child in hidden)} continuations", style="dim"))


def _line(branch: Branch, total: int) -> Text:
    """Count and share, the probability that they estimate, then the tokens."""
    text = Text(f"{branch.count:>2} of {total} ", style="bold")
    text.append(f"{branch.count / total:.1%}, computed {branch.probability:.1%}  ", style="not bold dim")
    shown = one_line(branch.text) or ("(ends here)" if branch.tips else "(start)")
    text.append(shown[:TEXT_CHARACTERS] + "…" * (len(shown) > TEXT_CHARACTERS), style="not bold")
    if branch.tips and branch.children:
        text.append(f"  ({branch.tips} end here)", style="not bold dim")
    return text


def _most_drawn(root: Branch, limit: int) -> set[int]:
    """The ids of the `limit` branches with the most draws, each with all that lead to it."""
    opened: list[Branch] = [root]
    shown = {id(root)}
    while opened and len(shown) < limit:
        branch = max(opened, key=lambda one: one.count)
        opened.remove(branch)
        for child in branch.children[: limit - len(shown)]:
            shown.add(id(child))
            opened.append(child)
    return shown
