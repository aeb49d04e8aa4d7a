// The list of jobs: searched, filtered, sorted and paged by the server.
import { html, Age, Badge } from '../ui.js';
import { user } from '../api.js';
import { useTopic } from '../live.js';
import { amend, go, route } from '../route.js';
import { t } from '../texts.js';
import { asked, Chips, Columns, Csv, Heading, NamespaceFilter, PAGE, Pager, Search, useColumns } from './parts.js';

const COLUMNS = [
  ['phase', 'phase'], ['queue', 'queue'], ['framework', 'framework'], ['gpus', 'gpus', 'number'], ['gang', '', 'number'],
  ['restarts', 'restarts', 'number'], ['user', 'user'], ['age', 'created', 'number'], ['why', '', 'why'],
];

function cell(name, row) {
  switch (name) {
    case 'phase': return html`<${Badge} of=${row.phase} />${row.simulated ? html` <span class="tag">${t('job.simulated')}</span>` : null}`;
    case 'queue': return html`${row.queue}${row.position ? html` <span class="faint" title=${t('job.position', { position: row.position, queue: row.queue })}>#${row.position}</span>` : null}`;
    case 'gang': return row.phase === 'Succeeded' || row.phase === 'Failed' ? '–' : `${row.bound}/${row.pods}`;
    case 'age': return html`<${Age} since=${row.created} />`;
    case 'gpus': case 'restarts': return row[name] || '–';
    case 'why': return row.why ? html`<span class="clamp">${row.why}</span>` : '–';
    default: return row[name] || '–';
  }
}

function Row({ row, hidden }) {
  const to = `/jobs/${row.namespace}/${row.name}`;
  return html`<tr onClick=${(e) => { if (!e.target.closest('a, button')) go(to); }}>
    <th scope="row"><a href=${to}>${row.name}</a><span class="faint space">${row.namespace}</span></th>
    ${COLUMNS.map(([name, , kind]) => (hidden.has(name) ? null : html`<td class=${kind} title=${name === 'why' ? row.why : undefined}>${cell(name, row)}</td>`))}
  </tr>`;
}

export function Jobs() {
  const query = asked('queue', 'user');
  query.set('limit', String(PAGE));
  const { facts, order, rows, known } = useTopic(`jobs?${query}`);
  const [hidden, toggle] = useColumns('jobs');
  const mine = route.value.query.get('user') === user.value.user;
  const queue = route.value.query.get('queue');
  return html`
    <div class="head"><h1>${t('nav.jobs')}</h1><div class="acts"><${Csv} word="jobs" query=${query} /><a class="button main" href="/submit">${t('nav.submit')}</a></div></div>
    <div class="filters"><${Search} /><${NamespaceFilter} />
      <button class="chip" aria-pressed=${mine} onClick=${() => amend({ user: mine ? '' : user.value.user, offset: '' })}>${t('job.mine')}</button>
      ${queue ? html`<button class="chip" aria-pressed="true" onClick=${() => amend({ queue: '', offset: '' })}>${t('job.queue')}: ${queue} ×</button>` : null}
      <${Chips} counts=${facts.phases} label=${t('job.phase')} />
      <span class="grow"></span><${Columns} names=${COLUMNS.map(([name]) => [name, t(`job.${name}`)])} hidden=${hidden} toggle=${toggle} /></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${t('nav.jobs')}><table class="list" aria-busy=${!known}>
      <caption class="hidden">${t('nav.jobs')}</caption>
      <thead><tr><${Heading} column="name" text=${t('job.name')} standard="-created" />${COLUMNS.map(([name, column, kind]) => (hidden.has(name) ? null : html`<${Heading} column=${column} text=${t(`job.${name}`)} kind=${kind} standard="-created" />`))}</tr></thead>
      <tbody>${order.map((key) => html`<${Row} key=${key} row=${rows[key]} hidden=${hidden} />`)}</tbody>
    </table>${known && !facts.total ? html`<p class="empty">${t(query.size > 1 ? 'list.none' : 'job.none')}</p>` : null}</div>
    <${Pager} total=${facts.total} />`;
}
