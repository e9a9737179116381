/** Where the app mounted the library. */
export const auth = '/accounts/auth'

/** How the app keeps people signed in: its setting `tokenDelivery`. */
export const delivery = document.documentElement.dataset.delivery

/** Only in delivery `bearer`: a script keeps the tokens, for this tab. In the others no script ever sees them. */
const tokens = {
  get: () => JSON.parse(sessionStorage.getItem('tokens')) ?? {},
  keep: (given) => sessionStorage.setItem('tokens', JSON.stringify({ ...tokens.get(), ...given })),
  drop: () => sessionStorage.removeItem('tokens'),
}

/** In delivery `both` these routes answer with tokens in the body, and below `/cookie` with cookies. */
const twins =
  /^(\/login|\/logout|\/refresh|\/signup|\/activate|\/reauthenticate|\/password(-change|-reset\/confirm|\/first)|\/mfa\/(verify|confirm)|\/oauth\/link\/redeem)$/

/** In delivery `bearer` these take the refresh token from the body. */
const takesRefreshToken = /\/(refresh|logout|mfa\/confirm)$/

/** One request with what this browser holds of the session, and what was answered. */
export async function send(method, path, body) {
  if (delivery === 'both' && path.startsWith(auth) && twins.test(path.slice(auth.length)))
    return exchange(method, path.replace(auth, `${auth}/cookie`), body)
  if (delivery !== 'bearer') return exchange(method, path, body)
  const { access_token, refresh_token } = tokens.get()
  const shown = refresh_token && takesRefreshToken.test(path) ? { ...body, refresh_token } : body
  const answer = await exchange(method, path, shown, access_token ? { authorization: `Bearer ${access_token}` } : {})
  if (answer.body?.access_token) tokens.keep(given(answer.body))
  if (answer.ok && path === `${auth}/logout`) tokens.drop()
  return answer
}

async function exchange(method, path, body, headers = {}) {
  const request = { method, credentials: 'same-origin', headers: body ? { ...headers, 'content-type': 'application/json' } : headers }
  const answer = await fetch(path, body ? { ...request, body: JSON.stringify(body) } : request)
  const text = await answer.text()
  return { ok: answer.ok, status: answer.status, body: text ? JSON.parse(text) : null }
}

/** Some routes answer with an access token alone: then the refresh token goes on. */
function given({ access_token, refresh_token }) {
  return refresh_token ? { access_token, refresh_token } : { access_token }
}

/** For requests that set or spend the session's cookies. A refresh token works once, so this browser's tabs take turns. */
export function sendInTurn(method, path, body) {
  return navigator.locks.request('session', () => send(method, path, body))
}

/**
 * For requests where a 401 can only be about the session: an expired access cookie is renewed once and the request sent
 * again. `sessionEnded`: there was a session, and it is over.
 */
export async function call(method, path, body) {
  const first = await send(method, path, body)
  if (first.status !== 401) return first
  const renewal = await renewSession()
  if (renewal.ok) return send(method, path, body)
  return renewal.status === 401 ? { ...first, sessionEnded: renewal.body?.code === 'INVALID_TOKEN' } : renewal
}

/**
 * For requests that hold the current password or a code. The session is renewed first, so that a 401 without `sessionEnded`
 * is about these alone: sent again by mistake, it would count as a second wrong one. In turn, for they keep this session
 * and end the others, or begin a new one.
 */
export async function callWithProof(method, path, body) {
  const session = await renewSession()
  if (!session.ok) return { ...session, sessionEnded: session.status === 401 }
  return sendInTurn(method, path, body)
}

/** The answer to a refresh. A token that is refused stays refused: then its cookies go, too. */
export function renewSession() {
  if (delivery === 'session') return send('GET', `${auth}/me`) // there is nothing to renew: is it still there?
  return navigator.locks.request('session', async () => {
    if (delivery === 'bearer' && !tokens.get().refresh_token) return { ok: false, status: 401, body: null }
    const answer = await send('POST', `${auth}/refresh`)
    if (answer.status === 401) await send('POST', `${auth}/logout`)
    return answer
  })
}
