// Where nodes stand on the map: boxes in boxes, as the network's tiers are. Pure.

const CELL = 1; // one GPU
const GAP = { node: 0.5, box: 1.4, head: 1.1 };
const WIDE = 1.9; // how much wider than high a box is made

function tree(rows, tiers) {
  const root = { name: '', children: new Map(), nodes: [] };
  for (const row of rows) {
    let at = root;
    for (let tier = 0; tier < tiers; tier++) {
      const name = row.at[tier];
      if (!name) continue;
      if (!at.children.has(name)) at.children.set(name, { name, tier, children: new Map(), nodes: [] });
      at = at.children.get(name);
    }
    at.nodes.push(row);
  }
  return root;
}

/** Put boxes in rows beside each other so that the whole is about `WIDE` times as wide as high. */
function shelves(boxes, gap) {
  const area = boxes.reduce((sum, b) => sum + (b.w + gap) * (b.h + gap), 0);
  const width = Math.max(Math.sqrt(area * WIDE), ...boxes.map((b) => b.w));
  let x = 0;
  let y = 0;
  let high = 0;
  let wide = 0;
  for (const box of boxes) {
    if (x > 0 && x + box.w > width) { x = 0; y += high + gap; high = 0; }
    box.x = x; box.y = y;
    x += box.w + gap;
    high = Math.max(high, box.h);
    wide = Math.max(wide, x - gap);
  }
  return { w: wide, h: y + high };
}

function place(at, depth) {
  const boxes = at.nodes.map((row) => {
    const gpus = Math.max(1, row.gpus);
    const across = Math.min(gpus, Math.max(1, Math.ceil(Math.sqrt(gpus * 2))));
    return { row, across, w: across * CELL, h: Math.ceil(gpus / across) * CELL };
  });
  for (const child of [...at.children.values()].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))) boxes.push(place(child, depth + 1));
  const gap = at.children.size ? GAP.box : GAP.node;
  const size = boxes.length ? shelves(boxes, gap) : { w: 1, h: 1 };
  if (!at.name) return { ...size, boxes, name: '' };
  for (const box of boxes) { box.x += GAP.node; box.y += GAP.head; }
  return { w: Math.max(size.w + 2 * GAP.node, 6), h: size.h + GAP.head + GAP.node, boxes, name: at.name, depth };
}

/**
 * @param {object[]} rows nodes as the server tells them
 * @param {number} tiers how many of `at` are tiers of the network
 * @returns {{w: number, h: number, nodes: object[], groups: object[]}} in units of one GPU
 */
export function layout(rows, tiers) {
  const root = place(tree(rows, tiers), 0);
  const nodes = [];
  const groups = [];
  const walk = (box, x, y) => {
    if (box.row) { nodes.push({ row: box.row, x: x + box.x, y: y + box.y, across: box.across, w: box.w, h: box.h }); return; }
    if (box.name) groups.push({ name: box.name, x: x + box.x, y: y + box.y, w: box.w, h: box.h, depth: box.depth });
    for (const inner of box.boxes) walk(inner, x + (box.x || 0), y + (box.y || 0));
  };
  walk(root, 0, 0);
  return { w: root.w, h: root.h, nodes, groups };
}
