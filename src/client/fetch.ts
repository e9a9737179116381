import { withCredentials } from './credentials.js'
import { failure, jsonOf, refusalIn } from './error.js'
import { pageUrl, shared } from './lock.js'
import type { Session } from './session.js'
import type { AuthState } from './state.js'

/** For this time in milliseconds, a client does not refresh after an API that refuses the new token too. */
const quietMs = 30_000

/** What a repetition can mend, by the status, code and reason of a refusal. The first: no session. An error without a code of ours counts. */
const faults = [
  /^401 (|undefined|UNAUTHORIZED|TOKEN_EXPIRED|INVALID_TOKEN) /,
  /^403 CSRF_VALIDATION_FAILED (no_cookie|mismatch|signature)$/,
  /^403 REAUTHENTICATION_REQUIRED /,
]

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

  /** As whom the next request is sent. After a login, the tokens are there before the state. */
  const sender = () => session.tokens?.user_id ?? session.box.current.user?.id

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
    const person = (asked.status === 'loading' ? now : asked).user?.id
    if (asked.user && (sender() ?? person) !== person) {
      if (now.user?.id === person) session.insist() // the tokens of a login in another tab, without an answer of whoami yet
      throw failure('USER_CHANGED')
    }
    const mended: number[] = []
    for (;;) {
      const { refreshes, messages } = session
      const sent = withCredentials(session, request, init)
      const response = await send(target, sent)
      if (once || (response.url && !isOurs(response.url))) return response
      const { status } = response
      const { code, details } = status === 401 || status === 403 ? refusalIn(await jsonOf(response.clone())) : {}
      const fault = faults.findIndex((form) => form.test(`${status} ${code} ${details?.['reason']}`))
      if (fault) good = session.refreshes
      if (fault < 0 || sent.isOther) return response
      const isAgain = mended.includes(fault)
      // The new token is refused too, or the two before were.
      if (!fault && (isAgain || session.refreshes - good > 1)) {
        quietUntil = Date.now() + quietMs
        good = session.refreshes
      }
      if (isAgain) return response
      mended.push(fault)
      // With a token from before a refresh, the request is only repeated.
      const isStale = !fault && session.refreshes !== refreshes
      const isMended = isStale || (await mend(fault, messages, details?.['methods'] as string[]))
      const isSamePerson = person && sender() === person
      if (!isMended || !isSamePerson || request?.bodyUsed || isStream(init.body)) return response
    }
  }

  /** False: a repetition would not help. */
  async function mend(fault: number, messages: number, methods: readonly string[] = []): Promise<boolean> {
    try {
      if (fault > 1) return await confirmed(methods)
      if (fault || session.mode === 'session') {
        await session.look()
        return !!fault
      }
      if (session.box.current.status === 'signed-out' || Date.now() < quietUntil) return false
      await session.refresh(session.messages !== messages)
      return true
    } catch {
      return false // no answer: nobody is signed out
    }
  }
}

/** It can be read only once. */
function isStream(body: RequestInit['body'] | AsyncIterable<unknown>): unknown {
  return body && ((body as ReadableStream).getReader || (body as AsyncIterable<unknown>)[Symbol.asyncIterator])
}
