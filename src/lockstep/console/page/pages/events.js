// What was told of an object.
import { html, Age, Badge } from '../ui.js';
import { t } from '../texts.js';

export function Events({ events }) {
  if (!events.length) return html`<p class="empty">${t('job.noEvents')}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t('job.events')}><table class="list events">
    <caption class="hidden">${t('job.events')}</caption>
    <thead><tr>${['seen', 'type', 'reason', 'object', 'message'].map((n) => html`<th scope="col">${t(`event.${n}`)}</th>`)}</tr></thead>
    <tbody>${events.map((e) => html`<tr>
      <td><${Age} since=${e.seen} />${e.count > 1 ? html` <span class="faint">×${e.count}</span>` : null}</td>
      <td><${Badge} of=${e.type} /></td><td>${e.reason}</td><td>${e.object}</td><td class="message">${e.message}</td></tr>`)}</tbody>
  </table></div>`;
}
