// One job: why it waits or is slow, its life, ranks, logs, events, cost, and what can be done.
import { html, useEffect, useState, Age, Ask, Badge, Bar, Barred, count, Problem, Stat, Tabs } from '../ui.js';
import { request } from '../api.js';
import { useTopic } from '../live.js';
import { amend, go, route } from '../route.js';
import { t } from '../texts.js';
import { Events } from './events.js';
import { Logs } from './logs.js';
import { ObjectYaml } from './editor.js';
import { openApp } from './object.js';
import { Ranks } from './ranks.js';
import { Timeline } from './timeline.js';

function Fact({ name, children }) {
  return html`<div class="fact"><dt>${t(name)}</dt><dd>${children}</dd></div>`;
}

function Why({ job, gang }) {
  if (!job.why) return null;
  const waits = ['Pending', 'Starting', 'Suspended', 'Restarting'].includes(job.phase);
  return html`<section class="card why ${job.phase === 'Failed' ? 'bad' : ''}" aria-labelledby="why">
    <h2 id="why">${t(waits ? 'job.whyWaits' : 'job.why')}</h2>
    <p class="reason">${job.why}</p>
    ${gang?.remedy ? html`<p><b>${t('job.remedy')}</b> ${gang.remedy}</p>` : null}
    ${job.position ? html`<p>${t('job.position', { position: job.position, queue: job.queue })}</p>` : null}
    ${gang?.estimatedStart ? html`<p>${t('job.expected', { at: new Date(gang.estimatedStart).toLocaleString() })}</p>` : gang?.noEstimate && waits ? html`<p class="faint">${gang.noEstimate}</p>` : null}
  </section>`;
}

/** Why it failed or is slow: the verdict with its evidence. */
function Verdict({ found }) {
  if (!found) return null;
  const where = [...found.nodes, ...found.devices, ...found.ranks.map((r) => `rank ${r}`)].join(', ');
  return html`<section class="card why bad" aria-labelledby="verdict"><h2 id="verdict">${t('verdict.title')} <span class="tag">${t(`verdict.${found.class}`, found.class)}</span></h2>
    <p class="reason">${found.cause}</p><p>${t('verdict.sure', { share: Math.round(found.confidence * 100) })}${where ? ` · ${where}` : ''} · <b>${found.action}</b></p>
    ${found.evidence.length ? html`<details><summary>${t('verdict.evidence')}</summary><pre class="object" tabindex="0">${found.evidence.join('\n')}</pre></details>` : null}</section>`;
}

function Slow({ pods }) {
  const seen = pods.flatMap((p) => p.devices.map((d) => ({ ...d, pod: p.name }))).filter((d) => Number.isFinite(d.use));
  if (!seen.length) return null;
  const mean = seen.reduce((sum, d) => sum + d.use, 0) / seen.length;
  const low = seen.filter((d) => d.use < mean * 0.7).sort((a, b) => a.use - b.use);
  return html`<section><h2>${t('job.devices')}</h2><div class="stats"><${Stat} name=${t('waste.use')} value="${Math.round(mean)} %" tone=${mean < 30 ? 'bad' : 'good'} />
      <${Stat} name=${t('job.memory')} value="${count(seen.reduce((s, d) => s + d.memoryUsed, 0) / 1024)} GiB" more=${t('job.ofMemory', { all: count(seen.reduce((s, d) => s + d.memory, 0) / 1024) })} /><${Stat} name=${t('job.power')} value="${count(seen.reduce((s, d) => s + d.power, 0) / 1000)} kW" /></div>
    ${low.length ? html`<p class="notice wait">${t('job.lags', { gpus: low.slice(0, 6).map((d) => `${d.pod} GPU ${d.index} (${d.use} %)`).join(', ') })}</p>` : null}
    <div class="gpus small">${seen.slice(0, 128).map((d) => html`<div class="gpu"><b>${d.pod} · ${d.index}</b><${Bar} label="${d.use} %" parts=${[[d.use / 100, d.use < mean * 0.7 ? 'wait' : 'good']]} /><span class="faint">${d.use} % · ${Math.round(d.memoryUsed / 1024)}/${Math.round(d.memory / 1024)} GiB</span></div>`)}</div></section>`;
}

