// The shared worker: one stream for all tabs of this browser.
import { Follower } from './follow.js';

const ports = new Map(); // port -> its topics
let status = 'lost';

const follower = new Follower(
  (topic, state) => { for (const [port, topics] of ports) if (topics.has(topic)) port.postMessage({ topic, state }); },
  (said) => { status = said; for (const port of ports.keys()) port.postMessage({ status: said }); },
);

function drop(port) {
  for (const topic of ports.get(port) || []) follower.leave(topic);
  ports.delete(port);
}

self.onconnect = (event) => {
  const port = event.ports[0];
  ports.set(port, new Set());
  port.postMessage({ status });
  port.onmessage = ({ data }) => {
    const topics = ports.get(port);
    if (data.bye) drop(port);
    else if (!topics) return;
    else if (data.close) follower.close();
    else if (data.want && !topics.has(data.want)) { topics.add(data.want); follower.want(data.want); }
    else if (data.leave && topics.delete(data.leave)) follower.leave(data.leave);
  };
};
