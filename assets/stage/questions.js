// What has been asked of the server about a step, and what it answered, until another run takes the page.
//
// Of each kind one question is under way; what is wished meanwhile follows it, the last wish only. So whoever drags
// a slider is answered as fast as answers come, and a single move does not wait at all.

const PATIENCE_MS = 200;
const LOST_MS = 5000;
const KEPT = 400;

export class Questions {
  /** `send` puts a question, null where nobody is there to be asked; `heard` is called when one is put or answered. */
  constructor(send, heard) {
    Object.assign(this, { send, heard, answers: new Map(), next: new Map(), flying: new Map() });
  }

  get possible() {
    return this.send !== null;
  }

  reset() {
    for (const { timer } of this.next.values()) clearTimeout(timer);
    for (const held of [this.next, this.flying, this.answers]) held.clear();
  }

  /** The answer to `question` {what, run, lane, step, key}; null where it has not come. */
  answer(question) {
    return this.answers.get(keyOf(question)) ?? null;
  }

  /** Ask once this has been wished for `patience`; a question that was asked already is not asked again. */
  ask(question, patience = PATIENCE_MS) {
    const { what } = question;
    const key = keyOf(question);
    if (!this.possible || this.next.get(what)?.key === key) return;
    clearTimeout(this.next.get(what)?.timer);
    this.next.delete(what);
    if (this.answers.has(key)) return;
    this.#later(question, patience);
  }

  #later(question, ms) {
    const timer = setTimeout(() => this.#due(question), ms);
    this.next.set(question.what, { key: keyOf(question), question, timer });
  }

  #due(question) {
    const { what } = question;
    const left = (this.flying.get(what)?.until ?? 0) - performance.now();
    if (left > 0) {
      this.#later(question, left); // the answer to the one before comes sooner, or never
      this.next.get(what).due = true;
      return;
    }
    this.next.delete(what);
    this.flying.set(what, { key: keyOf(question), until: performance.now() + LOST_MS });
    this.#keep({ ...question, waiting: true });
    this.send("ask", question);
    this.heard();
  }

  hear(answer) {
    if (answer === null || typeof answer !== "object") return;
    const { what } = answer;
    this.#keep(answer);
    if (this.flying.get(what)?.key === keyOf(answer)) this.flying.delete(what);
    this.heard();
    const next = this.next.get(what);
    if (!next?.due || this.flying.has(what)) return;
    clearTimeout(next.timer);
    this.#due(next.question);
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
