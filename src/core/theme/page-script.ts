/** The only script of the pages. Everything except passkeys works without it. Elements that need it are hidden until it runs. */
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

  const startsWithZeros = (hash, bits) => new DataView(hash).getUint32(0) >>> (32 - bits) === 0
  /** Without an answer, the server says why it refuses the form. Always solves anew: an answer is good once, and browsers restore fields. */
  const solve = async (input) => {
    if (input) input.value = await solution(input.dataset.puzzle).catch(() => '')
  }
  const solution = async (url) => {
    const answer = await fetch(url)
    if (!answer.ok) throw new Error('no puzzle')
    const { puzzle, bits } = await answer.json()
    const encoder = new TextEncoder()
    const hash = (n) => crypto.subtle.digest('SHA-256', encoder.encode(puzzle + '.' + n))
    for (let first = 0; ; first += 512) {
      const hashes = await Promise.all(Array.from({ length: 512 }, (_, place) => hash(first + place)))
      const found = hashes.findIndex((one) => startsWithZeros(one, bits))
      if (found !== -1) return puzzle + '.' + (first + found)
    }
  }
  for (const input of document.querySelectorAll('[data-puzzle]')) {
    const { form } = input
    if ('passkey' in form.dataset) continue
    let isSolved = false
    form.addEventListener('submit', async (event) => {
      if (isSolved) return
      event.preventDefault()
      if (form.getAttribute('aria-busy')) return
      form.setAttribute('aria-busy', 'true')
      await solve(input)
      isSolved = true
      form.requestSubmit(event.submitter)
    })
    // The browser may show the page as it left it, but an answer is good once.
    addEventListener('pageshow', ({ persisted }) => {
      if (!persisted) return
      isSolved = false
      form.removeAttribute('aria-busy')
    })
  }

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
  const send = async (form, credential, token) => {
    form.elements.credential.value = credential
    if (token) form.elements.challenge_token.value = token
    await solve(form.querySelector('[data-puzzle]'))
    form.submit()
  }
  let waiting = null

  const sign = async (form) => {
    waiting?.abort()
    const token = form.elements.challenge_token.value // renewed options have another token
    const credential = await navigator.credentials.get({ publicKey: readable(JSON.parse(form.dataset.options)) })
    send(form, sendable(credential), token)
  }
  /** The options of a sign-up are about an address and a name, which can stand in another form of the page. */
  const make = async (form) => {
    const { about = '', from, optionsUrl } = form.dataset
    const [names, typed] = [about.split(' ').filter(Boolean), (from && document.querySelector(from)) || form]
    if (typed !== form && !names.every((name) => typed.elements[name].reportValidity())) return
    for (const name of names) form.elements[name].value = typed.elements[name].value
    const body = JSON.stringify(Object.fromEntries(names.map((name) => [name, form.elements[name].value]).filter(([, value]) => value)))
    const answer = await fetch(optionsUrl, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    if (!answer.ok) return send(form, '')
    const { challenge_token: token, ...options } = await answer.json()
    const credential = await navigator.credentials.create({ publicKey: readable(options) })
    send(form, sendable(credential), token)
  }
  const offer = async (form) => {
    if (!(await window.PublicKeyCredential.isConditionalMediationAvailable?.())) return
    waiting = new AbortController()
    const publicKey = readable(JSON.parse(form.dataset.options))
    const token = form.elements.challenge_token.value
    send(form, sendable(await navigator.credentials.get({ publicKey, mediation: 'conditional', signal: waiting.signal })), token)
  }
  const renewed = async (form) => {
    const answer = await fetch(form.dataset.renew, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })
    if (!answer.ok) return
    const { challenge_token: token, ...options } = await answer.json()
    form.dataset.options = JSON.stringify(options)
    form.elements.challenge_token.value = token
    if (!waiting || waiting.signal.aborted) return
    waiting.abort()
    offer(form).catch(() => undefined)
  }
  /** Renews at three quarters of the time. A timer of a sleeping machine is late, so the page also looks when it becomes visible. */
  const keepRenewed = (form) => {
    const lives = JSON.parse(form.dataset.options).timeout * 0.75
    let at = Date.now()
    const look = () => {
      if (document.hidden || Date.now() - at < lives) return
      at = Date.now()
      renewed(form).catch(() => undefined)
    }
    setInterval(look, Math.min(lives, 60_000))
    document.addEventListener('visibilitychange', look)
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
    if ('renew' in form.dataset) keepRenewed(form)
  }
  const signal = async (url) => {
    const { PublicKeyCredential: api } = window
    if (!api?.signalAllAcceptedCredentials && !api?.signalCurrentUserDetails) return
    const answer = await fetch(url)
    if (!answer.ok) return
    const { rp_id: rpId, user_id: userId, all_accepted_credential_ids: ids, name, display_name: displayName } = await answer.json()
    if (ids) await api.signalAllAcceptedCredentials?.({ rpId, userId, allAcceptedCredentialIds: ids })
    await api.signalCurrentUserDetails?.({ rpId, userId, name, displayName })
  }
  const signalled = document.querySelector('[data-signal]')
  if (signalled) signal(signalled.dataset.signal).catch(() => undefined)
  if (!window.PublicKeyCredential) for (const note of document.querySelectorAll('[data-unsupported]')) note.hidden = false

  for (const button of document.querySelectorAll('button[data-print]')) {
    button.hidden = false
    button.addEventListener('click', () => window.print())
  }
  for (const button of document.querySelectorAll('button[data-copy]')) {
    if (!navigator.clipboard) continue
    button.hidden = false
    button.setAttribute('aria-live', 'polite')
    button.addEventListener('click', async () => {
      const lines = [...document.querySelector(button.dataset.copy).children].map((line) => line.textContent)
      await navigator.clipboard.writeText(lines.join('\\n') + '\\n')
      button.textContent = button.dataset.copied
    })
  }
  document.querySelector('nav.pages [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
}
`
