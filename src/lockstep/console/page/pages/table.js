// A list of any kind that has no page of its own making, followed live.
import { html, Barred } from '../ui.js';
import { useTopic } from '../live.js';
import { go, route } from '../route.js';
import { t } from '../texts.js';
import { asked, Chips, Columns, Csv, Heading, NamespaceFilter, PAGE, Pager, Search, shapeClass, useColumns, Value } from './parts.js';

const NEW = ['notebooks', 'environments', 'datasets', 'services', 'pipelines', 'models', 'pools', 'teams', 'prices'];

function Row({ kind, row, columns, hidden }) {
  const to = `/${kind}/${row.namespace || '-'}/${row.name}`;
  return html`<tr onClick=${(e) => { if (!e.target.closest('a, button')) go(to); }}>
    <th scope="row"><a href=${to}>${row.name}</a>${row.namespace ? html`<span class="faint space">${row.namespace}</span>` : null}</th>
    ${columns.map(([name, shape], i) => (hidden.has(name) ? null : html`<td class=${shapeClass(shape)} title=${shape === 'why' ? row.cells[i] : undefined}><${Value} shape=${shape} value=${row.cells[i]} /></td>`))}
  </tr>`;
}

export function Table({ kind }) {
  const query = asked();
  query.set('limit', String(PAGE));
  const { facts, order, rows, known } = useTopic(`list/${kind}?${query}`);
  const [hidden, toggle] = useColumns(kind);
  const barred = facts.forbidden || facts.unread ? html`<${Barred} facts=${facts} title=${t(`nav.${kind}`)} />` : null;
  if (barred) return barred;
  const columns = facts.columns || [];
  const filtered = Boolean(route.value.query.get('q') || route.value.query.get('phase') || route.value.query.get('namespace'));
  return html`
    <div class="head"><h1>${t(`nav.${kind}`)}</h1><div class="acts">
      <${Csv} word=${kind} query=${query} />
      ${NEW.includes(kind) ? html`<a class="button main" href="/${kind}/new">${t('act.new')}</a>` : null}</div></div>
    <p class="lead">${t(`about.${kind}`)}</p>
    <div class="filters"><${Search} />${facts.namespaced ? html`<${NamespaceFilter} />` : null}<${Chips} counts=${facts.states} />
      <span class="grow"></span><${Columns} names=${columns.map(([name]) => [name, t(`column.${name}`)])} hidden=${hidden} toggle=${toggle} /></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${t(`nav.${kind}`)}><table class="list" aria-busy=${!known}>
      <caption class="hidden">${t(`nav.${kind}`)}</caption>
      <thead><tr><${Heading} column="name" text=${t('column.name')} />${columns.map(([name, shape]) => (hidden.has(name) ? null : html`<${Heading} column=${name} text=${t(`column.${name}`)} kind=${shapeClass(shape)} />`))}</tr></thead>
      <tbody>${order.map((key) => html`<${Row} key=${key} kind=${kind} row=${rows[key]} columns=${columns} hidden=${hidden} />`)}</tbody>
    </table>${known && !facts.total ? html`<p class="empty">${t(filtered ? 'list.none' : `empty.${kind}`)}</p>` : null}</div>
    <${Pager} total=${facts.total} />`;
}
