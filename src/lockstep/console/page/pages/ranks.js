// Ranks by time as a heat map of their speed: who lags is seen as a dark row.
import { html, Barred, count, useEffect, useRef, useState } from '../ui.js';
import { useTopic } from '../live.js';
import { t } from '../texts.js';

const EVERY = 2000; // milliseconds of one column
const COLUMNS = 120;
const LAGS = 2; // steps behind the first, from which on a rank is called a straggler

/** Steps that each rank made within each column, from what was seen since the page was opened. */
function useSpeeds(order, rows) {
  const kept = useRef({ steps: {}, columns: [] });
  const [version, bump] = useState(0);
  const latest = useRef({ order, rows });
  latest.current = { order, rows };
  useEffect(() => {
    const timer = setInterval(() => {
      const at = kept.current;
      const column = {};
      for (const name of latest.current.order) {
        const step = latest.current.rows[name]?.step;
        if (step === null || step === undefined) continue;
        // After a restart steps begin anew: no speed is told for that column.
        if (name in at.steps && step >= at.steps[name]) column[name] = step - at.steps[name];
        at.steps[name] = step;
      }
      at.columns = [...at.columns, column].slice(-COLUMNS);
      bump((n) => n + 1);
    }, EVERY);
    return () => clearInterval(timer);
  }, []);
  return [kept.current.columns, version];
}

function Heat({ order, columns, version }) {
  const canvas = useRef(null);
  useEffect(() => {
    const at = canvas.current;
    if (!at) return;
    const high = Math.max(4, Math.min(18, 360 / Math.max(1, order.length)));
    at.width = COLUMNS * 6;
    at.height = order.length * high;
    const context = at.getContext('2d');
    context.clearRect(0, 0, at.width, at.height);
    const best = Math.max(1, ...columns.flatMap((column) => Object.values(column)));
    columns.forEach((column, x) => order.forEach((name, y) => {
      if (!(name in column)) return;
      context.fillStyle = `hsl(${Math.round((column[name] / best) * 130)} 60% 45%)`;
      context.fillRect((COLUMNS - columns.length + x) * 6, y * high, 5, high - 1);
    }));
  }, [order, version]);
  return html`<canvas class="heat" ref=${canvas} role="img" aria-label=${t('ranks.heat')}></canvas>`;
}

export function Ranks({ namespace, job }) {
  const { facts, order, rows, known } = useTopic(`ranks/${namespace}/${job}`);
  const [columns, version] = useSpeeds(order, rows);
  if (facts.forbidden) return html`<${Barred} facts=${facts} title="" />`;
  if (known && !order.length) return html`<p class="empty">${t('ranks.none')}</p>`;
  return html`<p class="faint">${t('ranks.about')}</p><div class="ranks"><${Heat} order=${order} columns=${columns} version=${version} /></div>
    <div class="scroll" tabindex="0" role="region" aria-label=${t('job.ranks')}><table class="list"><caption class="hidden">${t('job.ranks')}</caption><thead><tr>${['rank', 'pod', 'node', 'state', 'step', 'lag', 'saved', 'trouble'].map((n) => html`<th scope="col" class=${['rank', 'step', 'lag', 'saved'].includes(n) ? 'number' : ''}>${t(`ranks.${n}`)}</th>`)}</tr></thead>
      <tbody>${order.map((name) => { const row = rows[name]; const lag = row.step === null ? null : facts.newest - row.step; return html`<tr key=${name} class=${lag >= LAGS ? 'lags' : ''}><td class="number">${row.rank}</td><th scope="row">${row.pod}</th><td>${row.node}</td><td>${row.state}</td><td class="number">${count(row.step)}</td><td class="number">${lag === null ? '–' : lag >= LAGS ? html`<span class="tag bad">−${lag}</span>` : lag}</td><td class="number">${count(row.saved)}</td><td class="why">${row.ended || row.trouble || ''}</td></tr>`; })}</tbody></table></div>`;
}
