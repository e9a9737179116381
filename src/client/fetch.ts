import { AuthClientError, jsonOf, refusalIn } from './error.js'
import { pageUrl } from './lock.js'
import type { Session } from './session.js'

/** For this time in milliseconds, a client does not refresh after an API that refuses the new token too. */
const quietMs = 30_000

/** `stale`: the session was refreshed after the request was sent. */
type Fault = 'session' | 'csrf' | 'freshness' | 'stale'

export interface FetchRules {
  /** Sends the request. Default: the global `fetch`. */
  readonly send?: typeof fetch
  /** The request shows a credential, so it is sent once. */
  readonly once?: boolean
}

/** `fetch` for the router and the APIs of the host: adds the credential, and repeats a request whose session was renewed. */
export function authFetch(session: Session) {
  const { apiOrigins = [], onReauthenticate } = session.options
  let quietUntil = 0
  let confirming: Promise<boolean> | undefined

  const isOurs = (url: string) => [new URL(session.url()).origin, ...apiOrigins].includes(new URL(url, pageUrl).origin)

  return async (input: RequestInfo | URL, init: RequestInit = {}, { send = fetch, once = false }: FetchRules = {}): Promise<Response> => {
    const request = input instanceof Request ? input : undefined
    if (!isOurs(request?.url ?? String(input))) return fetch(input, init)
    const asked = session.state.now
    await session.start()
    const { now } = session.state
    if (asked.user && now.user && asked.user.id !== now.user.id) throw otherUser()
    const person = (asked.status === 'loading' ? now : asked).user?.id
    const mended: Fault[] = []
    for (;;) {
      const { refreshes, messages } = session
      const sent = withCredentials(session, request, init)
      const response = await send(input, sent)
      if (once || (response.url && !isOurs(response.url))) return response
      const { code, details = {} } = /40[13]/.test(String(response.status)) ? refusalIn(await jsonOf(response.clone())) : {}
      const fault = faultOf(response.status, code, details['reason'])
      if (!fault || sent.isOther) return response
      const kind = fault === 'session' && session.refreshes !== refreshes && !mended.includes('stale') ? 'stale' : fault
      if (mended.includes(kind)) {
        if (kind === 'session') quietUntil = Date.now() + quietMs
        return response
      }
      mended.push(kind)
      const isMended = await mend(kind, messages, details['methods'] as string[])
      const isSamePerson = person !== undefined && session.state.now.user?.id === person
      if (!isMended || !isSamePerson || request?.bodyUsed || isStream(init.body)) return response
    }
  }

  /** False: a repetition would not help. */
  async function mend(kind: Fault, messages: number, methods: readonly string[] = []): Promise<boolean> {
    try {
      if (kind === 'freshness') return await confirmed(methods)
      if (kind === 'csrf') await session.look()
      if (kind !== 'session') return true
      if (session.delivery === 'session') await session.look()
      if (session.delivery === 'session' || session.state.now.status === 'signed-out' || Date.now() < quietUntil) return false
      await session.refresh(session.messages !== messages)
      return true
    } catch {
      return false // no answer: nobody is signed out
    }
  }

  async function confirmed(methods: readonly string[]): Promise<boolean> {
    confirming ??= (async () => (await onReauthenticate?.({ methods })) === true)().finally(() => {
      confirming = undefined
    })
    return confirming
  }
}

function faultOf(status: number, code: string | null | undefined, reason: unknown): Fault | null {
  if (status === 401) return !code || /^(UNAUTHORIZED|TOKEN_EXPIRED|INVALID_TOKEN)$/.test(code) ? 'session' : null
  if (code === 'REAUTHENTICATION_REQUIRED') return 'freshness'
  return code === 'CSRF_VALIDATION_FAILED' && /^(no_cookie|mismatch|signature)$/.test(String(reason)) ? 'csrf' : null
}

/** What the caller set stays. */
function withCredentials(session: Session, request: Request | undefined, init: RequestInit): RequestInit & { isOther?: boolean } {
  const headers = new Headers(init.headers ?? request?.headers)
  const isSafe = /^(GET|HEAD|OPTIONS)$/i.test(init.method ?? request?.method ?? 'GET')
  if (session.delivery === 'bearer') {
    if (headers.has('Authorization')) return { ...init, isOther: true }
    if (session.tokens) headers.set('Authorization', `Bearer ${session.tokens.access_token}`)
    return { ...init, headers }
  }
  if (isSafe || !session.csrf) return { credentials: 'include', ...init, headers }
  if (!headers.has('X-CSRF-Token')) headers.set('X-CSRF-Token', session.csrf)
  // A browser would send the header along a redirect to another origin.
  return { credentials: 'include', redirect: 'manual', ...init, headers }
}

/** It can be read only once. */
function isStream(body: unknown): boolean {
  return typeof body === 'object' && body !== null && ('getReader' in body || Symbol.asyncIterator in body)
}

export function otherUser(): AuthClientError {
  return new AuthClientError(0, { code: 'USER_CHANGED' })
}
