import { withCredentials } from './credentials.js'
import { errorOf, failure, jsonInit, jsonOf, lose, reach } from './error.js'
import type { authFetch } from './fetch.js'
import { locked, shared } from './lock.js'
import type { Session } from './session.js'
import { areDifferent } from './state.js'
import type { Body, Call } from './table.js'
import type { Tokens, WhoAmI } from './types.js'

/** Fields that show a credential. Such a request is sent once. */
const credentials = /password|code|credential|ticket|token/
/** An answer with these fields continues in a later request. */
const kept: Readonly<Record<string, string>> = { a: 'signup_token', m: 'mfa_token', x: 'task_token' }

/** The part that a page needs when somebody is signed in. @throws AuthClientError `NETWORK_ERROR` */
const loaded = () => import('./passkeys.js').catch(lose)
/** Whether the browser can tell authenticators about the person. Not in Node. */
const signals = () =>
  (globalThis as { PublicKeyCredential?: { signalCurrentUserDetails?: unknown } }).PublicKeyCredential?.signalCurrentUserDetails

/** Returns the function behind every method: sends an operation and returns its answer. */
export function caller(session: Session, fetchAs: ReturnType<typeof authFetch>): Call {
  let memory: Body = {}
  let logouts = 0
  /** False: the router said so. */
  let hasPasskeys: boolean | undefined

  const call: Call = async (line, args) => {
    const { current: now } = session.box
    const found = line.includes('/') ? line : (await loaded()).routes[line]
    const [, method = '', path = '', flags = ''] = /(\w*)(\S+) ?(.*)/.exec(found as string) as RegExpExecArray | []
    const has = (flag: string) => flags.includes(flag)
    const isLogin = has('r')
    await session.start()
    // A login or logout is for everybody, and the rest for the person whom the page showed.
    const asked = (isLogin || has('o')) && !has('p') ? undefined : now
    const before = logouts
    if (/[kq]/.test(flags) && !session.mode) await learn()
    let place = 0
    const filled = path.replace(/:\w+/g, () => segment(args[place++]))
    const { passkey, ...body } = { ...(args[place] as Body | undefined) }
    if (passkey === true || has('w')) await (await loaded()).askAuthenticator(call, path, body, passkey)
    const once = credentials.test(Object.keys(body).join())
    const addToken = () => {
      if (has('t') && session.tokens) body['refresh_token'] = session.tokens.refresh_token
    }
    for (const [flag, name] of Object.entries(kept)) if (has(flag)) body[name] = body[name] || memory[name]
    // What the mail is for. With cookies, the browser knows the newest request of all tabs.
    const purpose = (/email-\w+|password|$/.exec(path) as RegExpExecArray)[0]
    if (has('q') && session.mode === 'bearer') body['request_token'] = body['request_token'] || memory[purpose]
    // The 401 of a method that is sent once would be final.
    if (once && has('t') && Date.now() - session.lookedAt > 60_000) await session.look().catch(() => {})
    const { tokens } = session
    addToken()
    if (has('o')) {
      session.changes++ // what is under way brings nobody back
      logouts++
      memory = {}
      if (session.mode === 'bearer') {
        await session.keep(null)
        session.leave()
        if (!tokens) return undefined
      }
    }

    const isGet = method === 'GET'
    const init = () => (isGet ? {} : jsonInit(method || 'POST', body))
    const underLock: typeof fetch = (input) =>
      locked(session.lockName(), async (waited) => {
        if (asked) {
          const isOther = await session.reread()
          if ((waited || isOther) && areDifferent(asked.user, (await session.whoami())?.user)) throw failure('USER_CHANGED')
          addToken()
        }
        const response = await reach(input, withCredentials(session, undefined, init()))
        // While the lock is held: until then, another tab would refresh with the old token.
        const login = isLogin && response.ok && before === logouts ? await jsonOf(response.clone()) : null
        if (login?.['access_token']) {
          session.mode = 'bearer'
          if (!has('p')) session.changes++ // a refresh that is under way is for the person before
          await session.keep(login as unknown as Tokens)
        }
        return response
      })
    const query = isGet && args[place] ? `?${new URLSearchParams(body as Record<string, string>)}` : ''
    const response = await fetchAs(session.route(filled, has('k')) + query, init(), {
      once,
      asked,
      send: isLogin || has('s') ? underLock : reach,
    })
    const answer = await jsonOf(response)
    // @throws AuthClientError
    if (!response.ok || (isLogin && !answer)) throw errorOf(response, answer)
    for (const name of Object.values(kept)) memory[name] = answer?.[name] || memory[name]
    memory[purpose] = answer?.['request_token'] || memory[purpose]
    const result = isLogin ? await finish(answer as Body, before !== logouts) : (answer ?? undefined) // 204 has no body
    if (has('o')) {
      session.changes++
      session.leave()
    }
    if (has('s')) await session.insist()
    if (/[rg]/.test(flags) && !has('p') && session.box.current.user && hasPasskeys !== false && signals())
      loaded().then(
        ({ signal }) => signal(call),
        () => {},
      )
    return result
  }

  /** Which routes a login needs. */
  const learn = shared(async () => {
    const { delivery, features } = (await call('GET/client-config', [])) as Pick<WhoAmI, 'delivery'> & { features: { passkeys: boolean } }
    session.learn(delivery)
    hasPasskeys = features.passkeys
  })

  /** The result of `logIn`. */
  async function finish(answer: Body, isLate: boolean): Promise<unknown> {
    const tasks = answer['tasks_required'] as readonly string[] | undefined
    const told: Body = {}
    for (const name of ['password_required', 'return_to', 'device_trusted']) if (answer[name]) told[name] = answer[name]
    if (answer['mfa_required']) return { kind: 'second_factor', methods: answer['mfa_methods'] ?? ['otp'], ...told }
    if (tasks?.length) return { kind: 'tasks', tasks, ...told }
    if (answer['activation_required']) return { kind: 'activation_required', ...told }
    if (!isLate) {
      if (!('access_token' in answer)) session.mode = 'session'
      else if (!answer['access_token'] && session.mode !== 'both') session.mode = 'cookie'
      session.changes++
      await session.insist()
      session.post('changed')
    }
    return { kind: 'session', user: isLate ? null : session.box.current.user, ...told }
  }

  return call
}

/** One part of a path. @throws TypeError for a part that would make it the path of another route */
export function segment(part: unknown): string {
  if (/^\.{0,2}$/.test(part as string)) throw new TypeError(`path: ${part}`)
  return encodeURIComponent(part as string)
}

/** The page leaves for the provider. */
export function leaveFor(session: Session, key: string, { returnTo = '', invitation = '' } = {}): void {
  const query = new URLSearchParams()
  if (returnTo) query.set('return_to', returnTo)
  if (invitation) query.set('invitation', invitation)
  const url = session.route(`/oauth/${segment(key)}/login`, false)
  location.assign(`${url}?${query}`.replace(/\?$/, ''))
}
