// The frame: who is signed in, where one can go, and the page of the address.
import { html, render, useEffect } from './ui.js';
import { request, user } from './api.js';
import { capture, go, route } from './route.js';
import { disconnect, refusal, status, useTopic } from './live.js';
import { LANGUAGES, language, loadTexts, speak, t } from './texts.js';
import { SignIn } from './pages/signin.js';
import { Jobs } from './pages/jobs.js';
import { Job } from './pages/job.js';
import { Submit } from './pages/submit.js';
import { Table } from './pages/table.js';

const TABLES = ['queues', 'gangs', 'nodes', 'health', 'pools', 'services', 'datasets', 'pipelines', 'models', 'notebooks', 'teams', 'pods', 'events'];
const PAGES = [['/jobs', 'nav.jobs'], ['/submit', 'nav.submit'], ...TABLES.map((kind) => [`/${kind}`, `nav.${kind}`])];

function theme(chosen) {
  if (chosen) localStorage.setItem('theme', chosen);
  const wanted = localStorage.getItem('theme');
  if (wanted) document.documentElement.dataset.theme = wanted;
}

function dark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

async function signOut() {
  await request('DELETE', '/api/session').catch(() => {});
  disconnect();
  user.value = null;
}

function State() {
  const { facts } = useTopic('server');
  if (status.value === 'lost') return html`<div class="notice wait" role="status">${t('state.lost')}</div>`;
  if (facts.problem) return html`<div class="notice wait" role="status">${t('state.old', { why: facts.problem })}</div>`;
  if (refusal.value) return html`<div class="notice bad" role="status">${refusal.value}</div>`;
  return null;
}

function Page() {
  const { path } = route.value;
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (parts[0] === 'jobs' && parts.length === 3) return html`<${Job} key=${path} namespace=${parts[1]} name=${parts[2]} />`;
  if (parts.length === 1 && TABLES.includes(parts[0])) return html`<${Table} key=${path} kind=${parts[0]} />`;
  if (parts[0] === 'submit') return html`<${Submit} />`;
  if (parts.length === 0 || path === '/jobs') return html`<${Jobs} />`;
  return html`<h1>${t('missing.page')}</h1><p><a href="/jobs">${t('nav.jobs')}</a></p>`;
}

function Frame() {
  const here = route.value.path === '/' ? '/jobs' : route.value.path;
  return html`
    <a class="skip" href="#main">${t('nav.skip')}</a>
    <header class="side">
      <a class="brand" href="/jobs"><img src="/static/icon.svg" alt="" width="26" height="26" />Lockstep</a>
      <nav aria-label=${t('nav.pages')}>
        ${PAGES.map(([to, text]) => html`<a href=${to} aria-current=${here.startsWith(to) ? 'page' : undefined}>${t(text)}</a>`)}
      </nav>
      <div class="account">
        <span class="who" title=${user.value.user}>${user.value.user}</span>
        <div class="tools">
          <select aria-label=${t('account.language')} value=${language} onChange=${(e) => speak(e.target.value)}>
            ${Object.entries(LANGUAGES).map(([name, text]) => html`<option value=${name} selected=${name === language}>${text}</option>`)}
          </select>
          <button class="quiet" onClick=${() => theme(dark() ? 'light' : 'dark')}>${t('account.theme')}</button>
          <button class="quiet" onClick=${signOut}>${t('account.out')}</button>
        </div>
      </div>
    </header>
    <main id="main" tabindex="-1"><${State} /><${Page} /></main>`;
}

function App() {
  useEffect(() => {
    document.addEventListener('click', capture);
    return () => document.removeEventListener('click', capture);
  }, []);
  if (user.value === undefined) return null;
  return user.value ? html`<${Frame} />` : html`<${SignIn} />`;
}

async function start() {
  theme();
  await loadTexts();
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code) {
    history.replaceState(null, '', location.pathname + location.search);
    try {
      user.value = await request('POST', '/api/session', { code });
    } catch (error) {
      user.value = await request('GET', '/api/session').catch(() => null);
      if (!user.value) { const { problem } = await import('./pages/signin.js'); problem.value = error; }
    }
  } else {
    user.value = await request('GET', '/api/session').catch(() => null);
  }
  if (location.pathname === '/') go('/jobs', { replace: true });
  render(html`<${App} />`, document.getElementById('app'));
}

start();
