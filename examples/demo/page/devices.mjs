import { auth, call, send, sendInTurn } from './api.mjs'
import { element, say, whileBusy } from './form.mjs'
import { explain, formatInstant } from './messages.mjs'
import { texts } from './texts.mjs'

element('sign-out').addEventListener('click', (event) => whileBusy(event.currentTarget, signOut))
addEventListener('pageshow', (event) => event.persisted && show())
show()

/** Who is signed in is the server's to say: asked again after whatever may have changed it. */
async function show() {
  const list = await call('GET', `${auth}/sessions`).catch(() => null)
  if (list?.status === 401) return location.assign(`/?${new URLSearchParams({ return_to: location.pathname })}`)
  const me = list?.ok ? await send('GET', `${auth}/me`).catch(() => null) : list
  if (!me?.ok) return say('notice', me ? explain(me.body ?? {}) : texts.unreachable)
  showDevices(me.body, list.body)
}

async function signOut() {
  const answer = await sendInTurn('POST', `${auth}/logout`).catch(() => null)
  if (answer?.ok) return location.assign('/')
  say('notice', answer ? texts.unexpected : texts.unreachable)
}

async function end(id, name) {
  const answer = await call('DELETE', `${auth}/sessions/${id}`)
  // Ended from somewhere else meanwhile: what was asked for is so.
  const isEnded = answer.ok || answer.status === 404
  say('done', isEnded ? texts.deviceEnded(name) : null)
  say('notice', isEnded || answer.status === 401 ? null : explain(answer.body ?? {}))
  await show()
  element('devices-title').focus()
}

function showDevices({ email }, devices) {
  element('devices-email').textContent = email
  element('device-list').replaceChildren(...devices.map(deviceItem))
  element('devices').hidden = false
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
