/**
 * The only script of the pages. Every part of the pages except passkeys works without the script. The script shows passwords, writes times
 * in the browser's time zone, prints pages and requests passkeys from the browser. Elements that need the script are hidden until the
 * script runs.
 */
export const pageScript = `'use strict'
{
  const lang = document.documentElement.lang
  const say = document.body.dataset

  for (const field of document.querySelectorAll('.secret > input')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'reveal'
    button.textContent = say.show
    button.setAttribute('aria-label', say.showLabel)
    button.setAttribute('aria-pressed', 'false')
    button.setAttribute('aria-controls', field.id)
    button.addEventListener('click', () => {
      const isShown = field.type === 'password'
      field.type = isShown ? 'text' : 'password'
      button.setAttribute('aria-pressed', String(isShown))
    })
    field.form?.addEventListener('submit', () => { field.type = 'password' })
    field.after(button)
  }

  const format = new Intl.DateTimeFormat(lang, { year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short' })
  for (const time of document.querySelectorAll('time[datetime]')) time.textContent = format.format(new Date(time.dateTime))

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0))
  const written = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/[+]/g, '-').replace(/[/]/g, '_').replace(/=+$/, '')
  const named = (list) => list?.map((one) => ({ ...one, id: bytes(one.id) }))
  const readable = ({ challenge, user, excludeCredentials, allowCredentials, ...others }) => ({
    ...others,
    challenge: bytes(challenge),
    ...(user && { user: { ...user, id: bytes(user.id) } }),
    ...(excludeCredentials && { excludeCredentials: named(excludeCredentials) }),
    ...(allowCredentials && { allowCredentials: named(allowCredentials) }),
  })
  const parts = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']
  const sendable = ({ id, rawId, type, authenticatorAttachment, response }) => JSON.stringify({
    id,
    rawId: written(rawId),
    type,
    ...(authenticatorAttachment && { authenticatorAttachment }),
    response: {
      ...Object.fromEntries(parts.filter((part) => response[part]).map((part) => [part, written(response[part])])),
      ...(response.getTransports && { transports: response.getTransports() }),
    },
    clientExtensionResults: {},
  })
  const send = (form, credential, token) => {
    form.elements.credential.value = credential
    if (token) form.elements.challenge_token.value = token
    form.submit()
  }
  let waiting = null

  const sign = async (form) => {
    waiting?.abort()
    const credential = await navigator.credentials.get({ publicKey: readable(JSON.parse(form.dataset.options)) })
    send(form, sendable(credential))
  }
  const make = async (form) => {
    const answer = await fetch(form.dataset.optionsUrl, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })
    if (!answer.ok) return send(form, '')
    const { challenge_token: token, ...options } = await answer.json()
    const credential = await navigator.credentials.create({ publicKey: readable(options) })
    send(form, sendable(credential), token)
  }
  const offer = async (form) => {
    if (!(await window.PublicKeyCredential.isConditionalMediationAvailable?.())) return
    waiting = new AbortController()
    const publicKey = readable(JSON.parse(form.dataset.options))
    send(form, sendable(await navigator.credentials.get({ publicKey, mediation: 'conditional', signal: waiting.signal })))
  }
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    if (!window.PublicKeyCredential) continue
    form.hidden = false
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const work = form.dataset.passkey === 'create' ? make(form) : sign(form)
      work.catch(({ name }) => {
        if (form.dataset.passkey === 'create' && name !== 'NotAllowedError') return send(form, '') // such as one that is registered already
        form.querySelector('button[type=submit]').focus() // the person has said no, or it took too long
      })
    })
    if ('conditional' in form.dataset) offer(form).catch(() => undefined)
  }
  if (!window.PublicKeyCredential) for (const note of document.querySelectorAll('[data-unsupported]')) note.hidden = false

  for (const button of document.querySelectorAll('button[data-print]')) {
    button.hidden = false
    button.addEventListener('click', () => window.print())
  }
}
`
