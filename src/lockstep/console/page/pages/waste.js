// Who holds GPUs that do little, and what of the cluster is of no use.
import { html, Bar, Barred, count, Stat } from '../ui.js';
import { useTopic } from '../live.js';
import { t } from '../texts.js';

export function Waste() {
  const { facts, order, rows, known } = useTopic('waste');
  if (facts.forbidden || facts.unread) return html`<${Barred} facts=${facts} title=${t('nav.waste')} />`;
  const share = (value) => (facts.gpus ? `${Math.round((value / facts.gpus) * 100)} %` : '–');
  return html`<h1>${t('nav.waste')}</h1><p class="lead">${t('about.waste')}</p>
    <div class="stats"><${Stat} name=${t('waste.allocated')} value=${share(facts.held)} more="${count(facts.held)} / ${count(facts.gpus)} GPU" tone="good" />
      <${Stat} name=${t('waste.use')} value=${facts.use == null ? '–' : `${facts.use} %`} more=${t('waste.measured', { count: count(facts.measured) })} />
      <${Stat} name=${t('waste.idle')} value=${count(facts.idle)} tone=${facts.idle ? 'bad' : ''} more=${t('waste.idleMore')} />
      <${Stat} name=${t('waste.scattered')} value=${count(facts.partly)} more=${t('waste.scatteredMore')} /><${Stat} name=${t('map.out')} value=${count(facts.out)} tone=${facts.out ? 'bad' : ''} /></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${t('nav.waste')}><table class="list" aria-busy=${!known}><caption class="hidden">${t('nav.waste')}</caption>
      <thead><tr><th scope="col">${t('waste.owner')}</th><th scope="col" class="number">GPU</th><th scope="col">${t('waste.use')}</th><th scope="col" class="number">${t('waste.wasted')}</th></tr></thead>
      <tbody>${order.map((key) => { const row = rows[key]; return html`<tr key=${key}><th scope="row">${key === '?' ? t('map.others') : html`<a href="/jobs/${key}">${key}</a>`}</th><td class="number">${row.gpus}</td>
        <td>${row.use == null ? html`<span class="faint">${t('map.unmeasured')}</span>` : html`<span class="meter"><${Bar} label="${row.use} %" parts=${[[row.use / 100, row.use < 30 ? 'bad' : row.use < 60 ? 'wait' : 'good']]} />${row.use} %</span>`}</td>
        <td class="number"><b>${row.measured ? count(row.wasted) : '–'}</b></td></tr>`; })}</tbody></table>
      ${known && !order.length ? html`<p class="empty">${t('waste.none')}</p>` : null}</div>`;
}
