// Lines of a log as parts with colours: escape sequences become classes, or vanish.

const SEQUENCE = /\u001b\[([0-9;:]*)m|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b[@-_]?/g;
// Control characters and marks that turn the direction of text; a log must not reorder the page.
const CONTROL = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function mark(code, style) {
  const n = Number(code || 0);
  if (n === 0) return {};
  if (n === 1) return { ...style, bold: true };
  if (n === 22) return { ...style, bold: false };
  if (n === 39) return { ...style, colour: '' };
  if (n >= 30 && n <= 37) return { ...style, colour: `a${n - 30}` };
  if (n >= 90 && n <= 97) return { ...style, colour: `a${n - 90} bright` };
  return style;
}

/** @param {string} line @returns {[string, string][]} texts with their classes */
export function parts(line) {
  const found = [];
  let style = {};
  let from = 0;
  const put = (text) => {
    // What a progress bar has written over itself: only the last is seen.
    const shown = text.slice(text.replace(/\r+$/, '').lastIndexOf('\r') + 1).replace(CONTROL, (c) => (c === '\r' ? '' : '\ufffd'));
    if (shown) found.push([shown, `${style.bold ? 'bold ' : ''}${style.colour || ''}`.trim()]);
  };
  for (const match of line.matchAll(SEQUENCE)) {
    put(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[1] !== undefined) for (const code of match[1].split(/[;:]/)) style = mark(code, style);
  }
  put(line.slice(from));
  return found;
}
