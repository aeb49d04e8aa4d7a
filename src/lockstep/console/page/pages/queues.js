// Queues as a tree: what each is promised, uses and borrows; a plan is tried before it is applied.
import { html, Bar, Barred, count, Problem, Stat, useState } from '../ui.js';
import { request } from '../api.js';
import { useTopic } from '../live.js';
import { t } from '../texts.js';
import { Csv } from './parts.js';

const GPU = 'nvidia.com/gpu';

function Row({ row, scale, plan, change }) {
  const planned = plan ?? {};
  const guaranteed = planned.guaranteed ?? row.guaranteed;
  const whole = Math.max(scale, 1);
  const within = Math.min(row.used, guaranteed ?? 0);
  const beyond = Math.max(0, row.used - (guaranteed ?? 0));
  const label = t('queue.bar', { used: count(row.used), guaranteed: count(guaranteed), limit: row.limit === null ? '∞' : count(row.limit) });
  const set = (field, text) => change(row.name, { ...planned, [field]: text === '' ? null : Number(text) });
  return html`<tr class=${plan ? 'planned' : ''}><th scope="row"><span class="depth" style=${{ paddingLeft: `${row.depth * 22}px` }}>${row.depth ? html`<i class="twig" aria-hidden="true"></i>` : null}<a href="/jobs?queue=${row.name}">${row.name}</a></span></th>
    <td class="wide-cell"><${Bar} label=${label} parts=${[[within / whole, 'good', t('queue.within')], [beyond / whole, 'wait', t('queue.borrowed')], [Math.max(0, (guaranteed ?? 0) - row.used) / whole, 'promise', t('queue.idle')]]} />
      <input type="range" class="drag" min="0" max=${whole} step="1" value=${guaranteed ?? 0} aria-label=${t('queue.plan', { name: row.name })} onInput=${(e) => set('guaranteed', e.target.value)} /></td>
    <td class="number"><b>${count(row.used)}</b></td>
    <td class="number">${plan && planned.guaranteed !== undefined && planned.guaranteed !== row.guaranteed ? html`<del>${count(row.guaranteed)}</del> ` : null}${count(guaranteed)}</td>
    <td class="number">${row.borrowed ? count(row.borrowed) : '–'}</td>
    <td class="number">${row.limit === null ? '∞' : count(row.limit)}</td>
    <td class="number"><input class="tiny" type="number" min="0" aria-label=${t('queue.weightOf', { name: row.name })} value=${planned.weight ?? row.weight} onInput=${(e) => set('weight', e.target.value)} /></td>
    <td class="number">${row.running}</td><td class="number">${row.pending ? html`<a href="/jobs?queue=${row.name}&phase=Pending">${row.pending}</a>` : '0'}</td>
    <td class="why" title=${row.why}>${row.why || (row.share ? `${t('queue.share')} ${row.share}` : '')}</td></tr>`;
}

function spec(planned) {
  const found = {};
  if (planned.guaranteed !== undefined) found.guaranteed = { [GPU]: planned.guaranteed };
  if (planned.weight !== undefined && planned.weight !== null) found.weight = planned.weight;
  return found;
}

function Effect({ effect }) {
  if (!effect) return null;
  const told = [['starts', 'good'], ['waits', 'wait'], ['evicted', 'bad']];
  const any = told.some(([kind]) => effect[kind].length);
  return html`<div class="card effect" role="status"><h2>${t('queue.effect')}</h2>${any ? html`<ul class="plain">${told.map(([kind]) => effect[kind].map((job) => html`<li class=${kind}>${t(`queue.${kind}`, { job })}</li>`))}</ul>` : html`<p>${t('queue.noEffect')}</p>`}</div>`;
}

export function Queues() {
  const { facts, order, rows, known } = useTopic('queues');
  const [plan, setPlan] = useState({});
  const [effect, setEffect] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  if (facts.forbidden || facts.unread) return html`<${Barred} facts=${facts} title=${t('nav.queues')} />`;
  const all = order.map((name) => rows[name]);
  const top = all.filter((row) => row.depth === 0);
  const changes = Object.entries(plan);
  const change = (name, planned) => { setPlan({ ...plan, [name]: planned }); setEffect(null); };
  const forget = () => { setPlan({}); setEffect(null); setProblem(null); };
  const attempt = async (act) => { setBusy(true); setProblem(null); try { await act(); } catch (error) { setProblem(error); } setBusy(false); };
  const tryIt = () => attempt(async () => setEffect(await request('POST', '/api/plan', { queues: Object.fromEntries(changes.map(([name, planned]) => [name, spec(planned)])) })));
  const apply = () => attempt(async () => {
    for (const [name, planned] of changes) {
      await request('PATCH', `/api/objects/queues/-/${name}`, { patch: { spec: spec(planned) }, version: rows[name].version });
      setPlan((left) => { const next = { ...left }; delete next[name]; return next; });
    }
    setEffect(null);
  });
  const promised = top.reduce((sum, row) => sum + (plan[row.name]?.guaranteed ?? row.guaranteed ?? 0), 0);
  const used = top.reduce((sum, row) => sum + row.used, 0);
  return html`<div class="head"><h1>${t('nav.queues')}</h1><div class="acts"><${Csv} word="queues" query="" /><a class="button main" href="/queues/new">${t('act.new')}</a></div></div>
    <p class="lead">${t('about.queues')}</p>
    <div class="stats">${facts.gpus ? html`<${Stat} name=${t('queue.cluster')} value=${count(facts.gpus)} />` : null}<${Stat} name=${t('queue.promised')} value=${count(promised)} tone=${facts.gpus && promised > facts.gpus ? 'bad' : ''} more=${facts.gpus && promised > facts.gpus ? t('queue.over') : ''} /><${Stat} name=${t('queue.used')} value=${count(used)} tone="good" /></div>
    <${Problem} of=${problem} />
    ${changes.length ? html`<div class="card planbar"><b>${t('queue.planned', { count: changes.length })}</b><span class="grow"></span>
      <button disabled=${busy} onClick=${tryIt}>${t('queue.try')}</button><button class="main" disabled=${busy} onClick=${apply}>${t('queue.apply')}</button><button onClick=${forget}>${t('queue.forget')}</button></div>` : null}
    <${Effect} effect=${effect} />
    <div class="scroll" tabindex="0" role="region" aria-label=${t('nav.queues')}><table class="list tree" aria-busy=${!known}><caption class="hidden">${t('nav.queues')}</caption>
      <thead><tr><th scope="col">${t('column.name')}</th><th scope="col">${t('queue.picture')}</th>${['used', 'guaranteed', 'borrowed', 'limit', 'weight', 'running', 'pending'].map((n) => html`<th scope="col" class="number">${t(`queue.${n}`)}</th>`)}<th scope="col">${t('column.why')}</th></tr></thead>
      <tbody>${all.map((row) => html`<${Row} key=${row.name} row=${row} scale=${facts.gpus || Math.max(...all.map((r) => r.limit || r.guaranteed || r.used))} plan=${plan[row.name]} change=${change} />`)}</tbody></table></div>
    <p class="legend"><i class="dot good"></i>${t('queue.within')} <i class="dot wait"></i>${t('queue.borrowed')} <i class="dot promise"></i>${t('queue.idle')} · ${t('queue.hint')}</p>`;
}
