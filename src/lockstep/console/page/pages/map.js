// The cluster from zone to GPU on a canvas: zoomed, coloured, and with a placement tried on it.
import { html, Barred, count, Problem, Stat, useEffect, useRef, useState } from '../ui.js';
import { request, user } from '../api.js';
import { useTopic } from '../live.js';
import { amend, go, route } from '../route.js';
import { t } from '../texts.js';
import { layout } from './layout.js';

export const MODES = ['use', 'owner', 'health', 'fragments', 'waste'];
const BAD = ['NotReady', 'Faulty'];

function palette() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(['card', 'ink', 'soft', 'line', 'good', 'bad', 'wait', 'accent', 'free', 'page', 'busy'].map((n) => [n, get(n)]));
}

function hue(text) {
  let sum = 7;
  for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) % 3600;
  return `hsl(${(sum * 137.5) % 360} 55% ${document.documentElement.dataset.dark ? 62 : 48}%)`;
}

const heat = (share) => `hsl(${Math.round(share * 130)} 62% 45%)`;

/** Colours of a node's GPUs as runs [colour, how many]. */
function runs(row, mode, colours, planned) {
  if (planned) return [[colours.busy, row.gpus]];
  if (mode === 'health') return [[BAD.includes(row.state) ? colours.bad : row.state === 'Ready' ? colours.good : colours.wait, row.gpus]];
  if (mode === 'waste') {
    if (!row.use) return [[colours.free, row.gpus]];
    return row.use.map((value, i) => [value === null ? colours.free : heat(value / 100), 1]);
  }
  if (mode === 'fragments') {
    const part = row.free > 0 && row.free < row.gpus;
    return row.held.map(([owner, n]) => [owner ? colours.line : part ? colours.wait : colours.good, n]);
  }
  const out = BAD.includes(row.state) || row.cordoned;
  return row.held.map(([owner, n]) => {
    if (!owner) return [out ? colours.bad : colours.free, n];
    if (mode === 'owner') return [owner === '?' ? colours.soft : hue(owner), n];
    return [colours.accent, n];
  });
}

function draw(canvas, placed, camera, mode, planned, over) {
  const context = canvas.getContext('2d');
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) { canvas.width = width * ratio; canvas.height = height * ratio; }
  const colours = palette();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colours.card;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const scale = camera.scale;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const x = (value) => (value - camera.x) * scale;
  const y = (value) => (value - camera.y) * scale;
  const seen = (box) => x(box.x + box.w) > 0 && y(box.y + box.h) > 0 && x(box.x) < width && y(box.y) < height;
  context.strokeStyle = colours.line;
  context.fillStyle = colours.soft;
  for (const group of placed.groups) {
    if (!seen(group)) continue;
    context.strokeRect(x(group.x), y(group.y), group.w * scale, group.h * scale);
    const size = Math.min(13, scale * 1.5);
    if (size >= 8) { context.font = `${size}px system-ui, sans-serif`; context.fillText(group.name, x(group.x) + 4, y(group.y) + size * 1.15, group.w * scale - 8); }
  }
  const inset = scale > 6 ? 1 : 0;
  for (const node of placed.nodes) {
    if (!seen(node)) continue;
    const { row, across } = node;
    let index = 0;
    for (const [colour, n] of runs(row, mode, colours, planned?.has(row.name))) {
      context.fillStyle = colour;
      // Runs that fill whole lines are one box where single GPUs are too small to be told apart.
      if (scale < 4 && index % across === 0 && n % across === 0) {
        context.fillRect(x(node.x), y(node.y + index / across), node.w * scale, (n / across) * scale);
        index += n;
        continue;
      }
      for (let i = 0; i < n; i++, index++) context.fillRect(x(node.x + (index % across)) + inset / 2, y(node.y + Math.floor(index / across)) + inset / 2, scale - inset, scale - inset);
    }
    if (!row.gpus) { context.fillStyle = colours.line; context.fillRect(x(node.x), y(node.y), scale, scale); }
    if (row.bad && scale > 3) for (const bad of row.bad) { context.strokeStyle = colours.bad; context.lineWidth = 2; context.strokeRect(x(node.x + (bad % across)) + 1, y(node.y + Math.floor(bad / across)) + 1, scale - 2, scale - 2); context.lineWidth = 1; }
    if (over === row.name) { context.strokeStyle = colours.ink; context.lineWidth = 2; context.strokeRect(x(node.x) - 1, y(node.y) - 1, node.w * scale + 2, node.h * scale + 2); context.lineWidth = 1; }
    if (scale > 26) { context.fillStyle = colours.ink; context.font = '11px system-ui, sans-serif'; context.fillText(row.name, x(node.x), y(node.y + node.h) + 11, node.w * scale); }
  }
}

