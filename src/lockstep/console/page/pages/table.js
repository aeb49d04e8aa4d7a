// A list of any other kind, in the columns that the API server shows it by.
import { html, Badge, Problem, useEffect, useState } from '../ui.js';
import { request } from '../api.js';
import { amend, route } from '../route.js';
import { t } from '../texts.js';

const EVERY = 3000;
const STATES = ['Phase', 'Status', 'State', 'Ready'];

/** A list as text of comma-separated values; a cell that begins like a formula is quoted as text. */
function csv(found) {
  const quoted = (cell) => `"${(/^[=+\-@]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`;
  const lines = [['Namespace', 'Name', ...found.columns], ...found.items.map((row) => [row.namespace, row.name, ...row.cells])];
  return lines.map((cells) => cells.map((cell) => quoted(String(cell))).join(',')).join('\r\n');
}

function download(kind, found) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([csv(found)], { type: 'text/csv' }));
  link.download = `${kind}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function Cell({ column, text }) {
  if (STATES.includes(column) && /^[A-Za-z]+$/.test(text)) return html`<td><${Badge} of=${text} /></td>`;
  return html`<td class=${text.length > 40 ? 'why' : ''} title=${text}>${text || '–'}</td>`;
}

export function Table({ kind }) {
  const [found, show] = useState(null);
  const [problem, refuse] = useState(null);
  const search = route.value.query.get('q') || '';
  useEffect(() => {
    let gone = false;
    const look = async () => {
      if (document.hidden) return;
      try {
        const answer = await request('GET', `/api/tables/${kind}?q=${encodeURIComponent(search)}`);
        if (!gone) { show(answer); refuse(null); }
      } catch (error) { if (!gone) refuse(error); }
    };
    look();
    const timer = setInterval(look, EVERY);
    return () => { gone = true; clearInterval(timer); };
  }, [kind, search]);
  const items = found?.items || [];
  return html`
    <div class="head"><h1>${t(`nav.${kind}`)}</h1>
      <button disabled=${!items.length} onClick=${() => download(kind, found)}>${t('list.csv')}</button></div>
    <div class="filters">
      <input type="search" aria-label=${t('list.search')} placeholder=${t('list.search')} value=${search}
        onInput=${(e) => amend({ q: e.target.value })} />
    </div>
    <${Problem} of=${problem} />
    ${found ? html`<div class="scroll"><table class="list">
      <caption class="hidden">${t(`nav.${kind}`)}</caption>
      <thead><tr><th scope="col">${t('job.name')}</th>${found.columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${items.map((row) => html`<tr key=${row.uid || row.name}>
        <th scope="row">${row.name}${row.namespace ? html`<span class="faint space">${row.namespace}</span>` : null}</th>
        ${row.cells.map((cell, i) => html`<${Cell} column=${found.columns[i]} text=${cell} />`)}</tr>`)}</tbody>
    </table></div>` : null}
    ${found && !items.length ? html`<p class="empty">${t(search ? 'list.none' : 'list.empty')}</p>` : null}
    ${found && found.total > items.length ? html`<p class="faint">${t('list.range', { from: 1, to: items.length, total: found.total })}</p>` : null}`;
}
