const auth = '/accounts/auth'

const providers = { acme: 'Acme ID', octo: 'Octo ID' }

// Where a person was sent last, from this tab: the way back names only what went wrong.
const asked = providers[takeAsked()] ?? 'The provider'

const messages = {
  OAUTH_PROVIDER_DENIED: `You chose not to share your ${asked} account, so nothing has changed. You can try again whenever you like.`,
  OAUTH_STATE_MISMATCH: 'That took too long or was started somewhere else. Please start again.',
  OAUTH_ACCOUNT_INACTIVE: 'This account has been switched off.',
  OAUTH_EMAIL_MISSING: `${asked} did not share an email address, and a new account here needs one. Sign in with Acme ID first, then link ${asked}.`,
  OAUTH_EMAIL_TAKEN: 'There is already an account with this email address.',
  OAUTH_EMAIL_UNVERIFIED: `There is already an account with this email address, and ${asked} does not say that the address is yours. Sign in as you did before, then link ${asked}.`,
  OAUTH_IDENTITY_TAKEN: `That ${asked} account is linked to another account here. Unlink it there first, or choose another one.`,
  OAUTH_PROVIDER_ALREADY_LINKED: `You have already linked an ${asked} account. Unlink it first to link another one.`,
  OAUTH_REGISTRATION_DISABLED: 'This app is not taking new accounts right now.',
  OAUTH_ERROR: `${asked} did not finish. Please try again.`,
  OAUTH_PROVIDER_UNAVAILABLE: `${asked} cannot be reached right now. Please try again in a moment.`,
  TOO_MANY_REQUESTS: 'That was a lot of attempts. Please wait a minute and try again.',
  SERVICE_UNAVAILABLE: 'The app is busy. Please try again in a moment.',
}
const unexpected = 'Something went wrong. Please try again.'

const element = (id) => document.getElementById(id)

element('sign-out').addEventListener('click', (event) => whileBusy(event.currentTarget, signOut))
for (const anchor of document.querySelectorAll('a[data-provider]'))
  anchor.addEventListener('click', () => rememberAsked(anchor.dataset.provider))
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

/** The library says where to go and keeps the attempt in a cookie; the way back ends on this page. */
async function link(provider) {
  const answer = await call('POST', `${auth}/oauth/${provider}/link`)
  if (!answer.ok) return showNotice(messages[answer.body?.code] ?? unexpected)
  rememberAsked(provider)
  location.assign(answer.body.authorize_url)
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
  const missing = Object.keys(providers).filter((provider) => !identities.some((identity) => identity.provider === provider))
  element('link-buttons').replaceChildren(...missing.map(linkButton))
}

function identityItem(identity) {
  const item = element('identity-template').content.firstElementChild.cloneNode(true)
  item.querySelector('.provider').textContent = providers[identity.provider] ?? identity.provider
  item.querySelector('.detail').textContent = identity.email ?? identity.subject
  item.querySelector('.linked').textContent = `Linked ${formatInstant(identity.created_at)}`
  const button = item.querySelector('button')
  button.addEventListener('click', () => whileBusy(button, () => unlink(identity.provider)))
  return item
}

function linkButton(provider) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet'
  button.textContent = `Link ${providers[provider]}`
  button.addEventListener('click', () => whileBusy(button, () => link(provider)))
  return button
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

function rememberAsked(provider) {
  sessionStorage.setItem('asked', provider)
}

function takeAsked() {
  const provider = sessionStorage.getItem('asked')
  sessionStorage.removeItem('asked')
  return provider
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