function fitted(canvas, placed) {
  const scale = Math.min(canvas.clientWidth / (placed.w + 2), canvas.clientHeight / (placed.h + 2), 34);
  return { scale, x: placed.w / 2 - canvas.clientWidth / scale / 2, y: placed.h / 2 - canvas.clientHeight / scale / 2 };
}

function Tip({ at, node }) {
  if (!node) return null;
  const { row } = node;
  const owners = [...new Set(row.held.map(([owner]) => owner).filter(Boolean))].map((o) => (o === '?' ? t('map.others') : o));
  const use = (row.use || []).filter((v) => v !== null);
  return html`<div class="tip card" style=${{ left: `${at[0] + 14}px`, top: `${at[1] + 14}px` }}><b>${row.name}</b> <span class="faint">${row.at.filter(Boolean).join(' / ')}</span>
    <div>${t('map.tip', { held: row.gpus - row.free, gpus: row.gpus, pods: row.pods })}</div>${use.length ? html`<div>${t('map.measured', { use: Math.round(use.reduce((a, b) => a + b, 0) / use.length) })}</div>` : null}
    ${owners.length ? html`<div class="clamp">${owners.slice(0, 4).join(', ')}${owners.length > 4 ? ' …' : ''}</div>` : null}${row.state !== 'Ready' ? html`<div class="bad">${t(`phase.${row.state}`, row.state)} ${row.why || ''}</div>` : null}</div>`;
}

function Legend({ mode }) {
  const named = { use: [['accent', 'map.held'], ['free', 'map.free'], ['bad', 'map.out']], owner: [['busy', 'map.perOwner'], ['free', 'map.free'], ['soft', 'map.others']], health: [['good', 'phase.Ready'], ['wait', 'phase.Degraded'], ['bad', 'phase.Faulty']], fragments: [['good', 'map.whole'], ['wait', 'map.part'], ['line', 'map.held']], waste: [['bad', 'map.low'], ['wait', 'map.middle'], ['good', 'map.high'], ['free', 'map.unmeasured']] };
  return html`<p class="legend">${named[mode].map(([tone, text]) => html`<span><i class="dot ${tone}"></i>${t(text)}</span> `)}</p>`;
}

function WhatIf({ planned, setPlanned }) {
  const [shape, setShape] = useState({ pods: '2', gpus: '8', queue: 'default' });
  const [said, say] = useState('');
  const [problem, setProblem] = useState(null);
  const set = (name) => (e) => setShape({ ...shape, [name]: e.target.value });
  const ask = async (event) => {
    event.preventDefault();
    setProblem(null); say('…');
    try {
      const made = await request('POST', '/api/render', { form: { name: 'what-if', namespace: user.value.namespace, framework: 'plain', command: 'train', workers: shape.pods, gpus: shape.gpus, queue: shape.queue, simulated: true } });
      const found = await request('POST', '/api/what-if', { object: made.object });
      setPlanned(new Set(Object.keys(found.answers[0].nodes)));
      say(found.answers[0].lines.join('\n'));
    } catch (error) { setProblem(error); say(''); setPlanned(null); }
  };
  return html`<form class="card whatif" onSubmit=${ask}><h2>${t('map.whatIf')}</h2>
    <div class="row"><label>${t('form.workers')}<input inputmode="numeric" value=${shape.pods} onInput=${set('pods')} /></label><label>GPU<input inputmode="numeric" value=${shape.gpus} onInput=${set('gpus')} /></label><label>${t('form.queue')}<input value=${shape.queue} onInput=${set('queue')} /></label>
    <button>${t('map.try')}</button>${planned ? html`<button type="button" class="quiet" onClick=${() => { setPlanned(null); say(''); }}>${t('queue.forget')}</button>` : null}</div>
    <${Problem} of=${problem} />${said ? html`<pre class="said" role="status">${said}</pre>` : null}</form>`;
}

