// An object as YAML, to change it: checked by the API server, and a conflict shown as a difference.
import { html, useEffect, useState, Problem } from '../ui.js';
import { request } from '../api.js';
import { t } from '../texts.js';

/** A text with numbered lines' feel: Tab indents, Escape lets go of the Tab key. */
export function Yaml({ value, change, label, invalid, rows = 24 }) {
  const keys = (event) => {
    if (event.key !== 'Tab' || event.shiftKey || event.currentTarget.dataset.free) return;
    event.preventDefault();
    const at = event.currentTarget;
    const { selectionStart: from, selectionEnd: to } = at;
    at.setRangeText('  ', from, to, 'end');
    change(at.value);
  };
  const free = (event) => { if (event.key === 'Escape') event.currentTarget.dataset.free = 'yes'; };
  return html`<textarea class="yaml" rows=${rows} spellcheck=${false} aria-label=${label} aria-invalid=${Boolean(invalid)} value=${value}
    aria-description=${t('edit.keys')} onInput=${(e) => change(e.target.value)} onKeyDown=${(e) => { free(e); keys(e); }}
    onBlur=${(e) => { delete e.target.dataset.free; }}></textarea><small class="faint">${t('edit.keys')}</small>`;
}

export function ObjectYaml({ word, namespace, name }) {
  const path = `/api/objects/${word}/${namespace || '-'}/${name}`;
  const [text, setText] = useState(null);
  const [was, setWas] = useState('');
  const [problem, setProblem] = useState(null);
  const [said, say] = useState('');
  const read = async () => {
    try { const found = await request('GET', path); setText(found.yaml); setWas(found.yaml); setProblem(null); } catch (error) { setProblem(error); }
  };
  useEffect(() => { read(); }, [path]);
  const send = async (check) => {
    say('');
    try {
      const made = await request('PUT', path, { yaml: text, check });
      setProblem(null);
      if (!check) { setText(made.yaml); setWas(made.yaml); }
      say(t(check ? 'edit.accepted' : 'edit.saved'));
    } catch (error) { setProblem(error); }
  };
  if (text === null) return html`<${Problem} of=${problem} />`;
  return html`<${Problem} of=${problem} />
    <${Yaml} value=${text} change=${(value) => { setText(value); say(''); }} label=${t('edit.yaml')} invalid=${problem} />
    <div class="acts left"><button class="main" disabled=${text === was} onClick=${() => send(false)}>${t('edit.save')}</button>
      <button disabled=${text === was} onClick=${() => send(true)}>${t('edit.check')}</button>
      <button disabled=${text === was && !problem} onClick=${read}>${t('edit.again')}</button>
      <span class="faint" role="status">${said}</span></div>`;
}
