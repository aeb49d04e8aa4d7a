// The list of jobs: searched, filtered, sorted and paged by the server.
import { html, Age, Badge } from '../ui.js';
import { useTopic } from '../live.js';
import { amend, go, route } from '../route.js';
import { t } from '../texts.js';

const PAGE = 50;
const COLUMNS = [
  ['name', 'name'], ['phase', 'phase'], ['queue', 'queue'], ['framework', 'framework'],
  ['gpus', 'gpus', 'number'], ['', 'gang', 'number'], ['restarts', 'restarts', 'number'],
  ['created', 'age', 'number'], ['', 'why'],
];
const PHASES = ['Pending', 'Starting', 'Running', 'Restarting', 'Suspended', 'Succeeded', 'Failed', 'Deleting'];

function Heading({ column, name, kind, sort }) {
  if (!column) return html`<th scope="col" class=${kind}>${t(`job.${name}`)}</th>`;
  const at = sort.replace(/^-/, '') === column ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none';
  const next = at === 'ascending' ? `-${column}` : column;
  return html`<th scope="col" class=${kind} aria-sort=${at}>
    <button class="sort" onClick=${() => amend({ sort: next, offset: '' })}>${t(`job.${name}`)}<i aria-hidden="true">${{ ascending: '↑', descending: '↓', none: '' }[at]}</i></button>
  </th>`;
}

function Row({ row }) {
  const to = `/jobs/${row.namespace}/${row.name}`;
  return html`<tr onClick=${(e) => { if (!e.target.closest('a')) go(to); }}>
    <th scope="row"><a href=${to}>${row.name}</a><span class="faint space">${row.namespace}</span></th>
    <td><${Badge} of=${row.phase} />${row.simulated ? html` <span class="tag">${t('job.simulated')}</span>` : null}</td>
    <td>${row.queue}${row.position ? html` <span class="faint">#${row.position}</span>` : null}</td>
    <td>${row.framework}</td>
    <td class="number">${row.gpus || '–'}</td>
    <td class="number">${row.phase === 'Succeeded' || row.phase === 'Failed' ? '–' : `${row.bound}/${row.pods}`}</td>
    <td class="number">${row.restarts || '–'}</td>
    <td class="number"><${Age} since=${row.created} /></td>
    <td class="why" title=${row.why}>${row.why}</td>
  </tr>`;
}

export function Jobs() {
  const { query } = route.value;
  const asked = new URLSearchParams();
  for (const key of ['q', 'phase', 'queue', 'namespace', 'sort', 'offset']) if (query.get(key)) asked.set(key, query.get(key));
  asked.set('limit', String(PAGE));
  const { facts, order, rows, known } = useTopic(`jobs?${asked}`);
  const offset = Number(query.get('offset') || 0);
  const phases = new Set((query.get('phase') || '').split(',').filter(Boolean));
  const toggle = (phase) => {
    if (!phases.delete(phase)) phases.add(phase);
    amend({ phase: [...phases].join(','), offset: '' });
  };
  const total = facts.total ?? 0;
  return html`
    <div class="head"><h1>${t('nav.jobs')}</h1><a class="button main" href="/submit">${t('nav.submit')}</a></div>
    <div class="filters">
      <input type="search" aria-label=${t('list.search')} placeholder=${t('list.search')} value=${query.get('q') || ''}
        onInput=${(e) => amend({ q: e.target.value, offset: '' })} />
      <div class="chips" role="group" aria-label=${t('job.phase')}>
        ${PHASES.filter((p) => facts.phases?.[p] || phases.has(p)).map((p) => html`
          <button class="chip" aria-pressed=${phases.has(p)} onClick=${() => toggle(p)}>${t(`phase.${p}`, p)} <b>${facts.phases?.[p] || 0}</b></button>`)}
      </div>
    </div>
    <div class="scroll"><table class="list" aria-busy=${!known}>
      <caption class="hidden">${t('nav.jobs')}</caption>
      <thead><tr>${COLUMNS.map(([column, name, kind]) => html`<${Heading} column=${column} name=${name} kind=${kind} sort=${query.get('sort') || '-created'} />`)}</tr></thead>
      <tbody>${order.map((key) => html`<${Row} key=${key} row=${rows[key]} />`)}</tbody>
    </table></div>
    ${known && !total ? html`<p class="empty">${t(asked.size > 1 ? 'list.none' : 'job.none')}</p>` : null}
    ${known && total ? html`<div class="pager">
      <span>${t('list.range', { from: Math.min(offset + 1, total), to: Math.min(offset + PAGE, total), total })}</span>
      <button disabled=${offset === 0} onClick=${() => amend({ offset: Math.max(0, offset - PAGE) || '' })}>${t('list.before')}</button>
      <button disabled=${offset + PAGE >= total} onClick=${() => amend({ offset: offset + PAGE })}>${t('list.after')}</button>
    </div>` : null}`;
}
