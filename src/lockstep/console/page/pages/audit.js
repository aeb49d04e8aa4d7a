// Who did what, from where.
import { html, Age, Problem, useEffect, useState } from '../ui.js';
import { request } from '../api.js';
import { route } from '../route.js';
import { t } from '../texts.js';
import { Search } from './parts.js';

export function Audit() {
  const [found, show] = useState(null);
  const [problem, setProblem] = useState(null);
  const search = route.value.query.get('q') || '';
  useEffect(() => {
    const look = () => request('GET', `/api/audit?q=${encodeURIComponent(search)}`).then((a) => { show(a); setProblem(null); }).catch(setProblem);
    look();
    const timer = setInterval(() => { if (!document.hidden) look(); }, 5000);
    return () => clearInterval(timer);
  }, [search]);
  return html`<h1>${t('nav.audit')}</h1><p class="lead">${t(found?.source === 'console' ? 'audit.console' : 'audit.server')}</p>
    <div class="filters"><${Search} label=${t('audit.search')} /></div><${Problem} of=${problem} />
    ${found ? html`<div class="scroll" tabindex="0" role="region" aria-label=${t('nav.audit')}><table class="list"><caption class="hidden">${t('nav.audit')}</caption>
      <thead><tr>${['time', 'user', 'verb', 'resource', 'object', 'status', 'from', 'client'].map((n) => html`<th scope="col">${t(`audit.${n}`)}</th>`)}</tr></thead>
      <tbody>${found.items.map((e) => html`<tr><td><${Age} since=${e.time} /></td><th scope="row">${e.user}</th><td>${e.verb}</td><td>${e.resource || '–'}</td><td class="wrap">${e.object}</td><td class=${e.status >= 400 ? 'bad' : ''}>${e.status ?? '–'}</td><td>${e.from}</td><td class="faint">${e.client || '–'}</td></tr>`)}</tbody></table>
      ${found.items.length ? null : html`<p class="empty">${t('audit.none')}</p>`}</div>` : null}`;
}
