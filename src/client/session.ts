import { withCredentials } from './credentials.js'
import { type AuthClientError, errorOf, jsonInit, jsonOf, reach } from './error.js'
import { callIn, hasDocument, isBrowser, locked, shared } from './lock.js'
import type { User } from './operations.js'
import { areDifferent, report, type StateBox, stateBox } from './state.js'
import type { AuthClientOptions, Tokens, WhoAmI } from './types.js'

/** What one client knows, and the requests by which it learns who is signed in. */
export interface Session {
  readonly options: AuthClientOptions
  readonly box: StateBox
  /** How this client gets its session. Undefined: the router is not asked yet. */
  mode: AuthClientOptions['delivery']
  /** Of delivery `bearer`. */
  tokens: Tokens | null
  csrf: string | null
  /** Resolves after the first whoami, also if it failed. */
  ready: Promise<unknown> | null
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
  start(): Promise<unknown>
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
  insist(): Promise<unknown>
  /** At most once at a time. @param isLate asks first, because another tab may have refreshed */
  refresh(isLate?: boolean): Promise<void>
  /** Without a new refresh token, such as after a confirmation, the old one stays. */
  keep(tokens: Tokens | null): Promise<void>
  /** Nobody is signed in, and the other tabs hear it. */
  leave(): void
  /** In delivery `bearer`, reads the storage. True: another tab has changed it. */
  reread(): Promise<boolean>
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
  /** By `changes`. */
  const looking: Record<number, Promise<WhoAmI>> = {}
  let isUnsure = true
  /** False: the storage did not take the tokens, so it knows less than we. */
  let isStored = true
  let hiddenAt = 0
  let wake = () => {}

  const isBearer = () => session.mode === 'bearer'
  /** Of the lock and the channel. */
  const nameOf = () => `doorward ${session.url()}`
  /** Without a storage, each tab is a session of its own. */
  const isShared = () => isBrowser && !(isBearer() && !storage)

