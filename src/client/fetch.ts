import { withCredentials } from './credentials.js'
import { failure, jsonOf, refusalIn } from './error.js'
import { pageUrl, shared } from './lock.js'
import type { Session } from './session.js'
import type { AuthState } from './state.js'

/** For this time in milliseconds, a client does not refresh after an API that refuses the new token too. */
const quietMs = 30_000

type Fault = 'session' | 'csrf' | 'freshness'

export interface FetchRules {
  /** Sends the request. Default: the global `fetch`. */
  readonly send?: typeof fetch
  /** The request shows a credential, so it is sent once. */
  readonly once?: boolean | undefined
  /** Who was signed in when the page asked. Default: who is now. */
  readonly asked?: AuthState | undefined
}

/** `fetch` for the router and the APIs of the host: adds the credential, and repeats a request whose session was renewed. */
export function authFetch(session: Session) {
  const { apiOrigins = [], onReauthenticate } = session.options
  let quietUntil = 0
  /** How many refreshes there were before the last answer that was no 401. */
  let good = 0
  const confirmed = shared(async (methods: readonly string[]) => (await onReauthenticate?.({ methods })) === true)

  const isOurs = (url: string) => [new URL(session.url()).origin, ...apiOrigins].includes(new URL(url).origin)

  return async (
    input: RequestInfo | URL,
    init: RequestInit = {},
    { send = fetch, once = false, asked = session.box.current }: FetchRules = {},
  ): Promise<Response> => {
    // What is sent is what was checked: `input` can be of another realm, or change later, as the `<base>` of the page can.
    const request = typeof input === 'object' && 'url' in input ? new Request(input) : undefined
    const url = request?.url ?? new URL(input as string, pageUrl()).href
    const target = request ?? url
    if (!isOurs(url)) return fetch(target, init)
    await session.start()
    const { current: now } = session.box
    if (asked.user && now.user && asked.user.id !== now.user.id) throw failure('USER_CHANGED')
    const person = (asked.status === 'loading' ? now : asked).user?.id
    const mended: Fault[] = []
    for (;;) {
      const { refreshes, messages } = session
      const sent = withCredentials(session, request, init)
      const response = await send(target, sent)
      if (once || (response.url && !isOurs(response.url))) return response
      const { code, details } = [401, 403].includes(response.status) ? refusalIn(await jsonOf(response.clone())) : {}
      const fault = faultOf(response.status, code, details?.['reason'] as string)
      if (fault !== 'session') good = session.refreshes
      if (!fault || sent.isOther) return response
      const isAgain = mended.includes(fault)
      // The new token is refused too, or the two before were.
      if (fault === 'session' && (isAgain || session.refreshes - good > 1)) {
        quietUntil = Date.now() + quietMs
        good = session.refreshes
      }
      if (isAgain) return response
      mended.push(fault)
      // With a token from before a refresh, the request is only repeated.
      const isStale = fault === 'session' && session.refreshes !== refreshes
      const isMended = isStale || (await mend(fault, messages, details?.['methods'] as string[]))
      const isSamePerson = person !== undefined && session.box.current.user?.id === person
      if (!isMended || !isSamePerson || request?.bodyUsed || isStream(init.body)) return response
    }
  }

  /** False: a repetition would not help. */
  async function mend(kind: Fault, messages: number, methods: readonly string[] = []): Promise<boolean> {
    try {
      if (kind === 'freshness') return await confirmed(methods)
      if (kind === 'csrf' || session.mode === 'session') {
        await session.look()
        return kind === 'csrf'
      }
      if (session.box.current.status === 'signed-out' || Date.now() < quietUntil) return false
      await session.refresh(session.messages !== messages)
      return true
    } catch {
      return false // no answer: nobody is signed out
    }
  }
}

function faultOf(status: number, code: string | null | undefined, reason: string): Fault | null {
  if (status === 401) return !code || /^(UNAUTHORIZED|TOKEN_EXPIRED|INVALID_TOKEN)$/.test(code) ? 'session' : null
  if (code === 'REAUTHENTICATION_REQUIRED') return 'freshness'
  return code === 'CSRF_VALIDATION_FAILED' && /^(no_cookie|mismatch|signature)$/.test(reason) ? 'csrf' : null
}

/** It can be read only once. */
function isStream(body: RequestInit['body'] | AsyncIterable<unknown>): unknown {
  return body && ((body as ReadableStream).getReader || (body as AsyncIterable<unknown>)[Symbol.asyncIterator])
}
