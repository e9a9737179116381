import { clearAccount, showAccount, showIdentities, showPassword } from './account.mjs'
import { clearAddress, showAddress } from './address.mjs'
import { auth, call, delivery, renewSession, send, sendInTurn } from './api.mjs'
import { element, say, whileBusy } from './form.mjs'
import { leave, take } from './handover.mjs'
import { explain, providers } from './messages.mjs'
import { clearProtection, showProtection } from './protection.mjs'
import { askForCode, isChallenged, serveSignIn } from './sign-in.mjs'
import { texts } from './texts.mjs'
import { redeemTicket, ticketAddress } from './ticket.mjs'
import { cameFrom, goBack, redeemCode, signInAt } from './way-back.mjs'

const arrivals = {
  activated: texts.activated,
  activated_without_password: texts.activatedWithoutPassword,
  reset: texts.reset,
  reset_challenged: texts.resetChallenged,
}
const forPeople = ['delivery', 'account', 'identities', 'address', 'password', 'protection', 'guarded', 'sign-out']
const forStrangers = ['delivery', 'signed-out', 'guarded', 'ways']
const forChallenged = ['delivery', 'challenge', 'guarded', 'ways']

serveSignIn(show)
element('sign-out').addEventListener('click', (event) => whileBusy(event.currentTarget, signOut))
for (const anchor of document.querySelectorAll('a[data-provider]'))
  anchor.addEventListener('click', (event) => continueWith(event, anchor.dataset.provider))
for (const anchor of document.querySelectorAll('a[data-delivery]')) {
  if (anchor.dataset.delivery === delivery) anchor.setAttribute('aria-current', 'true')
  anchor.addEventListener('click', (event) => changeDelivery(event, anchor.href))
}
element('delivery-text').textContent = texts.deliveries[delivery]
// A page brought back by the browser's Back button may be older than the session it shows.
addEventListener('pageshow', (event) => event.persisted && show())
addEventListener('account-changed', () => show())

say('done', cameFrom ? texts.signInFirst : arrivals[take('arrival')])
showWayBack()
arrive(take('challenge'))

/** `challenge`: of a page whose link was a right first step. */
async function arrive(challenge) {
  if (challenge) return askForCode(challenge, show)
  const login = await redeemCode().catch(() => null)
  if (login?.body?.mfa_required) return askForCode(login.body.mfa_token, show)
  if (login?.ok && goBack(login.page)) return
  if (login && !login.ok) say('notice', explain(login.body))
  await redeemTicket()
  await show()
}

async function show() {
  try {
    const me = await call('GET', `${auth}/me`)
    const [identities, account, hello] = await Promise.all([
      me.ok ? send('GET', `${auth}/oauth/accounts`) : null,
      me.ok ? send('GET', '/api/account') : null,
      greeting(me),
    ])
    if (me.ok) showAccount(me.body)
    if (identities?.ok) showIdentities(identities.body)
    if (identities?.ok && account?.ok) showAddress(account.body, identities.body)
    if (account?.ok) showPassword(account.body)
    if (account?.ok) showProtection(me.body, account.body)
    if (!me.ok) clearProtection()
    showHello(hello)
    showOnly(me.ok ? forPeople : isChallenged() ? forChallenged : forStrangers)
    if (me.sessionEnded) say('notice', texts.sessionEnded)
    if (!me.ok && me.status !== 401) say('notice', explain(me.body ?? {}))
  } catch {
    say('notice', texts.unreachable)
  }
}

async function continueWith(event, provider) {
  event.preventDefault()
  leave('asked', provider)
  await signInAt(provider)
}

/** Nobody stays signed in by what the app no longer looks at. */
async function changeDelivery(event, address) {
  event.preventDefault()
  await sendInTurn('POST', `${auth}/logout`).catch(() => null)
  location.assign(address)
}

async function signOut() {
  const answer = await sendInTurn('POST', `${auth}/logout`).catch(() => null)
  say('done', null)
  say('notice', answer?.ok ? null : answer ? texts.unexpected : texts.unreachable)
  if (!answer?.ok) return
  clearAccount()
  clearAddress()
  clearProtection()
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
function showWayBack() {
  const query = new URLSearchParams(location.search)
  const code = query.get('error')
  // Where this tab sent the person last, and what for.
  const [provider, purpose] = [providers[take('asked')], take('purpose')]
  if (query.has('ticket')) history.replaceState(null, '', ticketAddress(purpose, query.get('ticket')))
  const [{ type }] = performance.getEntriesByType('navigation')
  if (!code && purpose === 'confirm' && !location.hash && type === 'navigate') say('done', texts.confirmedIt)
  if (!code) return
  say('notice', explain({ code }, provider))
  history.replaceState(null, '', location.pathname)
}

function showOnly(visible) {
  for (const id of new Set([...forPeople, ...forStrangers, ...forChallenged])) element(id).hidden = !visible.includes(id)
}
