// Where a user stands: own jobs, what is left of the queues, spending, and advice.
import { html, Age, Badge, Bar, count, Stat, useEffect, useState } from '../ui.js';
import { request, user } from '../api.js';
import { useTopic } from '../live.js';
import { t } from '../texts.js';

function Jobs({ title, jobs, empty, why }) {
  return html`<section class="card"><h2>${title}</h2>${jobs.length ? html`<ul class="plain">${jobs.map((job) => html`<li>
    <a href="/jobs/${job.namespace}/${job.name}"><b>${job.name}</b></a> <span class="faint">${job.namespace}</span> <${Badge} of=${job.phase} />
    <span class="faint right">${job.gpus ? `${job.gpus} GPU · ` : ''}<${Age} since=${job.started || job.created} until=${job.ended} /></span>
    ${why && job.why ? html`<p class="faint clamp">${job.why}</p>` : null}</li>`)}</ul>` : html`<p class="empty">${empty}</p>`}</section>`;
}

function Queues({ queues }) {
  return html`<section class="card"><h2>${t('home.quota')}</h2>${queues.length ? html`<ul class="plain">${queues.map((q) => {
    const whole = q.limit ?? q.guaranteed ?? q.used;
    const left = q.guaranteed === null ? null : Math.max(0, q.guaranteed - q.used);
    return html`<li><a href="/queues"><b>${q.name}</b></a><span class="faint right">${t('home.used', { used: count(q.used), whole: count(whole) })}</span>
      <${Bar} label=${t('home.used', { used: count(q.used), whole: count(whole) })} parts=${whole ? [[Math.min(q.used, q.guaranteed ?? q.used) / whole, 'good'], [Math.max(0, q.borrowed) / whole, 'wait', t('queue.borrowed')]] : []} />
      <span class="faint">${left === null ? t('home.noQuota') : t('home.left', { left: count(left) })}${q.pending ? ` · ${t('home.waiting', { count: q.pending })}` : ''}</span></li>`;
  })}</ul>` : html`<p class="empty">${t('home.noQueues')}</p>`}</section>`;
}

function Spending() {
  const [found, show] = useState(null);
  useEffect(() => { request('GET', '/api/cost?by=namespace&days=7').then(show).catch(() => show(false)); }, []);
  if (!found) return null;
  const today = found.days[found.days.length - 1]?.used || { hours: 0, cost: 0 };
  const priced = Boolean(found.currency);
  const week = found.days.reduce((sum, d) => sum + (priced ? d.used.cost : d.used.hours), 0);
  const unit = priced ? found.currency : 'GPU h';
  return html`<a class="quietly" href="/cost"><${Stat} name=${t('home.today')} value="${count(priced ? today.cost : today.hours)} ${unit}" more=${t('home.week', { sum: `${count(week)} ${unit}` })} /></a>`;
}

function Advice({ advice }) {
  if (!advice.length) return null;
  return html`<section class="card advice"><h2>${t('home.advice')}</h2><ul class="plain">${advice.map((one) => html`<li><a href="/jobs/${one.about}"><b>${one.about.split('/')[1]}</b></a>${' '}
    ${one.kind === 'idle' ? t('home.idle', { gpus: one.gpus, use: one.use }) : one.text}</li>`)}</ul></section>`;
}

export function Home() {
  const { facts, known } = useTopic('home');
  if (!known) return html`<h1>${t('nav.home')}</h1>`;
  const phases = facts.phases || {};
  const sum = (...names) => names.reduce((all, name) => all + (phases[name] || 0), 0);
  const gpus = facts.cluster;
  return html`<div class="head"><h1>${t('home.hello', { user: user.value.user.split(':').pop() })}</h1><a class="button main" href="/submit">${t('nav.submit')}</a></div>
    ${facts.own ? null : html`<p class="lead">${t('home.all')}</p>`}
    <div class="stats">
      <a class="quietly" href="/jobs?phase=Running"><${Stat} name=${t('phase.Running')} value=${count(sum('Running', 'Starting'))} tone="good" /></a>
      <a class="quietly" href="/jobs?phase=Pending"><${Stat} name=${t('phase.Pending')} value=${count(sum('Pending', 'Restarting'))} tone=${sum('Pending') ? 'wait' : ''} /></a>
      <a class="quietly" href="/jobs?phase=Failed"><${Stat} name=${t('phase.Failed')} value=${count(sum('Failed'))} tone=${sum('Failed') ? 'bad' : ''} /></a>
      ${gpus ? html`<a class="quietly" href="/map"><${Stat} name=${t('home.gpus')} value="${count(gpus.held)} / ${count(gpus.gpus)}" more=${t('home.free', { free: count(gpus.free) })} /></a>` : null}
      <${Spending} />
    </div>
    <${Advice} advice=${facts.advice || []} />
    <div class="cards">
      <${Jobs} title=${t('home.waits')} jobs=${facts.waiting} empty=${t('home.noneWaits')} why=${true} />
      <${Jobs} title=${t('home.runs')} jobs=${facts.running} empty=${t('home.noneRuns')} />
      ${facts.queues ? html`<${Queues} queues=${facts.queues} />` : null}
      <${Jobs} title=${t('home.failed')} jobs=${facts.failed} empty=${t('home.noneFailed')} why=${true} />
    </div>`;
}
