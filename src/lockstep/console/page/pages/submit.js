// A job by form, with the object that it becomes beside it.
import { html, useEffect, useRef, useState, Problem } from '../ui.js';
import { request, user } from '../api.js';
import { go } from '../route.js';
import { t } from '../texts.js';

const DRAFT = 'draft';
const FIRST = { framework: 'pytorch', workers: '1', queue: 'default' };

function draft() {
  try { return { ...FIRST, namespace: user.value.namespace, ...JSON.parse(sessionStorage.getItem(DRAFT) || '{}') }; } catch { return { ...FIRST }; }
}

/** Fields of the object, as the API server names them, to those of the form. */
function blamed(refusal) {
  if (!refusal) return {};
  if (refusal.field) return { [refusal.field]: refusal.message };
  const found = {};
  for (const { field, message } of refusal.causes) {
    const name = { 'metadata.name': 'name', 'spec.queue': 'queue', 'spec.priorityClassName': 'priority' }[field];
    if (name) found[name] = message;
  }
  return found;
}

export function Submit() {
  const [form, setForm] = useState(draft);
  const [queues, setQueues] = useState(['default']);
  const [shown, setShown] = useState(null);
  const [refused, setRefused] = useState(null);
  const [busy, setBusy] = useState(false);
  const asked = useRef(0);
  useEffect(() => { request('GET', '/api/queues').then((a) => setQueues(a.items)).catch(() => {}); }, []);
  useEffect(() => {
    sessionStorage.setItem(DRAFT, JSON.stringify(form));
    const mine = ++asked.current;
    if (!form.command) { setShown(null); setRefused(null); return undefined; }
    const timer = setTimeout(async () => {
      try {
        const answer = await request('POST', '/api/jobs', { form, check: true });
        if (mine === asked.current) { setShown(answer.object); setRefused(null); }
      } catch (error) {
        if (mine === asked.current) setRefused(error);
      }
    }, 400);
    return () => clearTimeout(timer);
  }, [form]);
  const set = (name) => (e) => setForm((f) => ({ ...f, [name]: e.target.type === 'checkbox' ? e.target.checked : e.target.value }));
  const blame = blamed(refused);
  async function send(event) {
    event.preventDefault();
    setBusy(true);
    ++asked.current;
    try {
      const made = await request('POST', '/api/jobs', { form });
      sessionStorage.removeItem(DRAFT);
      go(`/jobs/${made.namespace}/${made.name}`);
    } catch (error) { setRefused(error); }
    setBusy(false);
  }
  const field = (name, more = {}) => html`<label class=${more.wide ? 'wide' : ''}>${t(`form.${name}`)}
    <input name=${name} value=${form[name] || ''} onInput=${set(name)} aria-invalid=${Boolean(blame[name])} aria-describedby=${blame[name] ? `${name}-error` : undefined} ...${more.attributes} />
    ${blame[name] ? html`<span class="error" id="${name}-error">${blame[name]}</span>` : null}</label>`;
  const area = (name, rows) => html`<label class="wide">${t(`form.${name}`)}
    <textarea name=${name} rows=${rows} value=${form[name] || ''} onInput=${set(name)} aria-invalid=${Boolean(blame[name])} aria-describedby=${blame[name] ? `${name}-error` : undefined} spellcheck=${false}></textarea>
    ${blame[name] ? html`<span class="error" id="${name}-error">${blame[name]}</span>` : null}</label>`;
  return html`<h1>${t('nav.submit')}</h1>
    <div class="two">
      <form class="card form" onSubmit=${send}>
        ${refused && !Object.keys(blame).length ? html`<div class="wide"><${Problem} of=${refused} /></div>` : null}
        ${field('name', { attributes: { placeholder: t('form.made'), autocomplete: 'off' } })}
        ${field('namespace')}
        <label>${t('form.framework')}<select name="framework" value=${form.framework} onChange=${set('framework')}>
          ${['pytorch', 'mpi', 'plain'].map((f) => html`<option selected=${f === form.framework}>${f}</option>`)}</select></label>
        <label>${t('form.queue')}<select name="queue" value=${form.queue} onChange=${set('queue')}>
          ${[...new Set([...queues, form.queue])].map((q) => html`<option selected=${q === form.queue}>${q}</option>`)}</select></label>
        ${field('workers', { attributes: { inputmode: 'numeric' } })}
        ${field('gpus', { attributes: { inputmode: 'numeric', placeholder: '0' } })}
        ${field('cpu', { attributes: { placeholder: '4' } })}
        ${field('memory', { attributes: { placeholder: '16Gi' } })}
        ${field('image', { wide: true, attributes: { placeholder: t('form.noImage') } })}
        ${area('command', 3)}
        ${area('environment', 2)}
        ${field('priority')}
        ${field('maxWait', { attributes: { placeholder: '2h' } })}
        <label class="check wide"><input type="checkbox" name="simulated" checked=${form.simulated === true} onChange=${set('simulated')} />${t('form.simulated')}</label>
        <div class="wide acts"><button class="main" disabled=${busy}>${t('form.send')}</button></div>
      </form>
      <section class="card"><h2>${t('form.object')}</h2>
        <p class="faint" role="status">${t(refused ? 'form.refused' : shown ? 'form.accepted' : form.command ? 'form.checking' : 'form.unfinished')}</p>
        <pre class="object" tabindex="0" aria-label=${t('form.object')}>${shown ? JSON.stringify(shown, null, 2) : ''}</pre></section>
    </div>`;
}
