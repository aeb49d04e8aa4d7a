// What every page draws with: Preact bound to htm, signals, and small shared parts.
import { h, render, Fragment } from './vendor/preact.js';
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { signal, computed, useSignal } from './vendor/signals.js';
import htm from './vendor/htm.js';
import { t } from './texts.js';

export const html = htm.bind(h);
export { render, Fragment, signal, computed, useSignal, useEffect, useRef, useState };

/** The time, once a second, for ages. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

const UNITS = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];

/** @param {number} seconds @returns {string} two units at most, as 2h5m */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const at = UNITS.findIndex(([, size]) => whole >= size);
  if (at < 0) return '0s';
  const [unit, size] = UNITS[at];
  const next = UNITS[at + 1];
  const rest = next && at < 2 ? Math.floor((whole % size) / next[1]) : 0;
  return `${Math.floor(whole / size)}${unit}${rest ? `${rest}${next[0]}` : ''}`;
}

/** An age that grows, with the exact time as its title. */
export function Age({ since, until }) {
  const start = Date.parse(since);
  if (!since || Number.isNaN(start)) return html`<span class="faint">–</span>`;
  const end = until ? Date.parse(until) : now.value;
  return html`<time datetime=${since} title=${new Date(start).toLocaleString()}>${duration((end - start) / 1000)}</time>`;
}

const TONES = {
  Running: 'good', Ready: 'good', Healthy: 'good', Bound: 'good', Production: 'good', True: 'good', Placed: 'good', following: 'good',
  Succeeded: 'done', Finished: 'done', Completed: 'done', Failed: 'bad', Faulty: 'bad', Tainted: 'bad', NotReady: 'bad',
  Pending: 'wait', Placing: 'wait', Waiting: 'wait', Degraded: 'wait', Fenced: 'wait', Cordoned: 'wait', NotBound: 'idle', Warning: 'wait', Unknown: 'wait',
  Starting: 'busy', Restarting: 'busy', Canary: 'busy', Candidate: 'idle', Suspended: 'idle', Stopped: 'idle', Deleting: 'idle', Terminating: 'idle', Normal: 'idle',
};

/** A state in a word, with a mark beside the colour. */
export function Badge({ of }) {
  if (!of) return html`<span class="faint">–</span>`;
  const tone = TONES[of] || (/error|fail|backoff|killed/i.test(of) ? 'bad' : 'idle');
  return html`<span class="badge ${tone}"><i aria-hidden="true"></i>${t(`phase.${of}`, of)}</span>`;
}

export function Problem({ of }) {
  if (!of) return null;
  return html`<div class="notice bad" role="alert">${of.message}
    ${of.causes && of.causes.length > 1
      ? html`<ul>${of.causes.map((c) => html`<li><code>${c.field}</code> ${c.message}</li>`)}</ul>` : null}
    ${of.difference ? html`<p>${t('edit.conflict')}</p><${Difference} lines=${of.difference} />` : null}
  </div>`;
}

/** Lines of a difference: what stands there now, and what was to be written. */
export function Difference({ lines }) {
  return html`<pre class="difference" tabindex="0">${lines.map((line) => html`<span class=${line[0] === '+' ? 'plus' : line[0] === '-' ? 'minus' : ''}>${line}\n</span>`)}</pre>`;
}

/** What stands in place of a page that may not be seen, or not yet. */
export function Barred({ facts, title }) {
  if (facts.forbidden) {
    return html`<h1>${title}</h1><div class="notice bad" role="alert">${t(facts.namespace ? 'missing.right' : 'missing.rightAll', { right: facts.forbidden, namespace: facts.namespace })}</div>`;
  }
  if (facts.unread) return html`<h1>${title}</h1><div class="notice wait" role="status">${t('state.unread', { why: facts.unread })}</div>`;
  return null;
}

/** A number with its name above. */
export function Stat({ name, value, more, tone }) {
  return html`<div class="stat ${tone || ''}"><span class="name">${name}</span><span class="value">${value}</span>${more ? html`<span class="more">${more}</span>` : null}</div>`;
}

