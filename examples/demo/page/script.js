const auth = '/accounts/auth'

const messages = {
  OAUTH_PROVIDER_DENIED: 'You chose not to share your Acme ID account, so you are not signed in. You can try again whenever you like.',
  OAUTH_STATE_MISMATCH: 'That sign-in took too long or was started somewhere else. Please start again.',
  OAUTH_ACCOUNT_INACTIVE: 'This account has been switched off.',
  OAUTH_EMAIL_MISSING: 'Acme ID did not share an email address, and an account here needs one.',
  OAUTH_EMAIL_TAKEN: 'There is already an account with this email address.',
  OAUTH_EMAIL_UNVERIFIED: 'There is already an account with this email address, and Acme ID has not verified that it is yours.',
  OAUTH_REGISTRATION_DISABLED: 'This app is not taking new accounts right now.',
  OAUTH_ERROR: 'Acme ID did not finish the sign-in. Please try again.',
  OAUTH_PROVIDER_UNAVAILABLE: 'Acme ID cannot be reached right now. Please try again in a moment.',
  TOO_MANY_REQUESTS: 'That was a lot of attempts. Please wait a minute and try again.',
  SERVICE_UNAVAILABLE: 'The app is busy. Please try again in a moment.',
}
const unexpected = 'Something went wrong. Please try again.'

const element = (id) => document.getElementById(id)

element('sign-out').addEventListener('click', (event) => whileBusy(event.currentTarget, signOut))
// A page brought back by the browser's Back button may be older than the session it shows.
addEventListener('pageshow', (event) => event.persisted && show())

showRedirectError()
show()

async function show() {
  try {
    const me = await call('GET', `${auth}/me`)
    const [identities, hello] = await Promise.all([me.ok ? send('GET', `${auth}/oauth/accounts`) : null, send('GET', '/api/hello')])
    if (me.ok) showAccount(me.body)
    if (identities?.ok) showIdentities(identities.body)
    showHello(hello)
    showOnly(me.ok ? ['account', 'identities', 'guarded', 'sign-out'] : ['signed-out', 'guarded'])
    if (!me.ok && me.status !== 401) showNotice(messages[me.body?.code] ?? unexpected)
  } catch {
    showNotice('The app does not answer. Is it still running?')
  }
}

async function signOut() {
  const answer = await fetch(`${auth}/logout`, { method: 'POST', credentials: 'same-origin' })
  if (!answer.ok) return showNotice(unexpected)
  showNotice(null)
  await show()
}

async function unlink(provider) {
  const answer = await call('POST', `${auth}/oauth/accounts/unlink`, { provider })
  showNotice(answer.ok ? null : (messages[answer.body?.code] ?? unexpected))
  await show()
}

/** One request with the session cookies. An expired access cookie is renewed once and the request sent again. */
async function call(method, path, body) {
  const first = await send(method, path, body)
  return first.status === 401 && (await renewSession()) ? send(method, path, body) : first
}

async function send(method, path, body) {
  const request = { method, credentials: 'same-origin', headers: body ? { 'content-type': 'application/json' } : {} }
  const answer = await fetch(path, body ? { ...request, body: JSON.stringify(body) } : request)
  const text = await answer.text()
  return { ok: answer.ok, status: answer.status, body: text ? JSON.parse(text) : null }
}

/** A refresh token works once, so this browser's tabs take turns. */
function renewSession() {
  return navigator.locks.request('renew-session', async () => {
    const answer = await fetch(`${auth}/refresh`, { method: 'POST', credentials: 'same-origin' })
    return answer.ok
  })
}

function showAccount(me) {
  element('account-initial').textContent = me.name.charAt(0)
  element('account-name').textContent = me.name
  element('account-email').textContent = me.email
  element('account-id').textContent = me.id
  element('account-created').textContent = formatInstant(me.created_at)
  element('account-last-login').textContent = me.last_login_at ? formatInstant(me.last_login_at) : 'Never'
}

function showIdentities(identities) {
  element('identity-list').replaceChildren(...identities.map(identityItem))
  element('no-identities').hidden = identities.length > 0
}

function identityItem(identity) {
  const item = element('identity-template').content.firstElementChild.cloneNode(true)
  item.querySelector('.provider').textContent = identity.provider === 'acme' ? 'Acme ID' : identity.provider
  item.querySelector('.detail').textContent = identity.email ?? identity.subject
  item.querySelector('.linked').textContent = `Linked ${formatInstant(identity.created_at)}`
  const button = item.querySelector('button')
  button.addEventListener('click', () => whileBusy(button, () => unlink(identity.provider)))
  return item
}

function showHello({ ok, status, body }) {
  element('hello-status').textContent = `${status} ${ok ? 'OK' : (body?.code ?? '')}`
  element('hello-status').className = ok ? 'good' : 'refused'
  element('hello-body').textContent = JSON.stringify(body, null, 2)
}

/** The library sends people back to this page with `?error=CODE`; the address bar need not keep it. */
function showRedirectError() {
  const code = new URLSearchParams(location.search).get('error')
  if (!code) return
  showNotice(messages[code] ?? unexpected)
  history.replaceState(null, '', location.pathname)
}

function showNotice(message) {
  element('notice').textContent = message ?? ''
  element('notice').hidden = !message
}

function showOnly(visible) {
  for (const id of ['signed-out', 'account', 'identities', 'guarded', 'sign-out']) element(id).hidden = !visible.includes(id)
}

async function whileBusy(button, work) {
  button.disabled = true
  try {
    await work()
  } catch {
    showNotice('The app does not answer. Is it still running?')
  } finally {
    button.disabled = false
  }
}

function formatInstant(instant) {
  return new Date(instant).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
}
