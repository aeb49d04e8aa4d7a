// The list of nodes, and one node: its GPUs, its pods, what is wrong with it; cordon and drain.
import { html, Age, Ask, Badge, Bar, Barred, count, Problem, useState } from '../ui.js';
import { request } from '../api.js';
import { useTopic } from '../live.js';
import { go } from '../route.js';
import { t } from '../texts.js';
import { asked, Chips, Columns, Csv, Heading, PAGE, Pager, Search, useColumns } from './parts.js';

const COLUMNS = [['state', 'state'], ['place', 'place'], ['held', 'held', 'number'], ['use', 'use', 'number'], ['pods', 'pods', 'number'], ['model', 'model'], ['age', 'created', 'number'], ['why', '', 'why']];

function cell(name, row) {
  switch (name) {
    case 'state': return html`<${Badge} of=${row.state} />`;
    case 'held': return row.gpus ? html`<span class="meter"><${Bar} label="${row.held}/${row.gpus}" parts=${[[row.held / row.gpus, 'good']]} />${row.held}/${row.gpus}</span>` : '–';
    case 'use': return row.use == null ? '–' : `${row.use} %`;
    case 'age': return html`<${Age} since=${row.created} />`;
    case 'why': return row.why ? html`<span class="clamp">${row.why}</span>` : '–';
    default: return row[name] || '–';
  }
}

export function Nodes() {
  const query = asked();
  query.set('limit', String(PAGE));
  const { facts, order, rows, known } = useTopic(`nodes?${query}`);
  const [hidden, toggle] = useColumns('nodes');
  if (facts.forbidden || facts.unread) return html`<${Barred} facts=${facts} title=${t('nav.nodes')} />`;
  return html`<div class="head"><h1>${t('nav.nodes')}</h1><div class="acts"><${Csv} word="nodes" query=${query} /></div></div>
    <div class="filters"><${Search} label=${t('node.search')} /><${Chips} counts=${facts.states} /><span class="grow"></span>
      <${Columns} names=${COLUMNS.map(([name]) => [name, t(`node.${name}`)])} hidden=${hidden} toggle=${toggle} /></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${t('nav.nodes')}><table class="list" aria-busy=${!known}><caption class="hidden">${t('nav.nodes')}</caption>
      <thead><tr><${Heading} column="name" text=${t('column.name')} />${COLUMNS.map(([name, column, kind]) => (hidden.has(name) ? null : html`<${Heading} column=${column} text=${t(`node.${name}`)} kind=${kind} />`))}</tr></thead>
      <tbody>${order.map((name) => html`<tr key=${name} onClick=${(e) => { if (!e.target.closest('a, button')) go(`/nodes/${name}`); }}><th scope="row"><a href="/nodes/${name}">${name}</a></th>
        ${COLUMNS.map(([column, , kind]) => (hidden.has(column) ? null : html`<td class=${kind} title=${column === 'why' ? rows[name].why : undefined}>${cell(column, rows[name])}</td>`))}</tr>`)}</tbody></table>
      ${known && !facts.total ? html`<p class="empty">${t('list.none')}</p>` : null}</div>
    <${Pager} total=${facts.total} />`;
}

/** The GPUs of a node in the order of their indices, with their owners. */
function Cards({ node, devices }) {
  const owners = node.held.flatMap(([owner, times]) => Array(times).fill(owner));
  return html`<div class="gpus">${owners.map((owner, index) => {
    const seen = devices.find((d) => d.index === index);
    const bad = (node.bad || []).includes(index);
    return html`<div class="gpu ${bad ? 'bad' : owner ? 'held' : ''}"><b>GPU ${index}</b>
      <span class="clamp">${bad ? t('node.fenced') : owner === '?' ? t('map.others') : owner ? html`<a href="/jobs/${owner.split(' ')[0]}">${owner}</a>` : t('node.free')}</span>
      ${seen ? html`<${Bar} label=${`${seen.use} %`} parts=${[[seen.use / 100, 'good']]} /><span class="faint">${seen.use} % · ${Math.round(seen.memoryUsed / 1024)}/${Math.round(seen.memory / 1024)} GiB · ${seen.temperature} °C · ${seen.power} W</span>` : html`<span class="faint">${t('node.unmeasured')}</span>`}</div>`;
  })}</div>`;
}

