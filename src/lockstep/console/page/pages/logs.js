// The logs of all pods of a job as one: merged, searched, and only the visible lines drawn.
import { html, useEffect, useRef, useState } from '../ui.js';
import { useTopic } from '../live.js';
import { amend, route } from '../route.js';
import { t } from '../texts.js';
import { parts } from '../ansi.js';

const HEIGHT = 19; // pixels of a line
const SPARE = 20;

function Line({ line, pods, hue, top }) {
  const [at, pod, text] = line;
  return html`<div class="line" style=${{ top: `${top}px` }}>
    ${pods > 1 ? html`<span class="rank" data-hue=${hue}>${pod}</span>` : null}<span class="at" title=${at}>${at.slice(11, 19)}</span><bdi>${parts(text).map(([shown, style]) => (style ? html`<span class=${style}>${shown}</span>` : shown))}</bdi></div>`;
}

export function Logs({ namespace, job, pod }) {
  const words = route.value.query.get('log') || '';
  const [typed, type] = useState(words);
  const query = new URLSearchParams();
  if (pod) query.set('pod', pod);
  if (words) query.set('q', words);
  const { facts, lines } = useTopic(`logs/${namespace}/${job}?${query}`);
  const box = useRef(null);
  const [follow, setFollow] = useState(true);
  const [view, setView] = useState([0, 60]);
  useEffect(() => { const timer = setTimeout(() => amend({ log: typed }), 300); return () => clearTimeout(timer); }, [typed]);
  useEffect(() => { if (follow && box.current) { box.current.scrollTop = box.current.scrollHeight; look(); } }, [lines, follow]);
  const look = () => {
    const at = box.current;
    if (at) setView([Math.floor(at.scrollTop / HEIGHT), Math.ceil(at.clientHeight / HEIGHT)]);
  };
  const scrolled = () => {
    const at = box.current;
    setFollow(at.scrollHeight - at.scrollTop - at.clientHeight < 40);
    look();
  };
  const pods = facts.pods || [];
  const first = Math.max(0, view[0] - SPARE);
  const shown = lines.slice(first, view[0] + view[1] + SPARE);
  return html`<div class="filters"><input type="search" aria-label=${t('log.search')} placeholder=${t('log.search')} value=${typed} onInput=${(e) => type(e.target.value)} />
      <span class="faint" role="status">${t(`log.${facts.state || 'opening'}`)} ${facts.message || ''} ${facts.left ? t('log.left', { left: facts.left }) : ''}</span>
      <span class="grow"></span><span class="faint">${t('log.lines', { count: lines.length.toLocaleString() })}</span>
      <button class="chip" aria-pressed=${follow} onClick=${() => setFollow(!follow)}>${t('log.follow')}</button></div>
    <div class="log" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-label=${t('log.of', { pod: pod || job })}>
      <div class="lines" style=${{ height: `${lines.length * HEIGHT}px` }}>${shown.map((line, i) => html`<${Line} key=${first + i} line=${line} pods=${pods.length} hue=${pods.indexOf(line[1]) % 8} top=${(first + i) * HEIGHT} />`)}</div></div>`;
}