/** A bar of parts; each is [share from 0 to 1, tone, title]. */
export function Bar({ parts, label }) {
  return html`<span class="bar" role="img" aria-label=${label}>${parts.filter(([share]) => share > 0).map(([share, tone, title]) => html`<i class=${tone} style=${{ width: `${Math.min(100, share * 100)}%` }} title=${title}></i>`)}</span>`;
}

/** @param {number | null} value @returns {string} at most one place behind the point */
export function count(value) {
  if (value === null || value === undefined) return '–';
  return Number(value).toLocaleString(undefined, { maximumFractionDigits: 1 });
}

/** A question before something is done that cannot be undone. */
export function Ask({ label, title, more, act, tone = 'danger', disabled, yes }) {
  const dialog = useRef(null);
  const [busy, setBusy] = useState(false);
  const done = async () => { setBusy(true); try { await act(); } finally { setBusy(false); dialog.current?.close(); } };
  return html`<button class=${tone} disabled=${disabled} onClick=${() => dialog.current.showModal()}>${label}</button>
    <dialog ref=${dialog} aria-label=${title}>
      <h2>${title}</h2><p>${more}</p>
      <div class="acts"><button onClick=${() => dialog.current.close()}>${t('act.keep')}</button>
        <button class=${tone} disabled=${busy} onClick=${done}>${yes || label}</button></div>
    </dialog>`;
}

/** Panels of which one is shown; the address says which. */
export function Tabs({ names, at, choose, label }) {
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.findIndex(([n]) => n === at) + step + names.length) % names.length][0];
    choose(next);
    event.currentTarget.querySelector(`[data-tab="${next}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${keys}>${names.map(([name, text]) => html`
    <button role="tab" data-tab=${name} aria-selected=${at === name} tabindex=${at === name ? 0 : -1} onClick=${() => choose(name)}>${text}</button>`)}</div>`;
}

const PATHS = {
  home: 'M3 11l9-8 9 8M5 9.5V21h5v-6h4v6h5V9.5', jobs: 'M4 6h16M4 12h16M4 18h10', submit: 'M12 5v14M5 12h14',
  notebooks: 'M6 3h12v18H6zM6 8H3M6 13H3M6 18H3M10 8h5M10 12h5', datasets: 'M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0',
  services: 'M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01', pipelines: 'M3 4h6v5H3zM15 15h6v5h-6zM6 9v8h9', models: 'M12 2l9 5v10l-9 5-9-5V7zM3 7l9 5 9-5M12 12v10',
  map: 'M3 3h7v7H3zM14 3h7v7h-7zM3 14h7v7H3zM14 14h7v7h-7z', queues: 'M12 3v5M6 16v-4h12v4M12 8v4M4 16h4v5H4zM16 16h4v5h-4z', nodes: 'M3 4h18v6H3zM3 14h18v6H3zM7 7h.01M7 17h.01',
  health: 'M3 12h4l3-8 4 16 3-8h4', pools: 'M12 3v18M3 12h18M5 5h14v14H5z', waste: 'M4 20V10M10 20V4M16 20v-7M22 20H2', cost: 'M12 3v18M17 7c-2-3-10-3-10 1s10 3 10 7-8 4-10 1',
  teams: 'M9 11a4 4 0 100-8 4 4 0 000 8zM2 21c0-8 14-8 14 0M17 11a3 3 0 100-6M18 14c3 0 4 3 4 7', rights: 'M7 11V7a5 5 0 0110 0v4M5 11h14v10H5z', audit: 'M6 3h9l4 4v14H6zM9 12h7M9 16h7',
  environments: 'M12 3l9 5-9 5-9-5zM3 13l9 5 9-5', gangs: 'M5 5h5v5H5zM14 5h5v5h-5zM5 14h5v5H5zM14 14h5v5h-5z', pods: 'M12 2l8 5v10l-8 5-8-5V7z', prices: 'M4 4h9l8 8-9 9-8-8zM9 9h.01',
};

/** A small picture beside a word. */
export function Icon({ of }) {
  return html`<svg class="icon" viewBox="0 0 24 24" width="17" height="17" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${PATHS[of] || PATHS.pods} /></svg>`;
}