function Findings({ found }) {
  return html`<section><h2>${t('health.findings')}</h2><div class="scroll" tabindex="0" role="region" aria-label=${t('health.findings')}><table class="list"><caption class="hidden">${t('health.findings')}</caption>
    <thead><tr>${['cause', 'class', 'action', 'device', 'confidence', 'seen', 'evidence'].map((n) => html`<th scope="col">${t(`health.${n}`)}</th>`)}</tr></thead>
    <tbody>${found.map((f) => html`<tr><th scope="row" class="wrap">${f.cause}</th><td>${f.class}</td><td>${f.action}</td><td>${f.device || '–'}</td><td>${Math.round(f.confidence * 100)} %</td><td><${Age} since=${f.last} />${f.count > 1 ? ` ×${f.count}` : ''}</td><td class="why"><code>${f.evidence}</code></td></tr>`)}</tbody></table></div></section>`;
}

export function Node({ name }) {
  const { facts, known } = useTopic(`node/${name}`);
  const [problem, setProblem] = useState(null);
  const [drained, setDrained] = useState(null);
  const back = html`<p class="crumbs"><a href="/nodes">${t('nav.nodes')}</a></p>`;
  if (!known) return html`${back}<h1>${name}</h1>`;
  if (facts.forbidden || facts.unread) return html`${back}<${Barred} facts=${facts} title=${name} />`;
  if (facts.missing) return html`${back}<h1>${name}</h1><p class="empty">${t('object.gone')}</p>`;
  const { node, findings, devices } = facts;
  const attempt = async (act) => { setProblem(null); try { await act(); } catch (error) { setProblem(error); } };
  const cordon = () => attempt(() => request('PATCH', `/api/objects/nodes/-/${name}`, { patch: { spec: { unschedulable: node.cordoned ? null : true } } }));
  const drain = () => attempt(async () => setDrained(await request('POST', `/api/drain/${name}`, {})));
  const jobs = [...new Set(node.shown.map(([space, , owner]) => `${space}/${owner}`))];
  const hidden = node.pods - node.shown.length;
  const disturbs = node.pods ? t('node.disturbs', { pods: node.pods, jobs: jobs.join(', ') || '–' }) + (hidden ? ` ${t('node.hidden', { count: hidden })}` : '') : t('node.disturbsNone');
  return html`${back}<div class="head"><h1>${name} <${Badge} of=${node.state} /></h1><div class="acts">
      <button onClick=${cordon}>${t(node.cordoned ? 'node.uncordon' : 'node.cordon')}</button>
      <${Ask} label=${t('node.drain')} title=${t('node.sureDrain', { name })} more=${disturbs} act=${drain} /></div></div>
    <${Problem} of=${problem} />
    ${drained ? html`<div class="notice ${drained.stay.length ? 'wait' : 'good'}" role="status">${t('node.drained', { count: drained.evicted.length })}${drained.stay.length ? html`<ul>${drained.stay.map((s) => html`<li><code>${s.pod}</code> ${s.message}</li>`)}</ul>` : null}</div>` : null}
    ${node.why ? html`<div class="notice wait">${node.why}</div>` : null}
    <dl class="card facts"><div class="fact"><dt>${t('node.place')}</dt><dd>${node.at.filter(Boolean).join(' / ') || '–'}</dd></div><div class="fact"><dt>${t('node.model')}</dt><dd>${node.model || '–'}</dd></div>
      <div class="fact"><dt>GPU</dt><dd>${node.gpus - node.free}/${node.gpus}</dd></div><div class="fact"><dt>CPU</dt><dd>${count(node.cpu)}</dd></div>
      <div class="fact"><dt>${t('node.memory')}</dt><dd>${count(node.memory / 2 ** 30)} GiB</dd></div><div class="fact"><dt>${t('node.age')}</dt><dd><${Age} since=${node.created} /></dd></div></dl>
    ${node.gpus ? html`<section><h2>GPUs</h2><${Cards} node=${node} devices=${devices} /></section>` : null}
    ${findings.length ? html`<${Findings} found=${findings} />` : null}
    <section><h2>${t('job.pods')} <span class="faint">${node.pods}</span></h2>${node.shown.length ? html`<div class="scroll"><table class="list"><caption class="hidden">${t('job.pods')}</caption><thead><tr><th scope="col">${t('job.pod')}</th><th scope="col">${t('node.owner')}</th></tr></thead>
      <tbody>${node.shown.map(([space, pod, owner]) => html`<tr><th scope="row"><a href="/pods/${space}/${pod}">${pod}</a><span class="faint space">${space}</span></th><td>${owner === pod ? '–' : html`<a href="/jobs/${space}/${owner}">${owner}</a>`}</td></tr>`)}</tbody></table></div>` : html`<p class="empty">${t('job.noPods')}</p>`}
      ${hidden ? html`<p class="faint">${t('node.hidden', { count: hidden })}</p>` : null}</section>`;
}
