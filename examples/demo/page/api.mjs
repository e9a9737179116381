/** Where the app mounted the library. */
export const auth = '/accounts/auth'

/** One request with the session cookies, and what was answered. */
export async function send(method, path, body) {
  const request = { method, credentials: 'same-origin', headers: body ? { 'content-type': 'application/json' } : {} }
  const answer = await fetch(path, body ? { ...request, body: JSON.stringify(body) } : request)
  const text = await answer.text()
  return { ok: answer.ok, status: answer.status, body: text ? JSON.parse(text) : null }
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
  return navigator.locks.request('session', async () => {
    const answer = await send('POST', `${auth}/refresh`)
    if (answer.status === 401) await send('POST', `${auth}/logout`)
    return answer
  })
}
