// Requests to the console's server.
import { signal } from './vendor/signals.js';

/** Who is signed in: undefined while that is not known, null where no user is. */
export const user = signal(undefined);

export class Refusal extends Error {
  constructor(status, body) {
    super(body.message || `HTTP ${status}`);
    this.status = status;
    this.field = body.field || '';
    this.causes = body.causes || [];
    this.difference = body.difference || null;
    this.reason = body.reason || '';
    this.ways = body.ways || null;
  }
}

/**
 * @param {string} method @param {string} path @param {unknown} [body]
 * @throws {Refusal} with the server's words
 */
export async function request(method, path, body) {
  const headers = { 'X-Lockstep-Console': '1' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    throw new Refusal(0, { message: String(error.message || error) });
  }
  const text = await response.text();
  let parsed = {};
  try { parsed = text ? JSON.parse(text) : {}; } catch { parsed = { error: { message: text.slice(0, 300) } }; }
  if (response.status === 401 && path !== '/api/session') user.value = null;
  if (!response.ok) throw new Refusal(response.status, parsed.error || {});
  return parsed;
}
