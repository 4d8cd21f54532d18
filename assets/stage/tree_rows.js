// Which branches of a tree of draws are seen: the most drawn first, what a person opened or closed, and the
// rest counted. Arithmetic only; knows no page.

export const ROWS = 26;
const CHILDREN = 7;

export class Choice {
  constructor() {
    this.opened = new Map();
    this.whole = new Set();
    this.sticky = new Set();
  }

  /** Open or close the branch of `key`, for good. */
  set(key, open) {
    this.opened.set(key, open);
  }

  /** Show every child of the branch of `key`. */
  all(key) {
    this.whole.add(key);
  }

  /** The rows of `tree` from top to bottom: {branch, level, open, rest, before, after}; shares are of all draws. */
  rows(tree) {
    this.#open(tree);
    const found = [];
    this.#walk(tree, tree.branch(), 0, 0, [], found);
    return found;
  }

  /** Open the most drawn branches until the rows are used up; what was open once stays so. */
  #open(tree) {
    const waiting = [tree.branch()];
    let used = 1;
    while (waiting.length) {
      waiting.sort((a, b) => a.count - b.count);
      const branch = waiting.pop();
      const wanted = this.opened.get(branch.key) ?? (this.sticky.has(branch.key) || used + this.#shown(branch).length <= ROWS);
      if (!branch.children.length || !wanted) continue;
      this.sticky.add(branch.key);
      const shown = this.#shown(branch);
      used += shown.length;
      waiting.push(...shown.map((node) => tree.branch(node)));
    }
  }

  #shown({ key, children }) {
    return this.whole.has(key) || children.length <= CHILDREN + 1 ? children : children.slice(0, CHILDREN);
  }

  #walk(tree, branch, level, after, lines, found) {
    const open = branch.children.length > 0 && (this.opened.get(branch.key) ?? this.sticky.has(branch.key));
    found.push({ branch, level, open, after, lines });
    if (!open) return;
    const shown = this.#shown(branch);
    let left = branch.children.reduce((sum, node) => sum + node.count, 0);
    const hidden = branch.children.slice(shown.length);
    for (const node of shown) {
      left -= node.count;
      this.#walk(tree, tree.branch(node), level + 1, left, level ? [...lines, after] : [], found);
    }
    if (hidden.length) {
      found.push({ rest: hidden.length, of: branch, level: level + 1, after: 0, count: left, lines: level ? [...lines, after] : [] });
    }
  }
}
