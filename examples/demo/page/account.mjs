import { auth, call, renewSession, send } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { leave } from './handover.mjs'
import { explain, providers, refusal, unreachable } from './messages.mjs'

onSubmit(element('change-password'), changePassword)

export function showAccount(me) {
  const name = me.name ?? me.email
  element('account-initial').textContent = name.charAt(0)
  element('account-name').textContent = name
  element('account-email').textContent = me.email
  element('account-id').textContent = me.id
  element('account-created').textContent = formatInstant(me.created_at)
  element('account-last-login').textContent = me.last_login_at ? formatInstant(me.last_login_at) : 'By a mailed link'
  // For password managers, which file the new password under it.
  element('change-username').value = me.email
}

export function showIdentities(identities) {
  element('identity-list').replaceChildren(...identities.map(identityItem))
  element('no-identities').hidden = identities.length > 0
  const missing = Object.keys(providers).filter((provider) => !identities.some((identity) => identity.provider === provider))
  element('link-buttons').replaceChildren(...missing.map(linkButton))
}

async function changePassword({ current_password, new_password }) {
  say('password-changed', null)
  // First, so that a 401 below is about the password alone: sent again by mistake, it would count as a second wrong one.
  const session = await renewSession()
  if (session.status === 401) return { field: null, text: 'You are not signed in any more. Please sign in again.' }
  if (!session.ok) return refusal(session)
  const answer = await send('POST', `${auth}/password-change`, { current_password, new_password })
  if (answer.status === 401) return { field: 'current_password', text: 'This is not your current password.' }
  if (!answer.ok) return refusal(answer, { passwordField: 'new_password' })
  clear(element('change-password'))
  say('password-changed', 'Your password is changed. This browser stays signed in; every other one is signed out within a minute.')
}

/** The library says where to go and keeps the attempt in a cookie; the way back ends on this page. */
async function link(provider) {
  const answer = await call('POST', `${auth}/oauth/${provider}/link`)
  if (!answer.ok) return say('notice', explain(answer.body, providers[provider]))
  leave('asked', provider)
  location.assign(answer.body.authorize_url)
}

async function unlink(provider) {
  const answer = await call('POST', `${auth}/oauth/accounts/unlink`, { provider })
  say('notice', answer.ok ? null : explain(answer.body, providers[provider]))
  dispatchEvent(new Event('unlinked'))
}

function identityItem(identity) {
  const item = element('identity-template').content.firstElementChild.cloneNode(true)
  item.querySelector('.provider').textContent = providers[identity.provider] ?? identity.provider
  item.querySelector('.detail').textContent = identity.email ?? identity.subject
  item.querySelector('.linked').textContent = `Linked ${formatInstant(identity.created_at)}`
  onClick(item.querySelector('button'), () => unlink(identity.provider))
  return item
}

function linkButton(provider) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet'
  button.textContent = `Link ${providers[provider]}`
  onClick(button, () => link(provider))
  return button
}

function onClick(button, work) {
  button.addEventListener('click', () => whileBusy(button, () => work().catch(() => say('notice', unreachable))))
}

function formatInstant(instant) {
  return new Date(instant).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
}
