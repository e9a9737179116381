import { auth, call, callWithProof } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { formatInstant, refusal, refusalOfProof } from './messages.mjs'
import { texts } from './texts.mjs'

element('verify-address').addEventListener('click', (event) => whileBusy(event.currentTarget, verify))
onSubmit(element('change-address'), change)

/** `confirmed_at`: when the address was last proven to be the person's; null for never. */
export function showAddress({ email, confirmed_at }, identities) {
  element('address-email').textContent = email
  element('address-state').textContent = confirmed_at ? texts.confirmed(formatInstant(confirmed_at)) : texts.unconfirmed
  const isVouchedFor = (identity) => identity.email === email && identity.email_verified === true
  element('address-advice').hidden = confirmed_at !== null || identities.every(isVouchedFor)
}

/** Nothing of the person before is left for the next one. */
export function clearAddress() {
  clear(element('change-address'))
  say('address-problem', null)
  element('address-mailed').hidden = true
}

async function verify() {
  say('address-problem', null)
  const answer = await call('POST', `${auth}/email-verify/request`).catch(() => null)
  if (answer?.ok) return sayMailed(element('address-email').textContent)
  say('address-problem', answer ? refusal(answer).text : texts.unreachable)
}

/** A taken address answers like any other, and its owner gets a mail that says so. */
async function change({ new_email, current_password }) {
  const answer = await callWithProof('POST', `${auth}/email-change/request`, { new_email, current_password })
  if (!answer.ok) return refusalOfProof(answer)
  clearAddress()
  sayMailed(new_email)
}

function sayMailed(address) {
  const sentence = element('address-mailed-template').content.cloneNode(true)
  sentence.querySelector('strong').textContent = address
  element('address-mailed').replaceChildren(sentence)
  element('address-mailed').hidden = false
}