  /** Waits, and asks again while nobody else got an answer. */
  const again = shared(async (error: unknown) => {
    let failed: unknown = error
    for (let wait = 1; failed && isUnsure; wait = Math.min(wait * 2, mostWaitSeconds)) {
      const ms = ((failed as Partial<AuthClientError>).retryAfterSeconds || wait) * 1000
      await new Promise<void>((resolve) => {
        const timer = callIn(ms, resolve)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      failed = isUnsure && (await session.look().catch((next: unknown) => next))
    }
  })

  const session: Session = {
    options,
    box: state,
    mode: options.delivery,
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
        throw new TypeError(`baseUrl: no URL: ${baseUrl}`)
      }
    },

    start() {
      if (!session.ready) session.ready = begin().catch(() => {})
      return session.ready
    },

    lockName: () => (isShared() ? nameOf() : null),

    route: (path, hasCookieRoute) => session.url() + (hasCookieRoute && session.mode === 'both' ? '/cookie' : '') + path,

    async look(refreshes = true) {
      if (isBearer() && !session.tokens) return apply(null)
      const answer = await whoami()
      if (!answer) return
      if (!answer.user) {
        if (refreshes && (answer.can_refresh || session.tokens?.refresh_token)) return session.refresh()
        if (session.tokens) await session.keep(null)
      }
      apply(answer.user)
    },

    whoami,

    learn(delivery) {
      session.mode ??= delivery === 'both' && !hasDocument ? 'bearer' : delivery
    },

    insist: () => ask(true, again),

    refresh: shared(refreshOnce),

    async keep(tokens) {
      if (tokens) {
        const { access_token, refresh_token, user_id } = tokens
        tokens = { access_token, refresh_token: refresh_token ?? session.tokens?.refresh_token, user_id }
      }
      session.tokens = tokens
      isStored = false
      try {
        await (tokens ? storage?.set(key, JSON.stringify(tokens)) : storage?.remove(key))
        isStored = true
      } catch (error) {
        report(error)
      }
    },

    async reread() {
      const { tokens } = session
      if (storage && isStored && (isBearer() || !session.mode)) session.tokens = await stored()
      return tokens?.refresh_token !== session.tokens?.refresh_token
    },

    leave() {
      state.change(null)
      session.post('changed')
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
    session.url() // @throws TypeError
    if (isBrowser && !ended.signal.aborted) listen()
    if (storage) await session.reread()
    if (!session.tokens && isHintMissing()) return apply(null)
    await ask()
  }

  function listen(): void {
    if (globalThis.BroadcastChannel) {
      channel = new BroadcastChannel(nameOf())
      channel.onmessage = ({ data }) => {
        session.messages++
        if (data !== 'refreshed' && isShared()) session.ready = session.reread().then(() => ask())
      }
    }
    on('online', () => wake())
    on('pageshow', ({ persisted }) => persisted && compare())
    on('visibilitychange', () => {
      if (document.hidden) hiddenAt = Date.now()
      else if (Date.now() - hiddenAt > 60_000) compare()
    })
  }

  function on(event: string, listener: (event: PageTransitionEvent) => void): void {
    addEventListener(event, listener as (event: Event) => void, { signal: ended.signal })
  }

  /** As `look`. Without an answer it asks again, and the caller does not wait for that. */
  function ask(refreshes = true, then: (error: unknown) => unknown = (error) => void again(error)): Promise<unknown> {
    isUnsure = !ended.signal.aborted
    return session.look(refreshes).catch(then)
  }

  function compare(): void {
    if (isHintMissing()) {
      if (!isBearer()) apply(null)
    } else if (Date.now() - session.lookedAt > 60_000) ask()
  }

  function isHintMissing(): boolean {
    const reaches = hasDocument && !isBearer() && (options.hint || new URL(session.url()).hostname === location.hostname)
    return reaches && !/(^| )auth_hint=/.test(document.cookie)
  }

  function apply(user: User | null): void {
    isUnsure = false
    const was = state.current.user
    state.change(user)
    if (areDifferent(was, user)) session.post('changed')
  }

  async function whoami(): Promise<WhoAmI | undefined> {
    const { changes } = session
    looking[changes] ??= whoamiNow().finally(() => delete looking[changes])
    const answer = await looking[changes]
    if (!answer || session.changes !== changes) return undefined
    session.csrf = answer.csrf_token
    return answer
  }

  async function whoamiNow(): Promise<WhoAmI> {
    session.lookedAt = Date.now()
    const response = await send('/whoami')
    const body = await jsonOf(response)
    if (!response.ok || !body?.['delivery']) throw errorOf(response, body)
    const answer = body as unknown as WhoAmI
    if (session.mode) return answer
    session.learn(answer.delivery)
    return session.mode === 'both' && !answer.user ? whoamiNow() : answer
  }

  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    return reach(session.route(path, true), withCredentials(session, undefined, init))
  }

  async function refreshOnce(isLate = false): Promise<void> {
    const { changes } = session
    const continued = await locked(session.lockName(), (waited) => underLock(waited || isLate, changes))
    if (session.changes === changes) await continued()
  }

  /** Calls no listener. Returns what follows when the lock is free. */
  async function underLock(isLate: boolean, changes: number): Promise<() => unknown> {
    const isOther = await session.reread()
    if (isOther && !session.tokens) return () => apply(null)
    if (isLate || isOther) {
      const answer = await whoami()
      if (!answer || answer.user)
        return () => {
          session.refreshes++ // of another tab
          apply(answer?.user ?? null)
        }
    }
    const response = await post().catch(post) // the token may be used, and then the grace period answers the second request
    const { ok, status } = response
    if (!ok)
      return () => {
        if (status === 429 || status >= 500) throw errorOf(response, null)
        return session.look(false)
      }
    const answer = (await response.json()) as Tokens
    if (answer.access_token && session.changes === changes) await session.keep(answer)
    return () => refreshed(answer.user_id)
  }

  function refreshed(userId: string): unknown {
    session.refreshes++
    session.lookedAt = Date.now()
    const { user } = state.current
    if (userId === user?.id) return session.post('refreshed')
    if (user) session.leave()
    return ask(false)
  }

  function post(): Promise<Response> {
    return send('/refresh', jsonInit('POST', { refresh_token: session.tokens?.refresh_token }))
  }

  async function stored(): Promise<Tokens | null> {
    try {
      const found = JSON.parse((await storage?.get(key)) || 'null')
      return typeof found?.access_token === 'string' ? found : null
    } catch {
      return session.tokens
    }
  }

  return session
}
