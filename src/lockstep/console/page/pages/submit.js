// A job as a form, as YAML and as a script of the SDK, each following the other; tried before it is sent.
import { html, useEffect, useRef, useState, Problem, Tabs } from '../ui.js';
import { request, user } from '../api.js';
import { go, route } from '../route.js';
import { t } from '../texts.js';
import { Yaml } from './editor.js';

const DRAFT = 'draft';
const FIRST = { framework: 'pytorch', workers: '1', queue: 'default' };
const FIELDS = {
  'metadata.name': 'name', 'metadata.generateName': 'name', 'metadata.namespace': 'namespace', 'spec.queue': 'queue', 'spec.priorityClassName': 'priority', 'spec.maxWait': 'maxWait', 'spec.framework': 'framework',
};

/** What was half written outlasts a reload; a job that is cloned begins as its YAML. */
function draft() {
  if (route.value.query.get('clone')) {
    const cloned = sessionStorage.getItem('clone');
    if (cloned) { sessionStorage.removeItem('clone'); return { by: 'yaml', yaml: cloned, form: {}, sdk: '' }; }
  }
  try {
    const kept = JSON.parse(sessionStorage.getItem(DRAFT) || 'null');
    if (kept?.form) return kept;
  } catch { /* a draft that cannot be read is none */ }
  return { by: 'form', form: { ...FIRST, namespace: user.value.namespace }, yaml: '', sdk: '' };
}

/** Fields of the object, as the API server names them, to those of the form. */
function blamed(refusal) {
  if (!refusal) return {};
  if (refusal.field) return { [refusal.field]: refusal.message };
  const found = {};
  for (const { field, message } of refusal.causes) if (FIELDS[field]) found[FIELDS[field]] = message;
  return found;
}

function WhatIf({ object }) {
  const [found, show] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true); setProblem(null);
    try { show((await request('POST', '/api/what-if', { object })).answers); } catch (error) { setProblem(error); show(null); }
    setBusy(false);
  };
  return html`<section class="card whatif"><h2>${t('form.whatIf')}</h2><p class="faint">${t('form.whatIfMore')}</p>
    <button disabled=${!object || busy} onClick=${ask}>${t(busy ? 'form.asking' : 'form.ask')}</button><${Problem} of=${problem} />
    ${(found || []).map((one) => html`<pre class="said" role="status">${one.lines.join('\n')}</pre>`)}</section>`;
}

