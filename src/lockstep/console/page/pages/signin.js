// Signing in: with a bearer token, or at the cluster's issuer.
import { html, signal, useState, Problem } from '../ui.js';
import { request, user } from '../api.js';
import { t } from '../texts.js';

export const problem = signal(null);
export const ways = signal({});

export function SignIn() {
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  async function send(event) {
    event.preventDefault();
    setBusy(true);
    problem.value = null;
    try { user.value = await request('POST', '/api/session', { token }); } catch (error) { problem.value = error; }
    setBusy(false);
  }
  return html`<main class="signin">
    <form class="card" onSubmit=${send}>
      <h1><img src="/static/icon.svg" alt="" width="32" height="32" /> Lockstep</h1>
      <${Problem} of=${problem.value} />
      ${ways.value.oidc ? html`<a class="button main" href="/oidc/start" target="_self">${t('signin.oidc')}</a><p class="faint or">${t('signin.or')}</p>` : null}
      <label>${t('signin.token')}
        <input type="password" name="token" autocomplete="off" required value=${token} onInput=${(e) => setToken(e.target.value)} />
      </label>
      <button class=${ways.value.oidc ? '' : 'main'} disabled=${busy}>${t('signin.go')}</button>
      <p class="faint">${t('signin.hint')} <code>lockstep console</code></p>
    </form>
  </main>`;
}
