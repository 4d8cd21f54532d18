// What has been asked of the server about a step, and what it answered, until another run takes the page.

const PATIENCE_MS = 200;
const KEPT = 400;

export class Questions {
  /** `send` puts a question, null where nobody is there to be asked; `heard` is called when one is put or answered. */
  constructor(send, heard) {
    Object.assign(this, { send, heard, answers: new Map(), timers: new Map() });
  }

  get possible() {
    return this.send !== null;
  }

  reset() {
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
    this.answers.clear();
  }

  /** The answer to `question` {what, run, lane, step, key}; null where it has not come. */
  answer(question) {
    return this.answers.get(keyOf(question)) ?? null;
  }

  /** Ask once the cursor has rested here; a question that was asked already is not asked again. */
  ask(question, patience = PATIENCE_MS) {
    const { what } = question;
    clearTimeout(this.timers.get(what));
    if (!this.possible || this.answers.has(keyOf(question))) return;
    this.timers.set(what, setTimeout(() => {
      this.#keep({ ...question, waiting: true });
      this.send("ask", question);
      this.heard();
    }, patience));
  }

  hear(answer) {
    if (answer === null || typeof answer !== "object") return;
    this.#keep(answer);
    this.heard();
  }

  /** The oldest go: who slides a setting over a long run asks without end. */
  #keep(answer) {
    this.answers.delete(keyOf(answer));
    this.answers.set(keyOf(answer), answer);
    if (this.answers.size > KEPT) this.answers.delete(this.answers.keys().next().value);
  }
}

/** `key` tells questions to the same step apart. */
const keyOf = ({ what, run, lane, step, key }) => [what, run, lane ?? 0, step ?? "", key ?? ""].join("/");
