// One object of any kind: its summary, what it is made of, what was told of it, and its YAML.
import { html, useState, Age, Ask, Badge, Barred, Problem, Tabs } from '../ui.js';
import { request, user } from '../api.js';
import { useTopic } from '../live.js';
import { amend, go, route } from '../route.js';
import { t } from '../texts.js';
import { ObjectYaml, Yaml } from './editor.js';
import { Value } from './parts.js';
import { Events } from './events.js';
import { Logs } from './logs.js';
import { TEMPLATES } from './templates.js';

/** Open a notebook, or a port of a pod, at an origin of its own. */
export async function openApp(which, onProblem) {
  onProblem(null);
  // The window is opened by the click itself: browsers stop those that come later.
  const there = window.open('about:blank', '_blank');
  try {
    const { url } = await request('POST', '/api/apps', which);
    if (there) { there.opener = null; there.location = url; } else location.assign(url);
  } catch (error) { there?.close(); onProblem(error); }
}

function NotebookActs({ object, onProblem }) {
  const { name, namespace, annotations = {} } = object.metadata;
  const stopped = 'kubeflow-resource-stopped' in annotations;
  const path = `/api/objects/notebooks/${namespace}/${name}`;
  const ready = (object.status?.readyReplicas || 0) > 0;
  const toggle = async () => {
    const value = stopped ? null : new Date().toISOString().replace(/\.\d+/, '');
    try { await request('PATCH', path, { patch: { metadata: { annotations: { 'kubeflow-resource-stopped': value } } } }); onProblem(null); } catch (error) { onProblem(error); }
  };
  return html`<button class="main" disabled=${!ready} onClick=${() => openApp({ namespace, notebook: name }, onProblem)}>${t('app.open')}</button>
    <button onClick=${toggle}>${t(stopped ? 'act.start' : 'act.stop')}</button>`;
}

function PipelineActs({ object, onProblem }) {
  const { name, namespace } = object.metadata;
  const path = `/api/objects/pipelines/${namespace}/${name}`;
  const phase = object.status?.phase;
  const over = ['Succeeded', 'Failed', 'Stopped'].includes(phase);
  const set = async (spec) => { try { await request('PATCH', path, { patch: { spec } }); onProblem(null); } catch (error) { onProblem(error); } };
  const waits = Object.values(object.status?.steps || {}).some((s) => s.kind === 'Suspend' && s.phase === 'Running');
  return html`${waits ? html`<button class="main" onClick=${() => set({ resumed: ['*'] })}>${t('pipeline.go')}</button>` : null}
    ${over ? html`<button onClick=${() => set({ retries: (object.spec.retries || 0) + 1, desired: 'Running' })}>${t('pipeline.retry')}</button>`
    : html`<button onClick=${() => set({ desired: object.spec.desired === 'Suspended' ? 'Running' : 'Suspended' })}>${t(object.spec.desired === 'Suspended' ? 'job.resume' : 'job.suspend')}</button>
      <button onClick=${() => set({ desired: 'Stopped' })}>${t('act.stop')}</button>`}`;
}

const ACTS = { notebooks: NotebookActs, pipelines: PipelineActs };

/** Steps of a run as a graph: each stands behind those that it waits for. */
function Graph({ steps }) {
  const names = Object.keys(steps).filter((name) => steps[name].kind !== 'Graph');
  const depth = {};
  const deep = (name, seen) => {
    if (name in depth) return depth[name];
    if (seen.has(name) || !steps[name]) return 0;
    seen.add(name);
    const before = (steps[name].after || []).map((one) => (names.includes(one) ? one : names.find((n) => n.endsWith(`.${one}`)))).filter(Boolean);
    depth[name] = before.length ? 1 + Math.max(...before.map((one) => deep(one, seen))) : 0;
    return depth[name];
  };
  names.forEach((name) => deep(name, new Set()));
  const columns = [];
  names.forEach((name) => (columns[depth[name]] ??= []).push(name));
  return html`<ol class="graph">${columns.map((column) => html`<li><ul>${(column || []).map((name) => {
    const step = steps[name];
    return html`<li class="step"><b>${name.replace(/^main\./, '')}</b> <${Badge} of=${step.phase} />
      <span class="faint">${step.startedAt ? html`<${Age} since=${step.startedAt} until=${step.finishedAt} />` : ''} ${step.attempt > 1 ? `×${step.attempt}` : ''} ${step.object || ''}</span>
      ${step.message ? html`<p class="faint">${step.message}</p>` : null}</li>`;
  })}</ul></li>`)}</ol>`;
}

