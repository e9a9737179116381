import { withCredentials } from './credentials.js'
import { errorOf, failure, jsonInit, jsonOf, reach } from './error.js'
import type { authFetch, FetchRules } from './fetch.js'
import { locked, shared } from './lock.js'
import type { Session } from './session.js'
import type { Body, Call } from './table.js'
import type { Tokens, WhoAmI } from './types.js'

/** Fields that show a credential. Such a request is sent once. */
const credentials = /password|code|credential|ticket|token/
/** An answer with these fields continues in a later request. */
const kept: Readonly<Record<string, string>> = { q: 'request_token', a: 'signup_token', m: 'mfa_token', x: 'task_token' }

/** Returns the function behind every method: sends an operation and returns its answer. */
export function caller(session: Session, fetchAs: ReturnType<typeof authFetch>): Call {
  let memory: Body = {}
  let logouts = 0

  const call: Call = async (line, args) => {
    const [, method = '', path = '', flags = ''] = /(\w*)(\S+) ?(.*)/.exec(line) as RegExpExecArray | []
    const has = (flag: string) => flags.includes(flag)
    const { current: now } = session.box
    await session.start()
    // A login or logout is for everybody, and the rest for the person whom the page showed.
    const asked = /[ro]/.test(flags) && !has('p') ? undefined : now
    const before = logouts
    if (has('k') && !session.mode) await learn()
    let place = 0
    const filled = path.replace(/:\w+/g, () => encodeURIComponent(args[place++] as string))
    const { passkey, ...body } = { ...(args[place] as Body | undefined) }
    if (passkey === true || has('w')) await (await import('./passkeys.js')).askAuthenticator(call, path, body, passkey)
    const once = credentials.test(Object.keys(body).join())
    for (const [flag, name] of Object.entries(kept)) if (has(flag)) body[name] = body[name] || memory[name]
    // The 401 of a method that is sent once would be final.
    if (once && has('t') && Date.now() - session.lookedAt > 60_000) await session.look().catch(() => {})
    const { tokens } = session
    addToken(flags, body)
    if (has('o')) {
      session.changes++ // what is under way brings nobody back
      logouts++
      memory = {}
      if (session.mode === 'bearer') {
        await session.keep(null)
        signedOut()
        if (!tokens) return undefined
      }
    }
    const answer = await send(method || 'POST', session.route(filled, has('k')), flags, body, { once, asked }, before)
    for (const name of Object.values(kept)) memory[name] = answer?.[name] || memory[name]
    if (has('r')) return finish(answer ?? {}, before !== logouts)
    if (has('o')) {
      session.changes++
      signedOut()
    }
    if (has('s')) await session.insist()
    return answer ?? undefined // 204 has no body
  }

  function signedOut(): void {
    session.box.set(null)
    session.post('changed')
  }

  /** @throws AuthClientError if the answer is a refusal, or if there is none */
  async function send(method: string, url: string, flags: string, body: Body, { once, asked }: FetchRules, before = 0) {
    const isGet = method === 'GET'
    const isLogin = flags.includes('r')
    const init = () => (isGet ? {} : jsonInit(method, body))
    const underLock: typeof fetch = (input) =>
      locked(session.lockName(), async (waited) => {
        if (asked) {
          const isOther = await session.reread()
          const user = (waited || isOther) && asked.user && (await session.whoami())?.user
          if (user && user.id !== asked.user?.id) throw failure('USER_CHANGED')
          addToken(flags, body)
        }
        const response = await reach(input, withCredentials(session, undefined, init()))
        if (isLogin && response.ok && before === logouts) await take(await jsonOf(response.clone()))
        return response
      })
    const query = isGet ? String(new URLSearchParams(body as Record<string, string>)) : ''
    const response = await fetchAs(url + (query && '?') + query, init(), { once, asked, send: /[sr]/.test(flags) ? underLock : reach })
    const answer = await jsonOf(response)
    if (!response.ok || (isLogin && !answer)) throw errorOf(response, answer)
    return answer
  }

  function addToken(flags: string, body: Body): void {
    if (flags.includes('t') && session.tokens) body['refresh_token'] = session.tokens.refresh_token
  }

  /** While the lock is held: until then, another tab would refresh with the old token. */
  async function take(answer: Body | null): Promise<void> {
    if (!answer?.['access_token']) return
    session.mode = 'bearer'
    // A confirmation without a new refresh token keeps the old one.
    const { access_token, refresh_token } = answer
    await session.keep({ access_token, refresh_token: refresh_token ?? session.tokens?.refresh_token } as Tokens)
  }

  /** Which routes a login needs. */
  const learn = shared(async () => {
    const answer = await send('GET', session.route('/client-config', false), '', {}, { once: true })
    session.learn(answer?.['delivery'] as WhoAmI['delivery'])
  })

  /** The result of `logIn`. */
  async function finish(answer: Body, isLate: boolean): Promise<unknown> {
    const tasks = answer['tasks_required'] as readonly string[] | undefined
    const told: Body = {}
    for (const name of ['password_required', 'return_to', 'device_trusted']) if (answer[name]) told[name] = answer[name]
    if (answer['mfa_required']) return { kind: 'second_factor', methods: answer['mfa_methods'] ?? ['otp'], ...told }
    if (tasks?.length) return { kind: 'tasks', tasks, ...told }
    if (answer['activation_required']) return { kind: 'activation_required', ...told }
    if (isLate) return { kind: 'session', user: null, ...told }
    if (!('access_token' in answer)) session.mode = 'session'
    else if (!answer['access_token']) session.mode = session.mode === 'both' ? 'both' : 'cookie'
    session.changes++
    await session.insist()
    session.post('changed')
    return { kind: 'session', user: session.box.current.user, ...told }
  }

  return call
}

/** The page leaves for the provider. */
export function leaveFor(session: Session, key: string, { returnTo = '' } = {}): void {
  const query = returnTo && `?return_to=${encodeURIComponent(returnTo)}`
  location.assign(session.route(`/oauth/${encodeURIComponent(key)}/login`, false) + query)
}