export function Submit() {
  const [said, setSaid] = useState(draft);
  const [queues, setQueues] = useState(['default']);
  const [shown, setShown] = useState(null);
  const [refused, setRefused] = useState(null);
  const [beyond, setBeyond] = useState([]);
  const [busy, setBusy] = useState(false);
  const [tab, setTab] = useState('yaml');
  const asked = useRef(0);
  const { form } = said;
  useEffect(() => { request('GET', '/api/queues').then((a) => setQueues(a.items)).catch(() => {}); }, []);
  useEffect(() => {
    sessionStorage.setItem(DRAFT, JSON.stringify(said));
    const mine = ++asked.current;
    if (said.by === 'form' && !form.command) { setShown(null); setRefused(null); return undefined; }
    const timer = setTimeout(async () => {
      try {
        const made = await request('POST', '/api/render', { [said.by]: said[said.by] });
        if (mine !== asked.current) return;
        // The one that is being written stays as it is; the others follow it.
        setSaid((now) => (now.by === said.by && now[now.by] === said[said.by] ? { by: said.by, form: said.by === 'form' ? now.form : made.form, yaml: said.by === 'yaml' ? now.yaml : made.yaml, sdk: said.by === 'sdk' ? now.sdk : made.sdk, quiet: true } : now));
        setBeyond(made.beyond);
        await request('POST', '/api/objects', { object: made.object, check: true });
        if (mine === asked.current) { setShown(made.object); setRefused(null); }
      } catch (error) {
        if (mine === asked.current) { setRefused(error); setShown(null); }
      }
    }, 350);
    return () => clearTimeout(timer);
  }, [said.by, said[said.by]]);
  const set = (name) => (e) => { const value = e.target.type === 'checkbox' ? e.target.checked : e.target.value; setSaid((s) => ({ ...s, by: 'form', form: { ...s.form, [name]: value } })); };
  const write = (by) => (text) => setSaid((s) => ({ ...s, by, [by]: text }));
  const blame = blamed(refused);
  async function send(event) {
    event.preventDefault();
    setBusy(true);
    ++asked.current;
    try {
      const { object } = await request('POST', '/api/render', { [said.by]: said[said.by] });
      const made = await request('POST', '/api/objects', { object });
      sessionStorage.removeItem(DRAFT);
      go(`/jobs/${made.namespace}/${made.name}`);
    } catch (error) { setRefused(error); }
    setBusy(false);
  }
  const error = (name) => (blame[name] ? html`<span class="error" id="${name}-error">${blame[name]}</span>` : null);
  const aria = (name) => ({ 'aria-invalid': Boolean(blame[name]), 'aria-describedby': blame[name] ? `${name}-error` : undefined });
  const field = (name, more = {}) => html`<div class=${more.wide ? 'wide' : ''}><label>${t(`form.${name}`)}
    <input name=${name} value=${form[name] || ''} onInput=${set(name)} ...${aria(name)} ...${more.attributes} /></label>${error(name)}</div>`;
  const area = (name, rows) => html`<div class="wide"><label>${t(`form.${name}`)}
    <textarea name=${name} rows=${rows} value=${form[name] || ''} onInput=${set(name)} spellcheck=${false} ...${aria(name)}></textarea></label>${error(name)}</div>`;
  const state = refused ? 'refused' : shown ? 'accepted' : form.command || said.by !== 'form' ? 'checking' : 'unfinished';
  return html`<h1>${t('nav.submit')}</h1>
    <div class="two">
      <form class="card form" onSubmit=${send}>
        ${refused && !Object.keys(blame).length ? html`<div class="wide"><${Problem} of=${refused} /></div>` : null}
        ${beyond.length ? html`<p class="notice wait wide">${t('form.beyond', { paths: beyond.join(', ') })}</p>` : null}
        ${field('name', { attributes: { placeholder: t('form.made'), autocomplete: 'off' } })}
        ${field('namespace')}
        <label>${t('form.framework')}<select name="framework" value=${form.framework} onChange=${set('framework')}>
          ${[...new Set(['pytorch', 'mpi', 'plain', form.framework || 'pytorch'])].map((f) => html`<option selected=${f === form.framework}>${f}</option>`)}</select></label>
        <div><label>${t('form.queue')}<select name="queue" value=${form.queue} onChange=${set('queue')}>
          ${[...new Set([...queues, form.queue || 'default'])].map((q) => html`<option selected=${q === form.queue}>${q}</option>`)}</select></label>${error('queue')}</div>
        ${field('workers', { attributes: { inputmode: 'numeric' } })}
        ${field('gpus', { attributes: { inputmode: 'numeric', placeholder: '0' } })}
        ${field('fewest', { attributes: { inputmode: 'numeric', placeholder: t('form.rigid') } })}
        ${field('most', { attributes: { inputmode: 'numeric', placeholder: t('form.rigid') } })}
        ${field('cpu', { attributes: { placeholder: '4' } })}
        ${field('memory', { attributes: { placeholder: '16Gi' } })}
        ${field('image', { wide: true, attributes: { placeholder: t('form.noImage') } })}
        ${area('command', 3)}
        ${area('environment', 2)}
        ${field('priority')}
        ${field('maxWait', { attributes: { placeholder: '2h' } })}
        <label class="check wide"><input type="checkbox" name="simulated" checked=${form.simulated === true} onChange=${set('simulated')} />${t('form.simulated')}</label>
        <div class="wide acts"><span class="faint grow" role="status">${t(`form.${state}`)}</span><button class="main" disabled=${busy}>${t('form.send')}</button></div>
      </form>
      <div><section class="card"><${Tabs} label=${t('form.object')} names=${[['yaml', 'YAML'], ['sdk', t('form.sdk')]]} at=${tab} choose=${setTab} />
        ${tab === 'yaml' ? html`<${Yaml} value=${said.yaml} change=${write('yaml')} label="YAML" invalid=${said.by === 'yaml' && refused} rows=${26} />` : html`<${Yaml} value=${said.sdk} change=${write('sdk')} label=${t('form.sdk')} invalid=${said.by === 'sdk' && refused} rows=${26} />`}
        <p class="faint">${t('form.follow')}</p></section>
      <${WhatIf} object=${shown} /></div>
    </div>`;
}
