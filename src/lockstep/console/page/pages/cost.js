// What was used and what that cost, day by day and by whom.
import { html, count, Problem, Stat, useEffect, useState } from '../ui.js';
import { request } from '../api.js';
import { amend, route } from '../route.js';
import { t } from '../texts.js';

const BY = ['job', 'user', 'queue', 'namespace', 'purpose'];
const DAYS = ['1', '7', '30', '90'];

/** Bars of days: what was used, with what was free above. */
export function Days({ days, priced, unit }) {
  const of = (line) => (line ? (priced ? line.cost : line.hours) : 0);
  const top = Math.max(0.001, ...days.map((d) => of(d.used) + of(d.free)));
  const width = 100 / days.length;
  return html`<figure class="card chart"><figcaption>${t('cost.daily', { unit })}</figcaption>
    <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label=${t('cost.daily', { unit })}>${days.map((d, i) => {
      const used = (of(d.used) / top) * 38;
      const free = (of(d.free) / top) * 38;
      const title = `${new Date(d.day * 1000).toLocaleDateString()}: ${count(of(d.used))} ${unit}${d.free ? ` + ${count(of(d.free))} ${t('cost.free')}` : ''}`;
      return html`<g><title>${title}</title><rect class="free" x=${i * width + width * 0.1} width=${width * 0.8} y=${40 - used - free} height=${free} /><rect class="used" x=${i * width + width * 0.1} width=${width * 0.8} y=${40 - used} height=${used} /></g>`;
    })}</svg><div class="axis"><span>${new Date(days[0].day * 1000).toLocaleDateString()}</span><span>${count(top)} ${unit}</span><span>${new Date(days[days.length - 1].day * 1000).toLocaleDateString()}</span></div></figure>`;
}

function csv(found) {
  const quoted = (cell) => `"${(/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`;
  const lines = [[...found.by, 'gpuHours', 'cost', 'currency'], ...found.lines.map((l) => [...l.key, String(l.hours), String(l.cost), found.currency])];
  return URL.createObjectURL(new Blob([lines.map((cells) => cells.map(quoted).join(',')).join('\r\n')], { type: 'text/csv' }));
}

export function Cost() {
  const [found, show] = useState(null);
  const [problem, setProblem] = useState(null);
  const by = BY.includes(route.value.query.get('by')) ? route.value.query.get('by') : 'job';
  const days = DAYS.includes(route.value.query.get('days')) ? route.value.query.get('days') : '30';
  useEffect(() => {
    let gone = false;
    request('GET', `/api/cost?by=${by}&days=${days}`).then((a) => { if (!gone) { show(a); setProblem(null); } }).catch((e) => { if (!gone) setProblem(e); });
    return () => { gone = true; };
  }, [by, days]);
  const chips = (name, all, chosen, usual) => html`<div class="chips" role="group" aria-label=${t(`cost.${name}`)}>${all.map((one) => html`<button class="chip" aria-pressed=${one === chosen} onClick=${() => amend({ [name]: one === usual ? '' : one })}>${t(`cost.${name}.${one}`)}</button>`)}</div>`;
  const priced = Boolean(found?.currency);
  const unit = priced ? found.currency : 'GPU h';
  const sum = (line) => (line ? `${count(priced ? line.cost : line.hours)} ${unit}` : '–');
  const used = found ? found.lines.reduce((all, l) => all + (priced ? l.cost : l.hours), 0) : 0;
  const save = () => { const link = document.createElement('a'); link.href = csv(found); link.download = 'cost.csv'; link.click(); };
  return html`<div class="head"><h1>${t('nav.cost')}</h1><div class="acts"><button disabled=${!found?.lines.length} onClick=${save}>${t('list.csv')}</button></div></div>
    <div class="filters">${chips('by', BY, by, 'job')}<span class="grow"></span>${chips('days', DAYS, days, '30')}</div>
    <${Problem} of=${problem} />
    ${found ? html`${found.problems.map((one) => html`<div class="notice wait">${one}</div>`)}
      <div class="stats"><${Stat} name=${t('cost.used')} value="${count(used)} ${unit}" tone="good" />${found.free ? html`<${Stat} name=${t('cost.free')} value=${sum(found.free)} /><${Stat} name=${t('cost.total')} value=${sum(found.total)} />` : null}
        <${Stat} name=${t('cost.hours')} value=${count(found.total.hours)} />${found.total.unpriced > 0.01 ? html`<${Stat} name=${t('cost.unpriced')} value=${count(found.total.unpriced)} tone="wait" />` : null}</div>
      <${Days} days=${found.days} priced=${priced} unit=${unit} />
      <section><div class="scroll" tabindex="0" role="region" aria-label=${t('nav.cost')}><table class="list"><caption class="hidden">${t('nav.cost')}</caption>
        <thead><tr>${found.by.map((name) => html`<th scope="col">${t(`cost.by.${name}`)}</th>`)}<th scope="col" class="number">GPU h</th><th scope="col" class="number">${t('cost.starting')}</th><th scope="col" class="number">${priced ? found.currency : t('cost.price')}</th></tr></thead>
        <tbody>${found.lines.map((line) => html`<tr>${line.key.map((cell, i) => (i === 0 ? html`<th scope="row">${cell || '–'}</th>` : html`<td>${cell || '–'}</td>`))}<td class="number">${count(line.hours)}</td><td class="number">${count(line.starting)}</td><td class="number">${priced ? count(line.cost) : '–'}</td></tr>`)}</tbody></table>
        ${found.lines.length ? null : html`<p class="empty">${t('cost.none')}</p>`}</div></section>` : null}`;
}
