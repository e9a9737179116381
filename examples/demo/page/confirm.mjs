/** "Confirm it is you": the app asks for it before it changes how somebody signs in, and some time after the sign-in. */
import { auth, call, callWithProof } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { leave } from './handover.mjs'
import { explain, providers, refusalOfProof } from './messages.mjs'
import { texts } from './texts.mjs'
import { home } from './way-back.mjs'

const dialog = element('confirm-it')

/** Tells the waiting request what became of the question. */
let answered = () => {}

onSubmit(element('confirm-it-form'), confirm)
element('confirm-it-cancel').addEventListener('click', () => dialog.close())
dialog.addEventListener('close', () => {
  clear(element('confirm-it-form'))
  say('confirm-it-problem', null)
  answered(false)
})

/** Sends a request. Where the app wants to know first that it is still this person, asks them and sends it again. */
export async function confirmed(send) {
  const answer = await send()
  if (answer.body?.code !== 'REAUTHENTICATION_REQUIRED') return answer
  return (await ask(answer.body.details.methods)) ? send() : answer
}

function ask(methods) {
  const isCode = !methods.includes('password') && methods.includes('otp')
  showField('confirm-it-password', methods.includes('password'))
  showField('confirm-it-code', isCode)
  element('confirm-it-form').hidden = !methods.includes('password') && !isCode
  element('confirm-it-none').hidden = methods.length > 0
  element('confirm-it-lede').hidden = methods.length === 0
  const buttons = methods.flatMap(providerButton)
  element('confirm-it-providers').replaceChildren(...buttons)
  element('confirm-it-or').hidden = buttons.length === 0 || element('confirm-it-form').hidden
  dialog.showModal()
  dialog.querySelector('input:enabled, .providers button, #confirm-it-cancel').focus()
  return new Promise((resolve) => {
    answered = resolve
  })
}

function showField(id, isShown) {
  element(id).disabled = !isShown
  element(`${id}-field`).hidden = !isShown
}

async function confirm({ current_password, code }) {
  const proof = code === undefined ? { password: current_password } : { code }
  const answer = await callWithProof('POST', `${auth}/reauthenticate`, proof)
  if (!answer.ok) return refusalOfProof(answer)
  answered(true)
  dialog.close()
}

function providerButton(method) {
  const [kind, provider] = method.split(':')
  if (kind !== 'provider') return []
  const button = Object.assign(document.createElement('button'), { type: 'button', className: 'quiet' })
  button.textContent = texts.confirmBy(providers[provider] ?? provider)
  button.addEventListener('click', () => whileBusy(button, () => goTo(provider)))
  return [button]
}

async function goTo(provider) {
  const answer = await call('POST', `${auth}/oauth/${provider}/reauthenticate`, home).catch(() => null)
  if (!answer?.ok) return say('confirm-it-problem', answer ? explain(answer.body, providers[provider]) : texts.unreachable)
  leave('asked', provider)
  leave('purpose', 'confirm')
  location.assign(answer.body.authorize_url)
}