function Findings({ object }) {
  const found = object.spec?.findings || [];
  if (!found.length) return null;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t('health.findings')}><table class="list"><caption class="hidden">${t('health.findings')}</caption>
    <thead><tr>${['cause', 'class', 'action', 'device', 'confidence', 'seen', 'evidence'].map((n) => html`<th scope="col">${t(`health.${n}`)}</th>`)}</tr></thead>
    <tbody>${found.map((f) => html`<tr><th scope="row" class="wrap">${f.cause}</th><td>${f.class}</td><td>${f.action}</td><td>${f.device || '–'}</td>
      <td>${Math.round((f.confidence || 0) * 100)} %</td><td><${Age} since=${f.last} />${f.count > 1 ? ` ×${f.count}` : ''}</td><td class="why"><code>${f.evidence}</code></td></tr>`)}</tbody></table></div>`;
}

function Members({ object }) {
  return html`<div class="scroll"><table class="list"><caption class="hidden">${t('team.members')}</caption>
    <thead><tr><th scope="col">${t('team.member')}</th><th scope="col">${t('team.kind')}</th><th scope="col">${t('team.role')}</th></tr></thead>
    <tbody>${(object.spec?.members || []).map((m) => html`<tr><th scope="row">${m.name}</th><td>${m.kind || 'User'}</td><td>${m.role || 'Edit'}</td></tr>`)}</tbody></table></div>`;
}

function Conditions({ object }) {
  const all = object.status?.conditions;
  if (!Array.isArray(all) || !all.length) return null;
  return html`<section><h2>${t('object.conditions')}</h2><div class="scroll" tabindex="0" role="region" aria-label=${t('object.conditions')}><table class="list"><caption class="hidden">${t('object.conditions')}</caption>
    <thead><tr>${['type', 'status', 'reason', 'since', 'message'].map((n) => html`<th scope="col">${t(`condition.${n}`)}</th>`)}</tr></thead>
    <tbody>${all.map((c) => html`<tr><th scope="row">${c.type}</th><td>${c.status}</td><td>${c.reason || '–'}</td><td><${Age} since=${c.lastTransitionTime} /></td><td class="message">${c.message || ''}</td></tr>`)}</tbody></table></div></section>`;
}

function Body({ word, object }) {
  if (word === 'pipelines' && object.status?.steps) return html`<section><h2>${t('pipeline.steps')}</h2><${Graph} steps=${object.status.steps} /></section>`;
  if (word === 'health') return html`<section><h2>${t('health.findings')}</h2><${Findings} object=${object} /></section>`;
  if (word === 'teams') return html`<section><h2>${t('team.members')}</h2><${Members} object=${object} /></section>`;
  if (word === 'notebooks') return html`<section><h2>${t('job.log')}</h2><${Logs} namespace=${object.metadata.namespace} job="-" pod="${object.metadata.name}-0" /></section>`;
  if (word === 'pods') return html`<section><h2>${t('job.log')}</h2><${Logs} namespace=${object.metadata.namespace} job="-" pod=${object.metadata.name} /></section>`;
  if (word === 'services' && object.status?.url) {
    const call = `curl -d '{"instances": [[5.1, 3.5, 1.4, 0.2]]}' \\\n  ${object.status.url}/v1/models/${object.metadata.name}:predict`;
    return html`<section><h2>${t('service.call')}</h2><pre class="card object" tabindex="0">${call}</pre></section>`;
  }
  return null;
}

export function ObjectPage({ kind, namespace, name }) {
  const { facts, order, rows, known } = useTopic(`object/${kind}/${namespace}/${name}`);
  const [problem, setProblem] = useState(null);
  const back = html`<p class="crumbs"><a href="/${kind}">${t(`nav.${kind}`)}</a>${namespace === '-' ? '' : ` / ${namespace}`}</p>`;
  if (!known) return html`${back}<h1>${name}</h1>`;
  if (facts.forbidden || facts.unread) return html`${back}<${Barred} facts=${facts} title=${name} />`;
  if (facts.missing) return html`${back}<h1>${name}</h1><p class="empty">${t('object.gone')}</p>`;
  const { object, columns, cells } = facts;
  const Acts = ACTS[kind];
  const tab = route.value.query.get('tab') || 'about';
  const space = object.metadata.namespace || '-';
  const remove = async () => {
    try { await request('DELETE', `/api/objects/${kind}/${space}/${name}?uid=${object.metadata.uid}`); go(`/${kind}`); } catch (error) { setProblem(error); }
  };
  return html`${back}
    <div class="head"><h1>${name}</h1><div class="acts">${Acts ? html`<${Acts} object=${object} onProblem=${setProblem} />` : null}
      <${Ask} label=${t('job.delete')} title=${t('job.sure', { name })} more=${t(`sure.${kind}`, t('object.sure'))} act=${remove} yes=${t('job.deleteIt')} /></div></div>
    <${Problem} of=${problem} />
    <dl class="card facts">${(columns || []).map(([column, shape], i) => (shape === 'why' && !cells[i] ? null : html`<div class="fact ${shape === 'why' ? 'wide' : ''}"><dt>${t(`column.${column}`)}</dt><dd><${Value} shape=${shape} value=${cells[i]} /></dd></div>`))}</dl>
    <${Tabs} label=${name} names=${[['about', t('object.about')], ['events', `${t('job.events')} ${order.length || ''}`], ['yaml', 'YAML']]} at=${tab} choose=${(to) => amend({ tab: to === 'about' ? '' : to })} />
    ${tab === 'yaml' ? html`<${ObjectYaml} word=${kind} namespace=${space} name=${name} />` : null}
    ${tab === 'events' ? html`<${Events} events=${order.map((key) => rows[key]).reverse()} />` : null}
    ${tab === 'about' ? html`<${Body} word=${kind} object=${object} /><${Conditions} object=${object} />` : null}`;
}

const DRAFTS = 'draft.';

/** A new object of a kind; what is half written outlasts a reload. */
export function NewObject({ kind }) {
  const first = () => sessionStorage.getItem(DRAFTS + kind) || TEMPLATES[kind](user.value.namespace);
  const [text, setText] = useState(first);
  const [problem, setProblem] = useState(null);
  const [said, say] = useState('');
  const change = (value) => { sessionStorage.setItem(DRAFTS + kind, value); setText(value); say(''); };
  const send = async (check) => {
    say('');
    try {
      const made = await request('POST', '/api/objects', { yaml: text, check });
      setProblem(null);
      if (check) { say(t('edit.accepted')); return; }
      sessionStorage.removeItem(DRAFTS + kind);
      go(made.word === 'queues' ? '/queues' : `/${made.word}/${made.namespace}/${made.name}`);
    } catch (error) { setProblem(error); }
  };
  return html`<p class="crumbs"><a href="/${kind}">${t(`nav.${kind}`)}</a></p><h1>${t('act.new')}</h1>
    <p class="lead">${t(`about.${kind}`)}</p>
    <${Problem} of=${problem} />
    <${Yaml} value=${text} change=${change} label=${t('edit.yaml')} invalid=${problem} />
    <div class="acts left"><button class="main" onClick=${() => send(false)}>${t('act.create')}</button><button onClick=${() => send(true)}>${t('edit.check')}</button>
      <button onClick=${() => change(TEMPLATES[kind](user.value.namespace))}>${t('edit.again')}</button><span class="faint" role="status">${said}</span></div>`;
}

