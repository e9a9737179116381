/** The second factor of the account: setting it up in three steps, new recovery codes, and turning it off. */
import { offerVerification } from './address.mjs'
import { auth, call, callWithProof } from './api.mjs'
import { confirmed } from './confirm.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { refusal, refusalOfProof } from './messages.mjs'
import { texts } from './texts.mjs'

const parts = ['off', 'scan', 'codes', 'confirm', 'on']
const forms = ['confirm-form', 'new-codes-form', 'disable-form']
const steps = ['scan', 'codes', 'confirm']

/** Whose account it is, and which part is shown; null before that is known. */
let owner = null
let part = null
/** Where the recovery codes lead on to. */
let afterCodes = 'confirm'

onClick('enrol', enrol)
onClick('to-codes', () => go('codes'))
onClick('codes-copy', copyCodes)
onClick('codes-kept', keptCodes)
onClick('back-to-scan', () => go('scan'))
onClick('enrol-cancel', () => leave('off'))
onSubmit(element('confirm-form'), confirm)
onSubmit(element('new-codes-form'), newCodes)
onSubmit(element('disable-form'), disable)

/** Whoever is in the middle of a step stays there. */
export function showProtection({ id, mfa_enabled }, { has_password }) {
  if (owner !== id) clearProtection()
  owner = id
  element('disable-password').disabled = !has_password
  element('disable-password-field').hidden = !has_password
  if (!steps.includes(part)) show(mfa_enabled ? 'on' : 'off')
}

/** Nothing of the person before is left for the next one, and no secret stays on a page that needs it no more. */
export function clearProtection() {
  part = null
  forget()
  for (const id of ['protection-problem', 'protection-done']) say(id, null)
  offerVerification('protection')
}

async function enrol() {
  const answer = await confirmed(() => call('POST', `${auth}/mfa/enroll`, {}))
  if (!answer.ok) return refuse(answer)
  const { secret, provisioning_uri, qr_svg, recovery_codes } = answer.body
  element('qr').replaceChildren(qrCode(qr_svg))
  element('secret').textContent = secret.match(/.{1,4}/g).join(' ')
  element('open-app').href = provisioning_uri
  showCodes(recovery_codes, 'confirm')
  go('scan')
}

/** A code of the app makes it count. Every session ends by it; this browser is answered with a new one. */
async function confirm({ code }) {
  const answer = await callWithProof('POST', `${auth}/mfa/confirm`, { code })
  if (!answer.ok) return refuseForm(answer, 'confirm-form')
  leave('on', texts.protected)
}

async function newCodes({ code }) {
  const answer = await confirmed(() => callWithProof('POST', `${auth}/mfa/recovery-codes`, { code }))
  if (!answer.ok) return refuseForm(answer, 'new-codes-form')
  showCodes(answer.body.recovery_codes, 'on')
  go('codes')
}

async function disable({ current_password, code }) {
  const answer = await confirmed(() => callWithProof('POST', `${auth}/mfa/disable`, { password: current_password, code }))
  if (!answer.ok) return refuseForm(answer, 'disable-form')
  leave('off', texts.unprotected)
}

async function copyCodes() {
  const codes = [...element('recovery-codes').children].map((item) => item.textContent).join('\n')
  const isCopied = await navigator.clipboard.writeText(codes).then(
    () => true,
    () => false, // not every browser lets a page do so
  )
  element('codes-copied').classList.toggle('done', isCopied)
  say('codes-copied', isCopied ? texts.copied : texts.notCopied)
}

function keptCodes() {
  if (afterCodes === 'confirm') return go('confirm')
  leave('on', texts.newCodes)
}

function showCodes(codes, next) {
  afterCodes = next
  element('codes-step').hidden = next !== 'confirm'
  element('recovery-codes').replaceChildren(...codes.map(codeItem))
}

function codeItem(code) {
  const item = document.createElement('li')
  item.append(Object.assign(document.createElement('code'), { textContent: code }))
  return item
}

/** As nodes of the page, so that its policy need not allow images from `data:`. */
function qrCode(svg) {
  const drawing = document.adoptNode(new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement)
  drawing.setAttribute('role', 'img')
  drawing.setAttribute('aria-label', texts.qrCode)
  return drawing
}

/** To a step, where a screen reader goes on. */
function go(step) {
  for (const id of ['protection-problem', 'protection-done', 'codes-copied']) say(id, null)
  offerVerification('protection')
  show(step)
  element(`protection-${step}`).querySelector('h3').focus()
}

/** Out of the steps: what they showed is gone for good. The rest of the page may have a new session to show. */
function leave(end, sentence = null) {
  clearProtection()
  show(end)
  say('protection-done', sentence)
  element('protection-title').focus()
  dispatchEvent(new Event('account-changed'))
}

function show(shown) {
  part = shown
  for (const name of parts) element(`protection-${name}`).hidden = name !== shown
}

function forget() {
  for (const id of forms) clear(element(id))
  for (const id of ['qr', 'secret', 'recovery-codes']) element(id).replaceChildren()
  for (const details of element('protection').querySelectorAll('details')) details.open = false
  element('open-app').href = '#protection'
  say('codes-copied', null)
}

/** A code is typed anew, whatever was wrong. What another window has changed meanwhile is shown as it is now. */
function refuseForm(answer, form) {
  element(form).elements.code.value = ''
  if (answer.body?.code !== 'MFA_NOT_ENROLLED') return refusalOfProof(answer)
  refuse(answer)
}

function refuse(answer) {
  clearProtection()
  dispatchEvent(new Event('account-changed'))
  const text = answer.sessionEnded ? texts.signedOut : refusal(answer, { own: { INVALID_TOKEN: texts.unexpected } }).text
  say('protection-problem', text)
  offerVerification('protection', answer)
}

function onClick(id, work) {
  element(id).addEventListener('click', ({ currentTarget }) =>
    whileBusy(currentTarget, async () => {
      try {
        await work()
      } catch {
        say('protection-problem', texts.unreachable)
      }
    }),
  )
}
