import { AuthClientError, refusalOf } from './error.js'
import { hasDocument } from './lock.js'
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

  const isOurs = (url: string) => [new URL(session.url()).origin, ...apiOrigins].includes(new URL(url).origin)

  return async (input: RequestInfo | URL, init: RequestInit = {}, { send = fetch, once = false }: FetchRules = {}): Promise<Response> => {
    const request = input instanceof Request ? input : undefined
    if (!isOurs(new URL(request?.url ?? String(input), hasDocument ? document.baseURI : undefined).href)) return fetch(input, init)
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
      const fault = await faultOf(response)
      if (!fault || sent.isOther) return response
      if (fault.kind === 'session' && session.refreshes !== refreshes && !mended.includes('stale')) fault.kind = 'stale'
      if (mended.includes(fault.kind)) {
        if (fault.kind === 'session') quietUntil = Date.now() + quietMs
        return response
      }
      mended.push(fault.kind)
      const isMended = await mend(fault, messages)
      const isSamePerson = person !== undefined && session.state.now.user?.id === person
      if (!isMended || !isSamePerson || request?.bodyUsed || isStream(init.body)) return response
    }
  }

  /** False: a repetition would not help. */
  async function mend({ kind, methods }: Refused, messages: number): Promise<boolean> {
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

interface Refused {
  kind: Fault
  readonly methods: readonly string[]
}

async function faultOf(response: Response): Promise<Refused | null> {
  const { status } = response
  if (status !== 401 && status !== 403) return null
  const { code, details = {} } = await refusalOf(response)
  const { reason, methods = [] } = details as { reason?: string; methods?: readonly string[] }
  const of = (kind: Fault) => ({ kind, methods })
  if (status === 401) return !code || /^(UNAUTHORIZED|TOKEN_EXPIRED|INVALID_TOKEN)$/.test(code) ? of('session') : null
  if (code === 'REAUTHENTICATION_REQUIRED') return of('freshness')
  return code === 'CSRF_VALIDATION_FAILED' && /^(no_cookie|mismatch|signature)$/.test(reason ?? '') ? of('csrf') : null
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
function isStream(body: RequestInit['body']): boolean {
  const isKept =
    body === null ||
    body === undefined ||
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    body instanceof FormData ||
    body instanceof Blob ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body)
  return !isKept
}

export function otherUser(): AuthClientError {
  return new AuthClientError(0, { code: 'USER_CHANGED', detail: 'Another person signed in before the request was sent.' })
}
