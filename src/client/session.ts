import { type AuthClientError, errorOf, jsonInit, jsonOf, reach } from './error.js'
import { hasDocument, isBrowser, locked, pause } from './lock.js'
import type { User } from './operations.js'
import { type StateBox, stateBox } from './state.js'
import type { AuthClientOptions, Tokens, WhoAmI } from './types.js'

/** What one client knows, and the requests by which it learns who is signed in. */
export interface Session {
  readonly options: AuthClientOptions
  readonly state: StateBox
  delivery: AuthClientOptions['delivery']
  /** Of delivery `bearer`. */
  tokens: Tokens | null
  csrf: string | null
  /** Resolves after the first whoami, also if it failed. */
  ready: Promise<void> | null
  /** How many logins and logouts there were. An answer from before the last one counts no more. */
  changes: number
  /** How many refreshes this client made. */
  refreshes: number
  /** How many messages came from other tabs. */
  messages: number
  /** When the session was last asked for or refreshed, in milliseconds since 1970. */
  lookedAt: number
  /** The absolute URL of the router, without a slash at the end. @throws TypeError */
  url(): string
  start(): Promise<void>
  lockName(): string | null
  /** The URL of a route. @param hasCookieRoute in delivery `both` there is a route for browsers beside the plain one */
  route(path: string, hasCookieRoute: boolean): string
  /** Asks who is signed in. With `refreshes`, refreshes an expired session. @throws AuthClientError if there is no answer */
  look(refreshes?: boolean): Promise<void>
  /** Undefined: a login or logout happened meanwhile. @throws AuthClientError if there is no answer */
  whoami(): Promise<WhoAmI | undefined>
  /** Where there is no page, `both` means tokens in the body. */
  learn(delivery: WhoAmI['delivery']): void
  /** Asks until there is an answer. */
  insist(): Promise<void>
  /** At most once at a time. @param isLate asks first, because another tab may have refreshed */
  refresh(isLate?: boolean): Promise<void>
  keep(tokens: Tokens | null): Promise<void>
  /** Tells the other tabs that a login or logout happened. */
  post(kind: 'changed' | 'refreshed'): void
  dispose(): void
}

const mostWaitSeconds = 60

