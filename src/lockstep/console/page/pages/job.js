// One job: why it waits, its pods, events and logs.
import { html, useState, useRef, useEffect, Age, Badge, Problem } from '../ui.js';
import { request } from '../api.js';
import { useTopic } from '../live.js';
import { amend, go, route } from '../route.js';
import { t } from '../texts.js';

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
    ${gang?.estimatedStart ? html`<p>${t('job.expected', { at: new Date(gang.estimatedStart).toLocaleString() })}</p>` : null}
  </section>`;
}

function Log({ namespace, pod, container }) {
  const { facts, lines } = useTopic(`log/${namespace}/${pod}/${container}`);
  const box = useRef(null);
  const [follow, setFollow] = useState(true);
  useEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [lines, follow]);
  const scrolled = () => {
    const at = box.current;
    setFollow(at.scrollHeight - at.scrollTop - at.clientHeight < 40);
  };
  return html`<div class="log-state faint" role="status">${t(`log.${facts.state || 'opening'}`)} ${facts.message || ''}</div>
    <pre class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-label=${t('log.of', { pod })}>${lines.join('\n')}</pre>`;
}

function Logs({ namespace, pods }) {
  const asked = route.value.query.get('pod');
  const pod = pods.find((p) => p.name === asked) || pods[0];
  if (!pod) return html`<p class="empty">${t('job.noPods')}</p>`;
  return html`<div class="filters"><label>${t('job.pod')}
      <select value=${pod.name} onChange=${(e) => amend({ pod: e.target.value })}>
        ${pods.map((p) => html`<option value=${p.name} selected=${p.name === pod.name}>${p.name}</option>`)}
      </select></label></div>
    <${Log} key=${pod.name} namespace=${namespace} pod=${pod.name} container=${pod.containers[0] || 'main'} />`;
}

function Pods({ pods }) {
  return html`<div class="scroll"><table class="list">
    <caption class="hidden">${t('job.pods')}</caption>
    <thead><tr>${['pod', 'state', 'node', 'gpuIndices', 'age'].map((n) => html`<th scope="col">${t(`job.${n}`)}</th>`)}</tr></thead>
    <tbody>${pods.map((p) => html`<tr key=${p.name}>
      <th scope="row"><a href="?pod=${p.name}" onClick=${(e) => { e.preventDefault(); amend({ pod: p.name }); document.getElementById('log')?.scrollIntoView(); }}>${p.name}</a></th>
      <td><${Badge} of=${p.state} /></td><td>${p.node || '–'}</td><td>${p.gpus || '–'}</td>
      <td><${Age} since=${p.created} /></td></tr>`)}</tbody>
  </table></div>`;
}

function Events({ events }) {
  if (!events.length) return html`<p class="empty">${t('job.noEvents')}</p>`;
  return html`<div class="scroll"><table class="list events">
    <caption class="hidden">${t('job.events')}</caption>
    <thead><tr>${['seen', 'type', 'reason', 'object', 'message'].map((n) => html`<th scope="col">${t(`event.${n}`)}</th>`)}</tr></thead>
    <tbody>${events.map((e) => html`<tr>
      <td><${Age} since=${e.seen} />${e.count > 1 ? html` <span class="faint">×${e.count}</span>` : null}</td>
      <td><${Badge} of=${e.type} /></td><td>${e.reason}</td><td>${e.object}</td><td class="message">${e.message}</td></tr>`)}</tbody>
  </table></div>`;
}

function Acts({ job, onProblem }) {
  const dialog = useRef(null);
  const path = `/api/jobs/${job.namespace}/${job.name}`;
  const act = async (method, to, body) => {
    onProblem(null);
    try { await request(method, to, body); return true; } catch (error) { onProblem(error); return false; }
  };
  const over = ['Succeeded', 'Failed', 'Deleting'].includes(job.phase);
  return html`<div class="acts">
    ${over ? null : job.phase === 'Suspended'
      ? html`<button onClick=${() => act('PATCH', path, { suspend: false })}>${t('job.resume')}</button>`
      : html`<button onClick=${() => act('PATCH', path, { suspend: true })}>${t('job.suspend')}</button>`}
    <button class="danger" disabled=${job.phase === 'Deleting'} onClick=${() => dialog.current.showModal()}>${t(over ? 'job.delete' : 'job.cancel')}</button>
    <dialog ref=${dialog} aria-labelledby="sure">
      <h2 id="sure">${t('job.sure', { name: job.name })}</h2>
      <p>${t('job.sureMore')}</p>
      <div class="acts">
        <button onClick=${() => dialog.current.close()}>${t('job.keep')}</button>
        <button class="danger" onClick=${async () => { dialog.current.close(); await act('DELETE', `${path}?uid=${job.uid}`); }}>${t('job.deleteIt')}</button>
      </div>
    </dialog>
  </div>`;
}

export function Job({ namespace, name }) {
  const { facts, order, rows, known } = useTopic(`job/${namespace}/${name}`);
  const [problem, setProblem] = useState(null);
  const back = html`<p class="crumbs"><a href="/jobs">${t('nav.jobs')}</a> / ${namespace}</p>`;
  if (!known) return html`${back}<h1>${name}</h1>`;
  if (facts.forbidden) return html`${back}<h1>${name}</h1><div class="notice bad" role="alert">${t('missing.right', { right: facts.forbidden, namespace })}</div>`;
  if (facts.missing) return html`${back}<h1>${name}</h1><p class="empty">${t('job.gone')}</p>`;
  const { job, gang } = facts;
  const all = order.map((key) => rows[key]);
  const pods = all.filter((row) => row.row === 'pod');
  const events = all.filter((row) => row.row === 'event').reverse();
  return html`${back}
    <div class="head"><h1>${name} <${Badge} of=${job.phase} />${job.simulated ? html` <span class="tag">${t('job.simulated')}</span>` : null}</h1>
      <${Acts} job=${job} onProblem=${setProblem} /></div>
    <${Problem} of=${problem} />
    ${facts.hidden?.length ? html`<div class="notice wait">${t('job.hidden', { kinds: facts.hidden.join(', ') })}</div>` : null}
    <${Why} job=${job} gang=${gang} />
    <dl class="card facts">
      <${Fact} name="job.queue">${job.queue}<//>
      <${Fact} name="job.framework">${job.framework}<//>
      <${Fact} name="job.gang">${job.bound}/${job.pods}<//>
      <${Fact} name="job.gpus">${job.gpus || '–'}<//>
      <${Fact} name="job.domain">${Object.values(gang?.domain || {}).join(' / ') || '–'}<//>
      <${Fact} name="job.restarts">${job.restarts}<//>
      <${Fact} name="job.age"><${Age} since=${job.created} /><//>
      <${Fact} name="job.runtime"><${Age} since=${job.started} until=${job.ended} /><//>
    </dl>
    <section><h2>${t('job.pods')} <span class="faint">${pods.length}</span></h2>${pods.length ? html`<${Pods} pods=${pods} />` : html`<p class="empty">${t('job.noPods')}</p>`}</section>
    <section id="log"><h2>${t('job.log')}</h2><${Logs} namespace=${namespace} pods=${pods} /></section>
    <section><h2>${t('job.events')}</h2><${Events} events=${events} /></section>`;
}
