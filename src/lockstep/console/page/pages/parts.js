// What lists are made of: search, chips, columns, order, pages, and cells by their shape.
import { html, Age, Badge, useState } from '../ui.js';
import { amend, route } from '../route.js';
import { t } from '../texts.js';

export const PAGE = 50;

/** The parameters of a list as they stand in the address, for its topic. */
export function asked(...more) {
  const query = new URLSearchParams();
  for (const key of ['q', 'phase', 'namespace', 'sort', 'offset', ...more]) {
    const value = route.value.query.get(key);
    if (value) query.set(key, value);
  }
  return query;
}

export function Search({ label }) {
  return html`<input type="search" aria-label=${label || t('list.search')} placeholder=${label || t('list.search')} value=${route.value.query.get('q') || ''}
    onInput=${(e) => amend({ q: e.target.value, offset: '' })} />`;
}

/** One press shows only one state; another press all again. */
export function Chips({ counts, label }) {
  const chosen = new Set((route.value.query.get('phase') || '').split(',').filter(Boolean));
  const toggle = (state) => {
    if (!chosen.delete(state)) chosen.add(state);
    amend({ phase: [...chosen].join(','), offset: '' });
  };
  const names = [...new Set([...Object.keys(counts || {}), ...chosen])];
  if (!names.length) return null;
  return html`<div class="chips" role="group" aria-label=${label || t('column.state')}>${names.map((name) => html`
    <button class="chip" aria-pressed=${chosen.has(name)} onClick=${() => toggle(name)}>${t(`phase.${name}`, name)} <b>${counts?.[name] || 0}</b></button>`)}</div>`;
}

/** The head of a column; a press sorts by it. */
export function Heading({ column, text, kind, standard = 'name' }) {
  if (!column) return html`<th scope="col" class=${kind}>${text}</th>`;
  const sort = route.value.query.get('sort') || standard;
  const at = sort.replace(/^-/, '') === column ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none';
  const next = at === 'ascending' ? `-${column}` : column;
  return html`<th scope="col" class=${kind} aria-sort=${at}>
    <button class="sort" onClick=${() => amend({ sort: next, offset: '' })}>${text}<i aria-hidden="true">${{ ascending: '↑', descending: '↓', none: '' }[at]}</i></button>
  </th>`;
}

export function Pager({ total }) {
  const offset = Number(route.value.query.get('offset') || 0);
  if (!total) return null;
  return html`<div class="pager">
    <span>${t('list.range', { from: Math.min(offset + 1, total), to: Math.min(offset + PAGE, total), total: total.toLocaleString() })}</span>
    ${total > PAGE ? html`<button disabled=${offset === 0} onClick=${() => amend({ offset: Math.max(0, offset - PAGE) || '' })}>${t('list.before')}</button>
    <button disabled=${offset + PAGE >= total} onClick=${() => amend({ offset: offset + PAGE })}>${t('list.after')}</button>` : null}
  </div>`;
}

const NUMBERS = ['number', 'percent', 'bytes', 'time'];

export function shapeClass(shape) {
  return NUMBERS.includes(shape) ? 'number' : shape === 'why' ? 'why' : '';
}

/** A cell as its column's shape says. */
export function Value({ shape, value }) {
  if (value === null || value === undefined || value === '') return html`<span class="faint">–</span>`;
  if (shape === 'state') return html`<${Badge} of=${String(value)} />`;
  if (shape === 'time') return html`<${Age} since=${value} />`;
  if (shape === 'number') return html`${Number(value).toLocaleString()}`;
  if (shape === 'why') return html`<span class="clamp">${String(value)}</span>`;
  if (shape === 'percent') return html`${Number(value).toLocaleString()} %`;
  return html`${String(value)}`;
}

/** Which columns of a list are hidden; kept in this browser, by list. */
export function useColumns(word) {
  const key = `columns.${word}`;
  const read = () => { try { return new Set(JSON.parse(localStorage.getItem(key) || '[]')); } catch { return new Set(); } };
  const [hidden, setHidden] = useState(read);
  const toggle = (name) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    localStorage.setItem(key, JSON.stringify([...next]));
    setHidden(next);
  };
  return [hidden, toggle];
}

export function Columns({ names, hidden, toggle }) {
  return html`<details class="menu"><summary>${t('list.columns')}</summary><div class="card">${names.map(([name, text]) => html`
    <label class="check"><input type="checkbox" checked=${!hidden.has(name)} onChange=${() => toggle(name)} />${text}</label>`)}</div></details>`;
}

export function Csv({ word, query }) {
  const wanted = new URLSearchParams(query);
  wanted.delete('offset'); wanted.delete('limit');
  return html`<a class="button" download href="/api/csv/${word}?${wanted}">${t('list.csv')}</a>`;
}

/** The namespaces of a list, as a filter. */
export function NamespaceFilter() {
  const value = route.value.query.get('namespace') || '';
  return html`<input class="short" aria-label=${t('column.namespace')} placeholder=${t('column.namespace')} value=${value} onChange=${(e) => amend({ namespace: e.target.value.trim(), offset: '' })} />`;
}