export function Map_() {
  const { facts, order, rows, known } = useTopic('map');
  const canvas = useRef(null);
  const state = useRef({ camera: null, placed: null, drag: null, frame: 0, shape: '', frames: 0 });
  const [over, setOver] = useState(null);
  const [planned, setPlanned] = useState(null);
  const mode = MODES.includes(route.value.query.get('colour')) ? route.value.query.get('colour') : 'use';
  const search = route.value.query.get('q') || '';
  const at = state.current;
  const paint = () => {
    if (at.frame) return;
    at.frame = requestAnimationFrame(() => {
      at.frame = 0;
      if (!canvas.current || !at.placed) return;
      at.camera ??= fitted(canvas.current, at.placed);
      draw(canvas.current, at.placed, at.camera, at.mode, at.planned, at.over);
      canvas.current.dataset.frames = String(++at.frames);
    });
  };
  Object.assign(at, { mode, planned, over: over?.node?.row.name });
  useEffect(() => {
    // Where nodes stand only changes when one comes or goes; what they hold is put into their boxes.
    const shape = order.join();
    if (at.shape !== shape) { at.shape = shape; at.placed = layout(order.map((name) => rows[name]), (facts.tiers || []).length); at.camera = null; } else if (at.placed) for (const node of at.placed.nodes) node.row = rows[node.row.name];
    paint();
  }, [order, rows]);
  useEffect(paint, [mode, planned, over]);
  useEffect(() => {
    const again = () => { at.camera = null; paint(); };
    addEventListener('resize', again);
    const watch = new MutationObserver(paint);
    watch.observe(document.documentElement, { attributes: true });
    return () => { removeEventListener('resize', again); watch.disconnect(); };
  }, []);
  useEffect(() => {
    const wheel = (e) => { e.preventDefault(); const box = canvas.current.getBoundingClientRect(); zoom(e.deltaY < 0 ? 1.2 : 1 / 1.2, e.clientX - box.left, e.clientY - box.top); };
    const target = canvas.current;
    target?.addEventListener('wheel', wheel, { passive: false });
    return () => target?.removeEventListener('wheel', wheel);
  }, [known, Boolean(facts.forbidden)]);
  useEffect(() => {
    const found = search && at.placed?.nodes.find((n) => n.row.name === search || n.row.name.includes(search));
    if (!found || !canvas.current) return;
    at.camera = { scale: 30, x: found.x + found.w / 2 - canvas.current.clientWidth / 60, y: found.y + found.h / 2 - canvas.current.clientHeight / 60 };
    setOver({ node: found, at: [canvas.current.clientWidth / 2, canvas.current.clientHeight / 2] });
  }, [search, known]);
  function zoom(factor, px, py) {
    const camera = at.camera;
    if (!camera) return;
    const scale = Math.min(60, Math.max(0.15, camera.scale * factor));
    camera.x += px / camera.scale - px / scale;
    camera.y += py / camera.scale - py / scale;
    camera.scale = scale;
    paint();
  }
  const hit = (px, py) => at.placed?.nodes.find((n) => { const { x, y, scale } = at.camera || {}; const gx = px / scale + x; const gy = py / scale + y; return gx >= n.x && gx <= n.x + n.w && gy >= n.y && gy <= n.y + n.h; });
  const point = (e) => { const box = canvas.current.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
  const move = (e) => {
    const [px, py] = point(e);
    if (at.drag) { at.camera.x -= (px - at.drag[0]) / at.camera.scale; at.camera.y -= (py - at.drag[1]) / at.camera.scale; at.moved += Math.abs(px - at.drag[0]) + Math.abs(py - at.drag[1]); at.drag = [px, py]; paint(); return; }
    const node = hit(px, py);
    if (node || over) setOver(node ? { node, at: [px, py] } : null);
  };
  const keys = (e) => {
    const step = 60 / (at.camera?.scale || 1);
    const pan = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[e.key];
    const middle = [canvas.current.clientWidth / 2, canvas.current.clientHeight / 2];
    if (pan) { at.camera.x += pan[0]; at.camera.y += pan[1]; paint(); } else if (e.key === '+' || e.key === '=') zoom(1.3, ...middle); else if (e.key === '-') zoom(1 / 1.3, ...middle); else if (e.key === '0') { at.camera = null; paint(); } else if (e.key === 'Enter' && over) go(`/nodes/${over.node.row.name}`); else return;
    e.preventDefault();
  };
  if (facts.forbidden || facts.unread) return html`<${Barred} facts=${facts} title=${t('nav.map')} />`;
  const summary = t('map.summary', { nodes: count(facts.nodes), gpus: count(facts.gpus), held: count(facts.held), free: count(facts.free), out: count(facts.out) });
  return html`<div class="head"><h1>${t('nav.map')}</h1><div class="acts"><input type="search" aria-label=${t('map.find')} placeholder=${t('map.find')} value=${search} onInput=${(e) => amend({ q: e.target.value })} /></div></div>
    <div class="stats"><${Stat} name=${t('map.held')} value="${count(facts.held)} / ${count(facts.gpus)}" tone="good" /><${Stat} name=${t('map.free')} value=${count(facts.free)} more=${facts.partly ? t('map.partly', { partly: count(facts.partly) }) : ''} /><${Stat} name=${t('map.out')} value=${count(facts.out)} tone=${facts.out ? 'bad' : ''} /><${Stat} name=${t('nav.nodes')} value=${count(facts.nodes)} /></div>
    <div class="filters"><div class="chips" role="group" aria-label=${t('map.colour')}>${MODES.map((one) => html`<button class="chip" aria-pressed=${mode === one} onClick=${() => amend({ colour: one === 'use' ? '' : one })}>${t(`map.by.${one}`)}</button>`)}</div><span class="grow"></span>
      <button aria-label=${t('map.in')} onClick=${() => zoom(1.4, canvas.current.clientWidth / 2, canvas.current.clientHeight / 2)}>+</button><button aria-label=${t('map.outwards')} onClick=${() => zoom(1 / 1.4, canvas.current.clientWidth / 2, canvas.current.clientHeight / 2)}>−</button><button onClick=${() => { at.camera = null; paint(); }}>${t('map.fit')}</button></div>
    <div class="canvas"><canvas ref=${canvas} tabindex="0" role="img" aria-label=${summary} onMouseMove=${move} onMouseLeave=${() => { setOver(null); at.drag = null; }} onMouseDown=${(e) => { at.drag = point(e); at.moved = 0; }} onMouseUp=${() => { at.drag = null; }} onClick=${(e) => { const node = at.moved < 5 && hit(...point(e)); if (node) go(`/nodes/${node.row.name}`); }} onKeyDown=${keys}></canvas><${Tip} at=${over?.at} node=${over?.node} /></div>
    <${Legend} mode=${mode} /><p class="faint">${t('map.keys')} <a href="/nodes">${t('map.asList')}</a></p>
    <${WhatIf} planned=${planned} setPlanned=${setPlanned} />`;
}