function Pods({ namespace, pods, onProblem }) {
  if (!pods.length) return html`<p class="empty">${t('job.noPods')}</p>`;
  const open = (pod) => {
    const port = Number(prompt(t('app.port', { pod: pod.name }), '6006'));
    if (port) openApp({ namespace, pod: pod.name, port }, onProblem);
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t('job.pods')}><table class="list">
    <caption class="hidden">${t('job.pods')}</caption>
    <thead><tr>${['pod', 'state', 'node', 'gpuIndices', 'restarts', 'age'].map((n) => html`<th scope="col">${t(`job.${n}`)}</th>`)}<th scope="col"><span class="hidden">${t('app.open')}</span></th></tr></thead>
    <tbody>${pods.map((p) => html`<tr key=${p.name}>
      <th scope="row"><a href="/pods/${namespace}/${p.name}">${p.name}</a></th>
      <td><${Badge} of=${p.state} /></td><td>${p.node ? html`<a href="/nodes/${p.node}">${p.node}</a>` : '–'}</td><td>${p.gpus || '–'}</td><td>${p.restarts || '–'}</td>
      <td><${Age} since=${p.created} /></td><td>${p.state === 'Running' ? html`<button class="quiet" onClick=${() => open(p)} aria-label=${t('app.openOf', { pod: p.name })}>${t('app.openPort')}</button>` : null}</td></tr>`)}</tbody>
  </table></div>`;
}

function Cost({ namespace, name }) {
  const [found, show] = useState(null);
  useEffect(() => { request('GET', `/api/cost/${namespace}/${name}`).then(show).catch(() => show(false)); }, [namespace, name]);
  if (!found || !found.total.hours) return null;
  const priced = Boolean(found.currency);
  const sum = (line) => `${count(priced ? line.cost : line.hours)} ${priced ? found.currency : 'GPU h'}`;
  return html`<section><h2>${t('nav.cost')}</h2><div class="stats"><${Stat} name=${t('cost.total')} value=${sum(found.total)} more="${count(found.total.hours)} GPU h" />
    ${found.lines.map((line) => html`<${Stat} name=${t(`cost.purpose.${line.key[0]}`, line.key[0])} value=${sum(line)} tone=${line.key[0] === 'running' ? 'good' : 'wait'} />`)}</div></section>`;
}

function Scale({ roles, path, version, onProblem }) {
  const [sizes, setSizes] = useState({});
  const role = roles.find((r) => r.name === 'worker') || roles[0];
  if (!role) return null;
  const value = sizes[role.name] ?? role.replicas;
  const low = role.min ?? 1;
  const send = async () => {
    onProblem(null);
    try {
      const { object } = await request('GET', path);
      const changed = object.spec.roles.map((r) => (r.name === role.name ? { ...r, replicas: Number(value) } : r));
      await request('PATCH', path, { patch: { spec: { roles: changed } }, version: object.metadata.resourceVersion });
      setSizes({});
    } catch (error) { onProblem(error); }
  };
  return html`<span class="scale"><label class="row">${t('job.scale')}<input class="tiny" type="number" min=${low} max=${role.max ?? undefined} value=${value} onInput=${(e) => setSizes({ [role.name]: e.target.value })} /></label>
    <button disabled=${Number(value) === role.replicas || Number(value) < 1} title=${role.min || role.max ? t('job.elastic', { min: low, max: role.max ?? '∞' }) : t('job.rigid')} onClick=${send}>${t('job.apply')}</button></span>`;
}

function Acts({ job, roles, onProblem }) {
  const path = `/api/objects/jobs/${job.namespace}/${job.name}`;
  const act = async (method, to, body) => {
    onProblem(null);
    try { await request(method, to, body); return true; } catch (error) { onProblem(error); return false; }
  };
  const suspend = (value) => act('PATCH', path, { patch: { spec: { suspend: value } } });
  const over = ['Succeeded', 'Failed', 'Deleting'].includes(job.phase);
  const clone = async () => {
    try {
      const { object } = await request('GET', path);
      const fresh = { apiVersion: object.apiVersion, kind: object.kind, metadata: { name: `${job.name}-copy`, namespace: job.namespace, labels: object.metadata.labels }, spec: object.spec };
      delete fresh.spec.suspend;
      sessionStorage.setItem('clone', JSON.stringify(fresh));
      go('/submit?clone=1');
    } catch (error) { onProblem(error); }
  };
  return html`<div class="acts">${over ? null : html`<${Scale} roles=${roles} path=${path} onProblem=${onProblem} />`}
    <button onClick=${clone}>${t('job.clone')}</button>
    ${over ? null : job.phase === 'Suspended' ? html`<button onClick=${() => suspend(false)}>${t('job.resume')}</button>` : html`<button onClick=${() => suspend(true)}>${t('job.suspend')}</button>`}
    <${Ask} label=${t(over ? 'job.delete' : 'job.cancel')} disabled=${job.phase === 'Deleting'} title=${t('job.sure', { name: job.name })} more=${t('job.sureMore')} yes=${t('job.deleteIt')} act=${() => act('DELETE', `${path}?uid=${job.uid}`)} /></div>`;
}

export function Job({ namespace, name }) {
  const { facts, order, rows, known } = useTopic(`job/${namespace}/${name}`);
  const [problem, setProblem] = useState(null);
  const back = html`<p class="crumbs"><a href="/jobs">${t('nav.jobs')}</a> / <a href="/jobs?namespace=${namespace}">${namespace}</a></p>`;
  if (!known) return html`${back}<h1>${name}</h1>`;
  if (facts.forbidden) return html`${back}<${Barred} facts=${facts} title=${name} />`;
  if (facts.missing) return html`${back}<h1>${name}</h1><p class="empty">${t('job.gone')}</p><section><h2>${t('job.log')}</h2><${Logs} namespace=${namespace} job=${name} /></section>`;
  const { job, gang } = facts;
  const all = order.map((key) => rows[key]);
  const pods = all.filter((row) => row.row === 'pod');
  const events = all.filter((row) => row.row === 'event').reverse();
  const tab = route.value.query.get('tab') || 'about';
  const tabs = [['about', t('object.about')], ['logs', t('job.log')], ['ranks', t('job.ranks')], ['pods', `${t('job.pods')} ${pods.length || ''}`], ['events', `${t('job.events')} ${events.length || ''}`], ...('deleted' in facts ? [] : [['yaml', 'YAML']])];
  return html`${back}
    <div class="head"><h1>${name} <${Badge} of=${job.phase} />${job.simulated ? html` <span class="tag">${t('job.simulated')}</span>` : null}</h1>
      ${'deleted' in facts ? null : html`<${Acts} job=${job} roles=${facts.roles} onProblem=${setProblem} />`}</div>
    <${Problem} of=${problem} />
    ${'deleted' in facts ? html`<div class="notice">${t('job.record', { at: new Date(facts.deleted).toLocaleString() })}</div>` : null}
    ${facts.hidden?.length ? html`<div class="notice wait">${t('job.hidden', { kinds: facts.hidden.join(', ') })}</div>` : null}
    <${Why} job=${job} gang=${gang} />
    <${Verdict} found=${facts.diagnosis} />
    <${Tabs} label=${name} names=${tabs} at=${tab} choose=${(to) => amend({ tab: to === 'about' ? '' : to, log: '' })} />
    ${tab === 'about' ? html`<dl class="card facts">
      <${Fact} name="job.queue"><a href="/jobs?queue=${job.queue}">${job.queue}</a><//>
      <${Fact} name="job.framework">${job.framework}<//>
      <${Fact} name="job.gang">${job.bound}/${job.pods}${job.fewest !== job.pods || job.most !== job.pods ? html` <span class="faint">(${job.fewest}–${job.most})</span>` : ''}<//>
      <${Fact} name="job.gpus">${job.gpus || '–'}<//>
      <${Fact} name="job.domain">${Object.values(gang?.domain || {}).join(' / ') || '–'}<//>
      <${Fact} name="job.restarts">${job.restarts}<//>
      <${Fact} name="job.user">${job.user || '–'}<//>
      <${Fact} name="job.age"><${Age} since=${job.created} /><//>
      <${Fact} name="job.runtime"><${Age} since=${job.started} until=${job.ended} /><//>
      ${facts.checkpoint ? html`<${Fact} name="job.checkpoint">${facts.checkpoint.last ? html`<${Age} since=${facts.checkpoint.last} />` : '–'}${facts.checkpoint.interval ? html` <span class="faint">${t('job.every', { interval: facts.checkpoint.interval })}</span>` : ''}<//>` : null}
      ${facts.copies ? html`<${Fact} name="job.lostPod">${facts.copies.steps ? t('job.atMost', { steps: facts.copies.steps }) : t('job.allSteps')} <span class="faint">${t('job.copies', { size: (facts.copies.memory / 1e9).toFixed(2) })}</span><//>` : null}
    </dl>
    <section><h2>${t('timeline.title')}</h2><${Timeline} job=${job} stages=${facts.timeline || []} attempts=${facts.attempts || []} pods=${pods} events=${events} /></section>
    <${Slow} pods=${pods} /><${Cost} namespace=${namespace} name=${name} />
    <section><h2>${t('job.log')}</h2><${Logs} namespace=${namespace} job=${name} /></section>` : null}
    ${tab === 'logs' ? html`<section class="tall"><${Logs} namespace=${namespace} job=${name} /></section>` : null}
    ${tab === 'ranks' ? html`<section><${Ranks} namespace=${namespace} job=${name} /></section>` : null}
    ${tab === 'pods' ? html`<${Pods} namespace=${namespace} pods=${pods} onProblem=${setProblem} />` : null}
    ${tab === 'events' ? html`<${Events} events=${events} />` : null}
    ${tab === 'yaml' ? html`<${ObjectYaml} word="jobs" namespace=${namespace} name=${name} />` : null}`;
}
