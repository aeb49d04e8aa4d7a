// The texts of the page in the reader's language.

export const LANGUAGES = { en: 'English', zh: '中文' };
let texts = {};
let fallback = {};
export let language = 'en';

/** @returns {string} the language chosen before, else the browser's */
function chosen() {
  const asked = localStorage.getItem('language') || navigator.language.slice(0, 2);
  return asked in LANGUAGES ? asked : 'en';
}

async function read(name) {
  return (await fetch(`/static/texts/${name}.json`)).json();
}

export async function loadTexts() {
  language = chosen();
  fallback = await read('en');
  texts = language === 'en' ? fallback : await read(language);
  document.documentElement.lang = language;
}

export function speak(name) {
  localStorage.setItem('language', name);
  location.reload();
}

/**
 * @param {string} key
 * @param {string | Record<string, unknown>} [more] what stands where there is no text, or what
 * fills the places in braces
 */
export function t(key, more) {
  const found = texts[key] ?? fallback[key];
  if (found === undefined) return typeof more === 'string' ? more : key;
  if (!more || typeof more === 'string') return found;
  return found.replace(/\{(\w+)\}/g, (_, name) => String(more[name] ?? ''));
}
