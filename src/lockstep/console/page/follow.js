// One stream of events with the topics of all tabs; runs in a shared worker, or in the page where
// the browser has none.

const LOG_LINES = 5000;
/** Milliseconds after which a stream that said nothing yet is given up, and asked for anew. */
const PATIENCE = 10000;

/** What is known of a topic; the same shape as the server's picture, with a log's lines. */
export function empty() {
  return { facts: {}, order: [], rows: {}, lines: [], known: false };
}

export function applied(before, message) {
  const base = message.reset ? empty() : before;
  const facts = { ...base.facts, ...message.facts };
  for (const key of Object.keys(facts)) if (facts[key] === null && message.facts?.[key] === null) delete facts[key];
  const order = message.order ?? base.order;
  const all = { ...base.rows, ...message.rows };
  const rows = {};
  for (const key of order) rows[key] = all[key];
  let lines = base.lines;
  if (message.lines) lines = [...lines, ...message.lines].slice(-LOG_LINES);
  return { facts, order, rows, lines, known: true };
}

export class Follower {
  /**
   * @param {(topic: string, state: object, message?: object) => void} tell gets the whole, and what changed
   * @param {(status: string) => void} note
   */
  constructor(tell, note) {
    this.tell = tell;
    this.note = note;
    this.wanted = new Map(); // topic -> how many tabs want it
    this.states = new Map();
    this.stream = '';
    this.source = null;
    this.sending = Promise.resolve();
  }

  want(topic) {
    this.wanted.set(topic, (this.wanted.get(topic) || 0) + 1);
    const state = this.states.get(topic);
    if (state) this.tell(topic, state);
    this.open();
    this.send();
  }

  leave(topic) {
    const left = (this.wanted.get(topic) || 0) - 1;
    if (left > 0) { this.wanted.set(topic, left); return; }
    this.wanted.delete(topic);
    this.states.delete(topic);
    this.send();
  }

  open() {
    if (this.source && this.source.readyState !== EventSource.CLOSED) return;
    const source = new EventSource('/api/stream');
    this.source = source;
    this.watch();
    source.addEventListener('hello', (event) => {
      clearTimeout(this.overdue);
      this.note('live');
      if (this.stream === event.data) return;
      this.stream = event.data;
      this.send();
    });
    source.addEventListener('signed-out', () => { this.close(); this.note('signed-out'); });
    source.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (!this.wanted.has(message.topic)) return;
      const state = applied(this.states.get(message.topic) || empty(), message);
      this.states.set(message.topic, state);
      this.tell(message.topic, state, message);
    };
    source.onerror = () => {
      this.note('lost');
      this.watch();
      // A refused request is not tried again by the browser: the session may have ended.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.again(), 1500);
    };
  }

  /** Ask again where a server that took the connection does not answer on it. */
  watch() {
    clearTimeout(this.overdue);
    this.overdue = setTimeout(() => { this.source?.close(); this.again(); }, PATIENCE);
  }

  // Also while no topic is followed: a page that still loads would otherwise wait for ever.
  async again() {
    const answer = await fetch('/api/session', { signal: AbortSignal.timeout(PATIENCE) }).catch(() => null);
    if (answer?.status === 401) { this.close(); this.note('signed-out'); } else this.open();
  }

  close() {
    clearTimeout(this.overdue);
    this.source?.close();
    this.source = null;
    this.stream = '';
    this.states.clear();
  }

  /** Say which topics are followed; one request after the other, so that the last one counts. */
  send() {
    this.sending = this.sending.then(async () => {
      if (!this.stream) return;
      const body = JSON.stringify({ stream: this.stream, topics: [...this.wanted.keys()] });
      const headers = { 'Content-Type': 'application/json', 'X-Lockstep-Console': '1' };
      try {
        const answer = await fetch('/api/topics', { method: 'POST', headers, body });
        if (answer.status === 401) this.note('signed-out');
        if (answer.status === 400) this.note(`refused ${(await answer.json()).error.message}`);
        if (answer.status === 404) { this.close(); this.open(); }
      } catch { /* the stream comes back and says hello */ }
    });
  }
}
