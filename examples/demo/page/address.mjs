import { auth, call, callWithProof } from './api.mjs'
import { confirmed } from './confirm.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { formatInstant, refusal, refusalOfProof } from './messages.mjs'
import { texts } from './texts.mjs'

for (const button of document.querySelectorAll('[data-verifies]'))
  button.addEventListener('click', (event) => whileBusy(event.currentTarget, verify))
onSubmit(element('change-address'), change)

/** `confirmed_at`: when the address was last proven to be the person's; null for never. */
export function showAddress({ email, confirmed_at }, identities) {
  element('address-email').textContent = email
  element('address-state').textContent = confirmed_at ? texts.confirmed(formatInstant(confirmed_at)) : texts.unconfirmed
  const isVouchedFor = (identity) => identity.email === email && identity.email_verified === true
  element('address-advice').hidden = confirmed_at !== null || identities.every(isVouchedFor)
}

/** Nothing is built on an address that nobody has confirmed: beside such a refusal stands what helps. */
export function offerVerification(card, { body } = {}) {
  element(`${card}-verify`).hidden = body?.code !== 'EMAIL_NOT_VERIFIED'
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
  element('address-title').focus()
  if (answer?.ok) return sayMailed(element('address-email').textContent)
  say('address-problem', answer ? refusal(answer).text : texts.unreachable)
}

/** A taken address answers like any other, and its owner gets a mail that says so. */
async function change({ new_email }) {
  const answer = await confirmed(() => callWithProof('POST', `${auth}/email-change/request`, { new_email }))
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
