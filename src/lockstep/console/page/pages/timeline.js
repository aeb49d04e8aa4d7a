// A job's life and that of its pods as bars over time.
import { html, duration, now } from '../ui.js';
import { t } from '../texts.js';

const TONES = { held: 'idle', queued: 'wait', placed: 'busy', image: 'busy', data: 'busy', start: 'busy', restore: 'busy', productive: 'good', lost: 'bad', hung: 'bad', suspended: 'idle' };
const MOST = 32;

function Lane({ name, bars, marks = [], start, span, link }) {
  const left = (at) => `${((at - start) / span) * 100}%`;
  return html`<div class="lane"><span class="lane-name" title=${name}>${link ? html`<a href=${link}>${name}</a>` : name}</span><span class="track">${bars.map((bar) => html`<i class=${bar.tone} style=${{ left: left(bar.from), width: `max(2px, ${((bar.to - bar.from) / span) * 100}%)` }} title="${bar.title}: ${duration((bar.to - bar.from) / 1000)}"></i>`)}
    ${marks.map((mark) => html`<b class=${mark.tone} style=${{ left: left(mark.at) }} title=${mark.title}></b>`)}</span></div>`;
}

export function Timeline({ job, stages, attempts = [], pods, events }) {
  if (!stages.length) return null;
  const start = Date.parse(stages[0].start);
  const last = stages[stages.length - 1];
  const end = last.end ? Date.parse(last.end) : now.value;
  const span = Math.max(1000, end - start);
  const bars = stages.map((stage) => ({ from: Date.parse(stage.start), to: stage.end ? Date.parse(stage.end) : end, tone: TONES[stage.stage] || 'idle', title: t(`stage.${stage.stage}`) }));
  const marks = events.filter((e) => e.seen && e.type === 'Warning').map((e) => ({ at: Math.min(end, Math.max(start, Date.parse(e.seen))), tone: 'bad', title: `${e.reason}: ${e.message}` }));
  const ends = attempts.filter((one) => one.end && one.reason !== 'Succeeded').map((one) => ({ at: Math.min(end, Math.max(start, Date.parse(one.end))), tone: 'bad', title: `${t('attempt.ended', { number: one.number })}: ${one.why}` }));
  const lanes = pods.slice(0, MOST).map((pod) => {
    const made = Date.parse(pod.created);
    const begun = pod.started ? Date.parse(pod.started) : null;
    const over = pod.ended ? Date.parse(pod.ended) : end;
    const parts = [{ from: made, to: begun ?? over, tone: 'wait', title: t('phase.Pending') }];
    if (begun) parts.push({ from: begun, to: Math.max(begun, over), tone: /error/i.test(pod.state) ? 'bad' : 'good', title: pod.state });
    return { name: pod.role ? `${pod.role}-${pod.rank}` : pod.name, bars: parts.filter((b) => b.to >= b.from), pod: pod.name };
  });
  return html`<div class="card timeline"><${Lane} name=${t('timeline.job')} bars=${bars} marks=${[...marks, ...ends]} start=${start} span=${span} />
    ${lanes.map((lane) => html`<${Lane} key=${lane.pod} name=${lane.name} bars=${lane.bars} start=${start} span=${span} />`)}
    ${pods.length > MOST ? html`<p class="faint">${t('timeline.more', { count: pods.length - MOST })}</p>` : null}
    <div class="axis"><span>${new Date(start).toLocaleString()}</span><span class="legend">${Object.entries(TONES).filter(([stage]) => stages.some((s) => s.stage === stage)).map(([stage, tone]) => html`<span><i class="dot ${tone}"></i>${t(`stage.${stage}`)}</span> `)}</span><span>${last.end ? new Date(end).toLocaleString() : t('timeline.now')}</span></div></div>`;
}
