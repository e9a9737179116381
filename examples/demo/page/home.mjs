import { showAccount, showIdentities } from './account.mjs'
import { clearAddress, showAddress } from './address.mjs'
import { auth, call, renewSession, send, sendInTurn } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { leave, take } from './handover.mjs'
import { explain, providers, refusal } from './messages.mjs'
import { texts } from './texts.mjs'

const arrivals = { activated: texts.activated, reset: texts.reset }

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
    const [identities, address, hello] = await Promise.all([
      me.ok ? send('GET', `${auth}/oauth/accounts`) : null,
      me.ok ? send('GET', '/api/address') : null,
      greeting(me),
    ])
    if (me.ok) showAccount(me.body)
    if (identities?.ok) showIdentities(identities.body)
    if (identities?.ok && address?.ok) showAddress(address.body, identities.body)
    showHello(hello)
    showOnly(me.ok ? ['account', 'identities', 'address', 'password', 'guarded', 'sign-out'] : ['signed-out', 'guarded', 'ways'])
    if (me.sessionEnded) say('notice', texts.sessionEnded)
    if (!me.ok && me.status !== 401) say('notice', explain(me.body ?? {}))
  } catch {
    say('notice', texts.unreachable)
  }
}

async function logIn({ email, password }) {
  say('notice', null)
  const answer = await sendInTurn('POST', `${auth}/login`, { email, password })
  if (!answer.ok) return refusal(answer, { own: { UNAUTHORIZED: texts.notLoggedIn } })
  clear(element('login'))
  await show()
  element('account-name').focus()
}

async function signOut() {
  const answer = await sendInTurn('POST', `${auth}/logout`).catch(() => null)
  say('done', null)
  say('notice', answer?.ok ? null : answer ? texts.unexpected : texts.unreachable)
  if (!answer?.ok) return
  clearAddress()
  await show()
  element('sign-in-title').focus()
}

/** An access token says the address it was made for: after a change of it, one from before it is renewed. */
async function greeting(me) {
  const hello = await send('GET', '/api/hello')
  if (!me.ok || !hello.ok || hello.body.email === me.body.email) return hello
  await renewSession()
  return send('GET', '/api/hello')
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
  for (const id of ['signed-out', 'ways', 'account', 'identities', 'address', 'password', 'guarded', 'sign-out'])
    element(id).hidden = !visible.includes(id)
}
