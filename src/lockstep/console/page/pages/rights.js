// What the user may do with each kind, as the API server says it.
import { html, Problem, useEffect, useState } from '../ui.js';
import { request, user } from '../api.js';
import { amend, route } from '../route.js';
import { t } from '../texts.js';

export function Rights() {
  const [found, show] = useState(null);
  const [problem, setProblem] = useState(null);
  const namespace = route.value.query.get('namespace') || user.value.namespace;
  useEffect(() => { request('GET', `/api/rights?namespace=${encodeURIComponent(namespace)}`).then((a) => { show(a); setProblem(null); }).catch(setProblem); }, [namespace]);
  return html`<h1>${t('nav.rights')}</h1><p class="lead">${t('about.rights', { user: user.value.user })}</p>
    <div class="filters"><label>${t('column.namespace')}<input value=${namespace} onChange=${(e) => amend({ namespace: e.target.value.trim() })} /></label><span class="grow"></span><a class="button" href="/teams">${t('nav.teams')}</a></div>
    <${Problem} of=${problem} />
    ${found ? html`<div class="scroll" tabindex="0" role="region" aria-label=${t('nav.rights')}><table class="list"><caption class="hidden">${t('nav.rights')}</caption>
      <thead><tr><th scope="col">${t('rights.kind')}</th><th scope="col">${t('rights.resource')}</th>${found.verbs.map((verb) => html`<th scope="col" class="centre">${verb}</th>`)}</tr></thead>
      <tbody>${found.items.map((one) => html`<tr><th scope="row">${one.kind}</th><td><code>${one.resource}</code>${one.namespaced ? '' : html` <span class="tag">${t('rights.cluster')}</span>`}</td>${found.verbs.map((verb) => html`<td class="centre"><span class=${one.verbs[verb] ? 'yes' : 'no'}>${one.verbs[verb] ? '✓' : '–'}<span class="hidden">${t(one.verbs[verb] ? 'rights.yes' : 'rights.no')}</span></span></td>`)}</tr>`)}</tbody></table></div>` : null}`;
}
