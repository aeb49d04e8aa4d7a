// The shared worker: one stream for all tabs of this browser.
import { Follower } from './follow.js';

const ports = new Map(); // port -> its topics
const fresh = new Map(); // port -> topics of which it has nothing yet
let status = 'lost';

const follower = new Follower(
  // A tab that has the state gets only what changed: copying a large map takes time.
  (topic, state, message) => {
    for (const [port, topics] of ports) {
      if (!topics.has(topic)) continue;
      const whole = !message || fresh.get(port)?.delete(topic);
      port.postMessage(whole ? { topic, state } : { topic, message });
    }
  },
  (said) => { status = said; for (const port of ports.keys()) port.postMessage({ status: said }); },
);

function drop(port) {
  for (const topic of ports.get(port) || []) follower.leave(topic);
  ports.delete(port);
  fresh.delete(port);
}

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.set(port, new Set());
  fresh.set(port, new Set());
  port.postMessage({ status });
  port.onmessage = ({ data }) => {
    const topics = ports.get(port);
    if (data.bye) drop(port);
    else if (!topics) return;
    else if (data.close) follower.close();
    else if (data.want && !topics.has(data.want)) { topics.add(data.want); fresh.get(port).add(data.want); follower.want(data.want); }
    else if (data.leave && topics.delete(data.leave)) follower.leave(data.leave);
  };
};
