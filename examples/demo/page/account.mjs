import { auth, call, callWithProof } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { leave } from './handover.mjs'
import { explain, formatInstant, providers, refusalOfProof } from './messages.mjs'
import { texts } from './texts.mjs'

onSubmit(element('change-password'), changePassword)

export function showAccount(me) {
  const name = me.name ?? me.email
  element('account-initial').textContent = name.charAt(0)
  element('account-name').textContent = name
  element('account-email').textContent = me.email
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

async function changePassword({ current_password, new_password }) {
  say('password-changed', null)
  const answer = await callWithProof('POST', `${auth}/password-change`, { current_password, new_password })
  if (!answer.ok) return refusalOfProof(answer)
  clear(element('change-password'))
  say('password-changed', texts.passwordChanged)
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
  dispatchEvent(new Event('account-changed'))
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
  button.addEventListener('click', () => whileBusy(button, () => work().catch(() => say('notice', texts.unreachable))))
}
