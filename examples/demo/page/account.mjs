import { offerVerification } from './address.mjs'
import { auth, call, callWithProof } from './api.mjs'
import { confirmed } from './confirm.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { leave } from './handover.mjs'
import { explain, formatInstant, providers, refusalOfProof } from './messages.mjs'
import { texts } from './texts.mjs'
import { home } from './way-back.mjs'

onSubmit(element('change-password'), changePassword)

export function showAccount(me) {
  const name = me.name ?? me.email
  element('account-initial').textContent = name.charAt(0)
  element('account-name').textContent = name
  element('account-email').textContent = me.email
  element('account-email').hidden = !me.name
  element('account-id').textContent = me.id
  element('account-created').textContent = formatInstant(me.created_at)
  element('account-last-login').textContent = me.last_login_at ? formatInstant(me.last_login_at) : texts.mailedLink
  // For password managers, which file the new password under it.
  element('change-username').value = me.email
}

export function showIdentities(identities) {
  element('identity-list').replaceChildren(...identities.map(identityItem))
  element('no-identities').hidden = identities.length > 0
  const missing = Object.keys(providers).filter((provider) => !identities.some((identity) => identity.provider === provider))
  element('link-buttons').replaceChildren(...missing.map(linkButton))
}

/** An account that a provider opened has no password: its first one takes no other. */
export function showPassword({ has_password }) {
  const { title, button } = has_password ? texts.changePassword : texts.firstPassword
  element('password-title').textContent = title
  element('password-send').textContent = button
  element('password-none').hidden = has_password
  element('current-password').disabled = !has_password
  element('current-password-field').hidden = !has_password
}

/** Nothing of the person before is left for the next one. */
export function clearAccount() {
  clear(element('change-password'))
  say('password-changed', null)
  sayOfIdentities(null)
}

async function changePassword({ current_password, new_password }) {
  say('password-changed', null)
  const isFirst = current_password === undefined
  const answer = isFirst
    ? await confirmed(() => callWithProof('POST', `${auth}/password/first`, { new_password }))
    : await callWithProof('POST', `${auth}/password-change`, { current_password, new_password })
  if (!answer.ok) return refusalOfProof(answer)
  clear(element('change-password'))
  say('password-changed', isFirst ? texts.passwordSet : texts.passwordChanged)
  if (isFirst) dispatchEvent(new Event('account-changed'))
}

/** The library says where to go and keeps the attempt in a cookie; the way back ends on this page. */
async function link(provider) {
  const answer = await confirmed(() => call('POST', `${auth}/oauth/${provider}/link`, home))
  sayOfIdentities(answer, provider)
  if (!answer.ok) return
  leave('asked', provider)
  location.assign(answer.body.authorize_url)
}

async function unlink(provider) {
  const answer = await confirmed(() => call('POST', `${auth}/oauth/accounts/unlink`, { provider }))
  sayOfIdentities(answer, provider)
  dispatchEvent(new Event('account-changed'))
}

/** Null: nothing was asked for. */
function sayOfIdentities(answer, provider) {
  const isRefused = answer !== null && !answer.ok
  const text = () => (answer.sessionEnded ? texts.signedOut : explain(answer.body, providers[provider]))
  say('identities-problem', isRefused ? text() : null)
  offerVerification('identities', answer ?? {})
}

function identityItem(identity) {
  const item = element('identity-template').content.firstElementChild.cloneNode(true)
  item.querySelector('.provider').textContent = providers[identity.provider] ?? identity.provider
  item.querySelector('.detail').textContent = identity.email ?? identity.subject
  item.querySelector('.linked').textContent = texts.linked(formatInstant(identity.created_at))
  onClick(item.querySelector('button'), () => unlink(identity.provider))
  return item
}

function linkButton(provider) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet'
  button.textContent = texts.link(providers[provider])
  onClick(button, () => link(provider))
  return button
}

function onClick(button, work) {
  button.addEventListener('click', () => whileBusy(button, () => work().catch(() => say('identities-problem', texts.unreachable))))
}
