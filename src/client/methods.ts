import { errorOf, jsonInit, jsonOf, reach } from './error.js'
import { type authFetch, otherUser } from './fetch.js'
import { locked } from './lock.js'
import type { Session } from './session.js'
import type { Body, Call } from './table.js'
import type { WhoAmI } from './types.js'

/** Fields that show a credential. Such a request is sent once. */
const credentials = /password|code|credential|ticket|token/
/** An answer with these fields continues in a later request. */
const kept: Readonly<Record<string, string>> = { q: 'request_token', a: 'signup_token', m: 'mfa_token' }

/** At the first call that speaks with an authenticator. */
export const loadPasskeys = () => import('./passkeys.js')

/** Returns the function behind every method: sends an operation and returns its answer. */
export function caller(session: Session, fetchAs: ReturnType<typeof authFetch>): Call {
  const memory: Body = {}
  let config: Promise<void> | undefined

  const call: Call = async ({ method, path, flags }, args) => {
    const has = (flag: string) => flags.includes(flag)
    await session.start()
    if (has('k') && !session.delivery) await learn()
    let place = 0
    const filled = path.replace(/:\w+/g, () => encodeURIComponent(String(args[place++])))
    const { passkey, ...body } = { ...(args[place] as Body | undefined) }
    if (passkey === true) Object.assign(body, await (await loadPasskeys()).answerFor(call, path))
    const once = credentials.test(String(Object.keys(body)))
    for (const [flag, name] of Object.entries(kept)) if (has(flag)) body[name] = body[name] || memory[name]
    // The 401 of a method that is sent once would be final.
    if (once && has('t') && Date.now() - session.lookedAt > 60_000) await session.look().catch(() => {})
    const { tokens } = session
    if (has('t') && tokens) body['refresh_token'] = tokens.refresh_token
    if (has('o')) {
      session.changes++ // what is under way brings nobody back
      if (session.delivery === 'bearer') {
        await session.keep(null)
        signedOut()
        if (!tokens) return undefined
      }
    }
    const answer = await send(method, session.route(filled, has('k')), flags, body, once)
    for (const name of Object.values(kept)) memory[name] = answer?.[name] || memory[name]
    if (has('r')) return finish(answer ?? {})
    if (has('o')) {
      session.changes++
      signedOut()
    }
    if (has('s') || has('o')) await session.insist()
    return answer ?? undefined // 204 has no body
  }

  function signedOut(): void {
    session.state.set(null)
    session.post('changed')
  }

  /** @throws AuthClientError if the answer is a refusal, or if there is none */
  async function send(method: string, url: string, flags: string, body: Body, once: boolean): Promise<Body | null> {
    const person = session.state.now.user?.id
    const underLock: typeof fetch = (input, sent) =>
      locked(session.lockName(), async (waited) => {
        const other = waited && person && !/[ro]/.test(flags) && (await session.whoami())?.user
        if (other && other.id !== person) throw otherUser()
        return reach(input, sent)
      })
    const isGet = method === 'GET'
    const query = isGet ? String(new URLSearchParams(body as Record<string, string>)) : ''
    const rules = { once, send: /[sro]/.test(flags) ? underLock : reach }
    const response = await fetchAs(url + (query && '?') + query, isGet ? {} : jsonInit(method, body), rules)
    const answer = await jsonOf(response)
    if (!response.ok) throw errorOf(response, answer)
    return answer
  }

  /** Which routes a login needs. */
  function learn(): Promise<void> {
    config ??= send('GET', session.route('/client-config', false), '', {}, true).then(
      (answer) => session.learn(answer?.['delivery'] as WhoAmI['delivery']),
      (error) => {
        config = undefined
        throw error
      },
    )
    return config
  }

  /** The result of `logIn`. */
  async function finish(answer: Body): Promise<unknown> {
    const { tasks_required: tasks, access_token, refresh_token } = answer
    const told: Body = {}
    for (const name of ['password_required', 'return_to']) if (answer[name]) told[name] = answer[name]
    if (answer['mfa_required']) return { kind: 'second_factor', methods: answer['mfa_methods'] ?? ['otp'], ...told }
    if (Array.isArray(tasks) && tasks.length > 0) return { kind: 'tasks', tasks, ...told }
    if (answer['activation_required']) return { kind: 'activation_required', ...told }
    if (access_token) {
      session.delivery = 'bearer'
      // A confirmation without a new refresh token keeps the old one.
      const tokens = { access_token, refresh_token: refresh_token ?? session.tokens?.refresh_token }
      await session.keep(tokens as NonNullable<Session['tokens']>)
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
export function leaveFor(session: Session, key: string, { returnTo = '' } = {}): void {
  const query = returnTo && `?return_to=${encodeURIComponent(returnTo)}`
  location.assign(session.route(`/oauth/${encodeURIComponent(key)}/login`, false) + query)
}
