// The frame: who is signed in, where one can go, and the page of the address.
import { html, render, useEffect, useState, Icon } from './ui.js';
import { request, user } from './api.js';
import { capture, go, route } from './route.js';
import { disconnect, refusal, status, useTopic } from './live.js';
import { LANGUAGES, language, loadTexts, speak, t } from './texts.js';
import { SignIn, problem, ways } from './pages/signin.js';
import { Home } from './pages/home.js';
import { Jobs } from './pages/jobs.js';
import { Job } from './pages/job.js';
import { Submit } from './pages/submit.js';
import { Table } from './pages/table.js';
import { NewObject, ObjectPage } from './pages/object.js';
import { Map_ } from './pages/map.js';
import { Queues } from './pages/queues.js';
import { Node, Nodes } from './pages/nodes.js';
import { Waste } from './pages/waste.js';
import { Cost } from './pages/cost.js';
import { Rights } from './pages/rights.js';
import { Audit } from './pages/audit.js';
import { TEMPLATES } from './pages/templates.js';

const GROUPS = [
  ['develop', ['home', 'jobs', 'submit', 'notebooks', 'environments', 'datasets', 'services', 'pipelines', 'models']],
  ['operate', ['map', 'queues', 'nodes', 'health', 'pools', 'waste', 'cost', 'prices', 'teams', 'rights', 'audit']],
  ['more', ['gangs', 'pods']],
];
const OWN = { '': Home, home: Home, jobs: Jobs, submit: Submit, map: Map_, queues: Queues, nodes: Nodes, waste: Waste, cost: Cost, rights: Rights, audit: Audit };
const TABLES = ['notebooks', 'environments', 'datasets', 'services', 'pipelines', 'models', 'health', 'pools', 'prices', 'teams', 'gangs', 'pods'];

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
  if (facts.silent) return html`<div class="notice bad" role="status">${facts.silent}</div>`;
  if (refusal.value) return html`<div class="notice bad" role="status">${refusal.value}</div>`;
  return null;
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

function Page() {
  const { path } = route.value;
  const parts = path.split('/').filter(Boolean).map(decoded);
  const [kind = '', namespace, name] = parts;
  if (parts.length <= 1 && OWN[kind]) { const Own = OWN[kind]; return html`<${Own} key=${path} />`; }
  if (parts.length === 3 && kind === 'jobs') return html`<${Job} key=${path} namespace=${namespace} name=${name} />`;
  if (parts.length === 2 && namespace === 'new' && TEMPLATES[kind]) return html`<${NewObject} key=${path} kind=${kind} />`;
  if (parts.length === 2 && kind === 'nodes') return html`<${Node} key=${path} name=${namespace} />`;
  if (TABLES.includes(kind) && parts.length === 1) return html`<${Table} key=${path} kind=${kind} />`;
  if (TABLES.includes(kind) && parts.length === 3) return html`<${ObjectPage} key=${path} kind=${kind} namespace=${namespace} name=${name} />`;
  return html`<h1>${t('missing.page')}</h1><p><a href="/">${t('nav.home')}</a></p>`;
}

function Nav({ close }) {
  const here = route.value.path.split('/')[1] || 'home';
  return html`<nav aria-label=${t('nav.pages')} onClick=${close}>${GROUPS.map(([group, names]) => html`<div class="group"><span class="group-name">${t(`nav.${group}`)}</span>
    ${names.map((name) => html`<a href=${name === 'home' ? '/' : `/${name}`} aria-current=${here === name ? 'page' : undefined}><${Icon} of=${name} />${t(`nav.${name}`)}</a>`)}</div>`)}</nav>`;
}

function Frame() {
  const [open, setOpen] = useState(false);
  const name = route.value.path.split('/').filter(Boolean);
  useEffect(() => { document.title = `${name.length > 2 ? name[2] : t(`nav.${name[0] || 'home'}`)} · Lockstep`; }, [route.value.path]);
  return html`
    <a class="skip" href="#main">${t('nav.skip')}</a>
    <header class="side ${open ? 'open' : ''}">
      <div class="top"><a class="brand" href="/"><img src="/static/icon.svg" alt="" width="26" height="26" />Lockstep</a>
        <button class="burger" aria-expanded=${open} aria-label=${t('nav.pages')} onClick=${() => setOpen(!open)}>☰</button></div>
      <${Nav} close=${() => setOpen(false)} />
      <div class="account">
        <span class="who" title=${user.value.user}>${user.value.user}</span>
        <div class="tools">
          <select aria-label=${t('account.language')} value=${language} onChange=${(e) => speak(e.target.value)}>
            ${Object.entries(LANGUAGES).map(([code, text]) => html`<option value=${code} selected=${code === language}>${text}</option>`)}
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

async function who() {
  try { return await request('GET', '/api/session'); } catch (error) { ways.value = error.ways || {}; return null; }
}

/** Go on to the notebook that the address names, as links of `lockstep dev open` do. */
async function onward() {
  const [first, namespace, notebook] = location.pathname.split('/').filter(Boolean).map(decoded);
  if (first !== 'open' || !notebook || !user.value) return false;
  try {
    const { url } = await request('POST', '/api/apps', { namespace, notebook });
    location.replace(url);
    return true;
  } catch (error) {
    refusal.value = error.message;
    go(`/notebooks/${encodeURIComponent(namespace)}/${encodeURIComponent(notebook)}`, { replace: true });
    return false;
  }
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
      user.value = await who();
      if (!user.value) problem.value = error;
    }
  } else {
    user.value = await who();
  }
  if (await onward()) return;
  render(html`<${App} />`, document.getElementById('app'));
}

start();
