import { showAccount, showIdentities } from './account.mjs'
import { auth, call, send, sendInTurn } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { leave, take } from './handover.mjs'
import { explain, providers, refusal, unexpected, unreachable } from './messages.mjs'

const arrivals = {
  activated: 'Your account is active, and you are signed in.',
  reset: 'Your new password is set, and you are signed in. Every other browser is signed out.',
}

onSubmit(element('login'), logIn)
element('sign-out').addEventListener('click', (event) => whileBusy(event.currentTarget, signOut))
for (const anchor of document.querySelectorAll('a[data-provider]'))
  anchor.addEventListener('click', () => leave('asked', anchor.dataset.provider))
// A page brought back by the browser's Back button may be older than the session it shows.
addEventListener('pageshow', (event) => event.persisted && show())
addEventListener('unlinked', () => show())

showRedirectError()
say('done', arrivals[take('arrival')])
show()

async function show() {
  try {
    const me = await call('GET', `${auth}/me`)
    const [identities, hello] = await Promise.all([me.ok ? send('GET', `${auth}/oauth/accounts`) : null, send('GET', '/api/hello')])
    if (me.ok) showAccount(me.body)
    if (identities?.ok) showIdentities(identities.body)
    showHello(hello)
    showOnly(me.ok ? ['account', 'identities', 'password', 'guarded', 'sign-out'] : ['signed-out', 'guarded', 'ways'])
    if (me.sessionEnded) say('notice', 'You are not signed in any more: your password was changed, or the session came to its end.')
    if (!me.ok && me.status !== 401) say('notice', explain(me.body ?? {}))
  } catch {
    say('notice', unreachable)
  }
}

async function logIn({ email, password }) {
  say('notice', null)
  const answer = await sendInTurn('POST', `${auth}/login`, { email, password })
  // One sentence for a wrong password, an unknown address and an account that waits for its activation: the app does not say which.
  const UNAUTHORIZED = 'That email and password do not open an account. Signed up just now? Then open the link in your mail first.'
  if (!answer.ok) return refusal(answer, { own: { UNAUTHORIZED } })
  clear(element('login'))
  await show()
  element('account-name').focus()
}

async function signOut() {
  const answer = await sendInTurn('POST', `${auth}/logout`).catch(() => null)
  say('done', null)
  say('notice', answer?.ok ? null : answer ? unexpected : unreachable)
  if (!answer?.ok) return
  await show()
  element('sign-in-title').focus()
}

function showHello({ ok, status, body }) {
  element('hello-status').textContent = `${status} ${ok ? 'OK' : (body?.code ?? '')}`
  element('hello-status').className = ok ? 'good' : 'refused'
  element('hello-body').textContent = JSON.stringify(body, null, 2)
}

/** The library sends people back to this page with `?error=CODE`; the address bar need not keep it. */
function showRedirectError() {
  const code = new URLSearchParams(location.search).get('error')
  // Where this tab sent the person last.
  const provider = providers[take('asked')]
  if (!code) return
  say('notice', explain({ code }, provider))
  history.replaceState(null, '', location.pathname)
}

function showOnly(visible) {
  for (const id of ['signed-out', 'ways', 'account', 'identities', 'password', 'guarded', 'sign-out'])
    element(id).hidden = !visible.includes(id)
}
