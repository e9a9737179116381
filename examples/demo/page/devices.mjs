import { auth, send } from './api.mjs'
import { clear, element, onSubmit, say, whileBusy } from './form.mjs'
import { explain, formatInstant, refusal } from './messages.mjs'
import { texts } from './texts.mjs'

/** What the library gave for a right password, to be shown with a code. Kept by this page alone. */
let challenge = null

onSubmit(element('login'), logIn)
onSubmit(element('challenge-form'), verify)
element('sign-out').addEventListener('click', (event) => whileBusy(event.currentTarget, signOut))
addEventListener('pageshow', (event) => event.persisted && show())
show()

/** Who the cookie belongs to is the server's to say: asked again after whatever may have changed it. */
async function show() {
  const [me, list] = await Promise.all(['me', 'list'].map((what) => send('GET', `${auth}/session/${what}`))).catch(() => [])
  if (!me) return say('notice', texts.unreachable)
  if (me.ok && list.ok) showDevices(me.body, list.body)
  else if (me.status !== 401 && list.status !== 401) say('notice', explain(me.body ?? {}))
  showOnly(me.ok && list.ok ? 'devices' : challenge ? 'challenge' : 'signed-out')
}

async function logIn({ email, password }) {
  say('notice', null)
  say('done', null)
  const answer = await send('POST', `${auth}/session/login`, { email, password })
  if (!answer.ok) return refusal(answer, { own: { UNAUTHORIZED: texts.notLoggedIn } })
  clear(element('login'))
  challenge = answer.body.mfa_token ?? null
  await show()
  element(challenge ? 'challenge-code' : 'devices-title').focus()
}

async function verify({ code }) {
  const answer = await send('POST', `${auth}/session/mfa/verify`, { mfa_token: challenge, code })
  clear(element('challenge-form'))
  if (answer.body?.code === 'MFA_CODE_INVALID') return { field: 'code', text: texts.wrongCode }
  const isOver = answer.body?.code === 'MFA_TOKEN_INVALID'
  if (!answer.ok && !isOver) return refusal(answer)
  challenge = null
  await show()
  say('notice', isOver ? texts.challengeOver : null)
  element(isOver ? 'sign-in-title' : 'devices-title').focus()
}

async function signOut() {
  const answer = await send('POST', `${auth}/session/logout`).catch(() => null)
  say('done', null)
  say('notice', answer?.ok ? null : answer ? texts.unexpected : texts.unreachable)
  if (!answer?.ok) return
  await show()
  element('sign-in-title').focus()
}

async function end(id, name) {
  const answer = await send('DELETE', `${auth}/session/${id}`)
  // Ended from somewhere else meanwhile: what was asked for is so.
  const isEnded = answer.ok || answer.status === 404
  say('done', isEnded ? texts.deviceEnded(name) : null)
  say('notice', isEnded ? null : answer.status === 401 ? texts.signedOut : explain(answer.body ?? {}))
  await show()
  element(answer.status === 401 ? 'sign-in-title' : 'devices-title').focus()
}

function showDevices({ email }, devices) {
  element('devices-email').textContent = email
  element('device-list').replaceChildren(...devices.map(deviceItem))
}

/** What a device says of itself is anybody's text: shown as text. */
function deviceItem({ id, user_agent, ip, last_seen_at, is_current }) {
  const item = element('device-template').content.firstElementChild.cloneNode(true)
  const name = nameOf(user_agent)
  item.querySelector('.provider').textContent = is_current ? texts.thisDevice(name) : name
  item.querySelector('.detail').textContent = texts.lastSeen(formatInstant(last_seen_at), ip)
  const button = item.querySelector('button')
  if (is_current) button.remove()
  button.setAttribute('aria-label', texts.endDevice(name))
  button.addEventListener('click', () => whileBusy(button, () => end(id, name).catch(() => say('notice', texts.unreachable))))
  return item
}

// The first that fits: each of them also calls itself by the names below it.
const browsers = [
  [/Edg/, 'Edge'],
  [/Firefox/, 'Firefox'],
  [/Chrom/, 'Chrome'],
  [/Safari/, 'Safari'],
]
const systems = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Mac OS/, 'macOS'],
  [/Windows/, 'Windows'],
  [/Linux/, 'Linux'],
]

function nameOf(userAgent) {
  const [browser, system] = [browsers, systems].map((known) => known.find(([pattern]) => pattern.test(userAgent ?? ''))?.[1])
  return browser && system ? texts.device(browser, system) : (userAgent?.slice(0, 60) ?? texts.unknownDevice)
}

function showOnly(shown) {
  for (const id of ['signed-out', 'challenge', 'devices']) element(id).hidden = id !== shown
}
