import { errorOf, jsonOf, reach } from './error.js'
import { type authFetch, otherUser } from './fetch.js'
import { hasDocument, locked } from './lock.js'
import type { ClientConfig } from './operations.js'
import type { Session } from './session.js'
import type { Body, Call } from './table.js'

/** Fields that show a credential. Such a request is sent once. */
const credentials = /password|code|credential|ticket|token/
/** Answers with these fields continue in a later request. */
const kept: Readonly<Record<string, string>> = { q: 'request_token', a: 'signup_token', m: 'mfa_token' }

/** Returns the function behind every method: sends an operation and returns its answer. */
export function caller(session: Session, fetchAs: ReturnType<typeof authFetch>): Call {
  const memory: Body = {}
  let config: Promise<void> | undefined

  const call: Call = async ({ method, path, flags }, args) => {
    const has = (flag: string) => flags.includes(flag)
    await session.start()
    if (has('k')) await learn()
    const names = path.match(/:\w+/g) ?? []
    const filled = names.reduce((text, name, place) => text.replace(name, encodeURIComponent(String(args[place]))), path)
    const given = { ...(args[names.length] as Body | undefined) }
    const { passkey, ...body } = given
    if (passkey === true) Object.assign(body, await (await import('./passkeys.js')).answerFor(call, path))
    const once = Object.keys(body).some((name) => credentials.test(name))
    for (const [flag, name] of Object.entries(kept)) if (has(flag) && memory[name] && !body[name]) body[name] = memory[name]
    // Its 401 would be final.
    if (once && has('t') && Date.now() - session.lookedAt > 60_000) await session.look().catch(() => {})
    const { tokens } = session
    if (has('t') && tokens && !body['refresh_token']) body['refresh_token'] = tokens.refresh_token
    const isLogout = path === '/logout'
    if (isLogout) {
      session.changes++ // what is under way brings nobody back
      if (session.delivery === 'bearer') {
        await session.keep(null)
        session.state.set(null)
        session.post('changed')
        if (!tokens) return undefined
      }
    }
    const response = await send(method, pathOf(filled, has('k')), { body, once, isLocked: has('s'), isLogin: has('r') || isLogout })
    const answer = (await jsonOf(response)) ?? undefined // 204 has no body
    for (const name of Object.values(kept)) if (typeof answer?.[name] === 'string') memory[name] = answer[name]
    if (has('r')) return finish(answer ?? {})
    if (isLogout) {
      session.changes++
      session.state.set(null)
    }
    if (has('s') || has('w')) await session.insist()
    if (isLogout) session.post('changed')
    return answer
  }

  function pathOf(path: string, hasCookieRoute: boolean): string {
    return session.delivery === 'both' && hasCookieRoute ? `/cookie${path}` : path
  }

  async function send(
    method: string,
    path: string,
    { body, once, isLocked, isLogin }: { body: Body; once: boolean; isLocked: boolean; isLogin: boolean },
  ): Promise<Response> {
    const person = session.state.now.user?.id
    const isGet = method === 'GET'
    const query = isGet && Object.keys(body).length > 0 ? `?${new URLSearchParams(body as Record<string, string>)}` : ''
    const init = isGet ? {} : { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
    const underLock: typeof fetch = (input, sent) =>
      locked(session.lockName(), async (waited) => {
        const other = waited && !isLogin && person && (await session.whoami())?.user
        if (other && other.id !== person) throw otherUser()
        return reach(input, sent)
      })
    const response = await fetchAs(session.url() + path + query, init, { once, send: isLocked ? underLock : reach })
    if (!response.ok) throw await errorOf(response)
    return response
  }

  /** Which routes a login needs. */
  async function learn(): Promise<void> {
    if (session.delivery) return
    config ??= (async () => {
      const response = await send('GET', '/client-config', { body: {}, once: true, isLocked: false, isLogin: true })
      session.learn(((await response.json()) as ClientConfig).delivery)
    })().catch((error) => {
      config = undefined
      throw error
    })
    await config
  }

  /** The result of `logIn`. */
  async function finish(answer: Body): Promise<unknown> {
    const { password_required, return_to, tasks_required: tasks, access_token, refresh_token } = answer
    const told = { ...(password_required ? { password_required } : {}), ...(return_to ? { return_to } : {}) }
    if (answer['mfa_required']) return { kind: 'second_factor', methods: answer['mfa_methods'] ?? ['otp'], ...told }
    if (Array.isArray(tasks) && tasks.length > 0) return { kind: 'tasks', tasks, ...told }
    if (answer['activation_required']) return { kind: 'activation_required', ...told }
    if (typeof access_token === 'string') {
      session.delivery = 'bearer'
      // A confirmation without a new refresh token keeps the old one.
      const kept = refresh_token ?? session.tokens?.refresh_token
      await session.keep({ access_token, refresh_token: kept as string })
    } else if (!('access_token' in answer)) session.delivery = 'session'
    else if (session.delivery !== 'both') session.delivery = 'cookie'
    session.changes++
    await session.insist()
    session.post('changed')
    return { kind: 'session', user: session.state.now.user, ...told }
  }

  return call
}

/** The page leaves for the provider. */
export function leaveFor(session: Session, key: string, { returnTo }: { returnTo?: string } = {}): void {
  if (!hasDocument) throw new TypeError('providers.logIn() needs a page.')
  const query = returnTo ? `?return_to=${encodeURIComponent(returnTo)}` : ''
  location.assign(`${session.url()}/oauth/${encodeURIComponent(key)}/login${query}`)
}
