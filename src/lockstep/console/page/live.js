// What pages follow, as signals.
import { signal } from './vendor/signals.js';
import { useEffect } from './vendor/hooks.js';
import { user } from './api.js';
import { Follower, applied, empty } from './follow.js';

export const status = signal('lost');
export const refusal = signal('');
const topics = new Map(); // topic -> {state, users}
const NOTHING = { facts: {}, order: [], rows: {}, lines: [], known: false };

function tell(topic, state) {
  const one = topics.get(topic);
  if (one) one.state.value = state;
}

function note(said) {
  if (said.startsWith('refused ')) { refusal.value = said.slice(8); return; }
  status.value = said;
  if (said === 'signed-out') user.value = null;
}

function connect() {
  if (typeof SharedWorker === 'undefined') {
    const follower = new Follower(tell, note);
    return { want: (x) => follower.want(x), leave: (x) => follower.leave(x), close: () => follower.close() };
  }
  return viaWorker();
}

/** Milliseconds between two attempts to load the worker from a server that is away. */
const RELOAD = 1500;

function viaWorker() {
  let port = null, waiting = 0;
  const start = () => {
    waiting = 0;
    const worker = new SharedWorker('/static/worker.js', { type: 'module', name: 'lockstep' });
    // The worker's files come from the server: one that dies before it has sent them leaves none.
    worker.onerror = () => { port = null; note('lost'); waiting = setTimeout(reload, RELOAD); };
    port = worker.port;
    port.onmessage = heard;
    port.start();
    for (const [topic, { users }] of topics) if (users > 0) port.postMessage({ want: topic });
  };
  const reload = async () => {
    const answer = await fetch('/api/session', { signal: AbortSignal.timeout(10000) }).catch(() => null);
    if (answer?.status === 401) { waiting = 0; note('signed-out'); } else start();
  };
  const say = (message) => { if (port) port.postMessage(message); else if (message.want && !waiting) start(); };
  addEventListener('pagehide', (event) => { if (!event.persisted) say({ bye: true }); });
  start();
  return { want: (want) => say({ want }), leave: (leave) => say({ leave }), close: () => say({ close: true }) };
}

function heard({ data }) {
  if (!data.topic) { note(data.status); return; }
  const before = topics.get(data.topic)?.state.value;
  tell(data.topic, data.state ?? applied(before?.known ? before : empty(), data.message));
}

let connection = null;
const connected = () => (connection ??= connect());

export function disconnect() { connection?.close(); }

/** Follow a topic for as long as the component is there; returns what is known of it. */
export function useTopic(name) {
  useEffect(() => {
    let one = topics.get(name);
    if (!one) { one = { state: signal(NOTHING), users: 0 }; topics.set(name, one); }
    if (one.users++ === 0) connected().want(name);
    return () => {
      if (--one.users === 0) { topics.delete(name); connected().leave(name); }
    };
  }, [name]);
  let one = topics.get(name);
  if (!one) { one = { state: signal(NOTHING), users: 0 }; topics.set(name, one); }
  return one.state.value;
}
