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
  if (!since) return html`<span class="faint">–</span>`;
  const end = until ? Date.parse(until) : now.value;
  return html`<time datetime=${since} title=${since}>${duration((end - Date.parse(since)) / 1000)}</time>`;
}

const TONES = {
  Running: 'good', Succeeded: 'done', Failed: 'bad', Pending: 'wait', Placing: 'wait',
  Starting: 'busy', Restarting: 'busy', Suspended: 'idle', Deleting: 'idle', Terminating: 'idle',
  Warning: 'wait', Normal: 'idle',
};

/** A state in a word, with a mark beside the colour. */
export function Badge({ of }) {
  const tone = TONES[of] || (/error|fail|backoff|killed/i.test(of) ? 'bad' : 'idle');
  return html`<span class="badge ${tone}"><i aria-hidden="true"></i>${t(`phase.${of}`, of)}</span>`;
}

export function Problem({ of }) {
  if (!of) return null;
  return html`<div class="notice bad" role="alert">${of.message}
    ${of.causes && of.causes.length > 1
      ? html`<ul>${of.causes.map((c) => html`<li><code>${c.field}</code> ${c.message}</li>`)}</ul>` : null}
  </div>`;
}

/** An element whose Enter and click go to a path of the console. */
export function Link({ to, children, ...more }) {
  return html`<a href=${to} ...${more}>${children}</a>`;
}
