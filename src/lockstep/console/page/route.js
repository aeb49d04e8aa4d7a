// The address is the state: path and query say what is shown.
import { signal } from './vendor/signals.js';

const read = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });
export const route = signal(read());
addEventListener('popstate', () => { route.value = read(); });

/** @param {string} to @param {{replace?: boolean}} [how] */
export function go(to, how = {}) {
  history[how.replace ? 'replaceState' : 'pushState'](null, '', to);
  const before = route.value.path;
  route.value = read();
  if (before !== route.value.path) scrollTo(0, 0);
}

/** Change parameters of the address; empty ones are left out. */
export function amend(changes, how = { replace: true }) {
  const query = new URLSearchParams(route.value.query);
  for (const [key, value] of Object.entries(changes)) {
    if (value === '' || value == null) query.delete(key); else query.set(key, String(value));
  }
  const text = query.toString();
  go(route.value.path + (text ? `?${text}` : ''), how);
}

/** Follow links without loading the page anew. */
export function capture(event) {
  const link = event.target.closest?.('a[href^="/"]');
  if (!link || link.target || link.hasAttribute('download') || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.getAttribute('href'));
}