export function createSession(options: AuthClientOptions): Session {
  const { baseUrl, storage } = options
  const key = `doorward:${baseUrl}`
  const state = stateBox()
  const ended = new AbortController()
  let channel: BroadcastChannel | undefined
  let looking: { changes: number; answer: Promise<WhoAmI> } | undefined
  let refreshing: Promise<void> | undefined
  let isUnsure = true
  let hiddenAt = 0
  let wake = () => {}

  const isBearer = () => session.delivery === 'bearer'
  /** Without a storage, each tab is a session of its own. */
  const isShared = () => isBrowser && !(isBearer() && !storage)

  const session: Session = {
    options,
    state,
    delivery: options.delivery,
    tokens: null,
    csrf: null,
    ready: null,
    changes: 0,
    refreshes: 0,
    messages: 0,
    lookedAt: 0,

    url() {
      try {
        return new URL(baseUrl, hasDocument ? location.origin : undefined).href.replace(/\/$/, '')
      } catch {
        throw new TypeError(`baseUrl ${baseUrl} is no URL (without a page, no path)`)
      }
    },

    start() {
      session.ready ??= begin().catch(() => {})
      return session.ready
    },

    lockName: () => (isShared() ? `doorward ${session.url()}` : null),

    route: (path, hasCookieRoute) => session.url() + (hasCookieRoute && session.delivery === 'both' ? '/cookie' : '') + path,

    async look(refreshes = true) {
      if (isBearer() && !session.tokens) return apply(null)
      const answer = await whoami()
      if (!answer) return
      if (refreshes && !answer.user && (isBearer() ? session.tokens?.refresh_token : answer.can_refresh)) return session.refresh()
      if (!answer.user && session.tokens) await session.keep(null)
      apply(answer.user)
    },

    whoami,

    learn(delivery) {
      session.delivery ??= delivery === 'both' && !hasDocument ? 'bearer' : delivery
    },

    insist() {
      isUnsure = true
      return session.look().catch(again)
    },

    refresh(isLate = false) {
      refreshing ??= refreshOnce(isLate).finally(() => {
        refreshing = undefined
      })
      return refreshing
    },

    async keep(tokens) {
      session.tokens = tokens
      await (tokens ? storage?.set(key, JSON.stringify(tokens)) : storage?.remove(key))
    },

    post(kind) {
      if (isShared()) channel?.postMessage(kind)
    },

    dispose() {
      isUnsure = false
      ended.abort()
      channel?.close()
      channel = undefined
      state.clear()
      wake()
    },
  }

  async function begin(): Promise<void> {
    const url = session.url()
    if (isBrowser) listen(url)
    if (storage && (isBearer() || !session.delivery)) session.tokens = await stored()
    if (!session.tokens && isHintMissing()) return apply(null)
    await session.look().catch((error) => void again(error))
  }

  function listen(url: string): void {
    channel = new BroadcastChannel(`doorward ${url}`)
    channel.onmessage = ({ data }) => {
      session.messages++
      if (data !== 'refreshed' && isShared()) session.ready = reread().catch(() => {})
    }
    const { signal } = ended
    addEventListener('online', () => wake(), { signal })
    addEventListener('pageshow', ({ persisted }) => persisted && compare(), { signal })
    if (hasDocument)
      document.addEventListener(
        'visibilitychange',
        () => {
          if (document.hidden) hiddenAt = Date.now()
          else if (Date.now() - hiddenAt > 60_000) compare()
        },
        { signal },
      )
  }

  /** In delivery `bearer`, another tab has changed the storage. */
  async function reread(): Promise<void> {
    if (isBearer()) session.tokens = await stored()
    await session.look()
  }

  function compare(): void {
    if (isHintMissing()) {
      if (!isBearer()) apply(null)
    } else if (Date.now() - session.lookedAt > 60_000) session.look().catch(() => {})
  }

  function isHintMissing(): boolean {
    if (!hasDocument || isBearer()) return false
    const reaches = options.hint || new URL(session.url()).hostname === location.hostname
    return reaches && !/(^|; )auth_hint=/.test(document.cookie)
  }

  function apply(user: User | null): void {
    isUnsure = false
    const was = state.now.user
    state.set(user)
    if (was && user && was.id !== user.id) session.post('changed')
  }

  /** Waits, and asks again while nobody else got an answer. */
  async function again(error: unknown, wait = 1): Promise<void> {
    await new Promise<void>((resolve) => {
      wake = resolve // as soon as the browser is online
      pause(((error as Partial<AuthClientError>).retryAfterSeconds || wait) * 1000).then(resolve)
    })
    if (isUnsure) await session.look().catch((next) => again(next, Math.min(wait * 2, mostWaitSeconds)))
  }

  async function whoami(): Promise<WhoAmI | undefined> {
    const { changes } = session
    if (looking?.changes !== changes) {
      const own = {
        changes,
        answer: ask().finally(() => {
          if (looking === own) looking = undefined
        }),
      }
      looking = own
    }
    const answer = await looking?.answer
    if (!answer || session.changes !== changes) return undefined
    session.csrf = answer.csrf_token
    return answer
  }

  async function ask(): Promise<WhoAmI> {
    session.lookedAt = Date.now()
    const response = await send('/whoami')
    const body = await jsonOf(response)
    if (!response.ok || !body?.['delivery']) throw errorOf(response, body)
    const answer = body as unknown as WhoAmI
    if (session.delivery) return answer
    session.learn(answer.delivery)
    return session.delivery === 'both' && !answer.user ? ask() : answer
  }

  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    if (session.tokens) headers.set('Authorization', `Bearer ${session.tokens.access_token}`)
    return reach(session.route(path, true), { ...init, headers, credentials: isBearer() ? 'same-origin' : 'include' })
  }

  async function refreshOnce(isLate: boolean): Promise<void> {
    const { changes } = session
    const { answer, response, userId } = await locked(session.lockName(), (waited) => underLock(waited || isLate, changes))
    if (session.changes !== changes) return
    if (answer?.user) {
      session.refreshes++ // of another tab
      return apply(answer.user)
    }
    if (!response) return apply(null)
    if (response.status === 429 || response.status >= 500) throw errorOf(response, null)
    if (!response.ok) return session.look(false)
    session.refreshes++
    session.lookedAt = Date.now()
    session.post('refreshed')
    if (userId !== state.now.user?.id) await session.look(false)
  }

  interface Outcome {
    readonly answer?: WhoAmI | undefined
    readonly response?: Response
    readonly userId?: string
  }

  /** Calls no listener. */
  async function underLock(isLate: boolean, changes: number): Promise<Outcome> {
    if (isBearer() && storage) {
      const found = await stored()
      if (!found) return {}
      if (found.refresh_token !== session.tokens?.refresh_token) isLate = true
      session.tokens = found
    }
    if (isLate) {
      const answer = await whoami()
      if (!answer || answer.user) return { answer }
    }
    const response = await post().catch(post) // the token may be used, and then the grace period answers the second request
    if (!response.ok) return { response }
    const { user_id: userId, access_token, refresh_token } = (await response.json()) as Tokens & { user_id: string }
    if (isBearer() && session.changes === changes) await session.keep({ access_token, refresh_token })
    return { response, userId }
  }

  function post(): Promise<Response> {
    return send('/refresh', jsonInit('POST', isBearer() ? { refresh_token: session.tokens?.refresh_token } : {}))
  }

  async function stored(): Promise<Tokens | null> {
    try {
      return JSON.parse((await storage?.get(key)) ?? 'null')
    } catch {
      return null
    }
  }

  return session
}
