import { describe, expect, test } from 'vitest'
import { createKnexStore, type PasswordHasher } from '../../src'
import { addUser } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { sendRaw } from '../support/send-raw'
import { amrOf, type LocalHost, newAddress, onLocal, password, pending, post, signedIn, userOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe.each(await databases())('login, on $name', (database) => {
  const { start } = onLocal(database)

  test('a password login answers the login response with amr pwd, repeated by refresh', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)

    const { status, body } = await post(host, '/login', { email, password })

    expect([status, body]).toEqual([
      200,
      { user_id: userId, access_token: expect.any(String), refresh_token: expect.any(String), mfa_required: false, mfa_token: null },
    ])
    expect(amrOf(body.access_token)).toEqual(['pwd'])
    const refreshed = await post(host, '/refresh', { refresh_token: body.refresh_token })
    expect(amrOf(refreshed.body.access_token)).toEqual(['pwd'])
  })

  test('(f) a local login sets last_login_at, and leaves updated_at; activation, reset and a failed login set neither', async () => {
    const host = await start()
    const { email } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
    await post(host, '/login', { email, password: 'wrong' })
    const before = await userOf(host, email)
    expect(before.lastLoginAt).toBeNull()

    await post(host, '/login', { email, password })

    expect(await userOf(host, email)).toEqual({ ...before, lastLoginAt: host.clock.now() })
    const fresh = await pending(host)
    await post(host, `/activate/${fresh.link}`)
    expect((await userOf(host, fresh.email)).lastLoginAt).toBeNull()
  })

  test('R-075 a weaker hash is replaced at the next good login, and by no failed one; a hasher that cannot does not fail the login', async () => {
    const fast = fastHasher()
    const stronger = (hash: PasswordHasher['hash']): PasswordHasher => ({
      hash,
      verify: (stored, text) => fast.verify(stored.replace('strong$', ''), text),
      needsRehash: (stored) => !stored.startsWith('strong$'),
    })
    const host = await start({ options: { passwordHasher: stronger(async (text) => `strong$${await fast.hash(text)}`) } })
    const broken = await start({ options: { passwordHasher: stronger(() => Promise.reject(new Error('out of memory'))) } })
    const { email, hashedPassword } = await addUser(host.knex, { email: newAddress(), hashedPassword: await fast.hash(password) })
    const stored = async () => (await userOf(host, email)).hashedPassword

    expect((await post(broken, '/login', { email, password })).status).toBe(200)
    expect((await post(host, '/login', { email, password: 'wrong' })).status).toBe(401)
    expect(await stored()).toBe(hashedPassword)
    expect(broken.logs.text()).toContain('could not be hashed again')

    expect((await post(host, '/login', { email, password })).status).toBe(200)
    expect(await stored()).toBe(`strong$${hashedPassword}`)
    expect((await userOf(host, email)).passwordSetAt).not.toEqual(host.clock.now())
    expect((await post(host, '/login', { email, password })).status).toBe(200)
  })

  test.each([
    ['64 characters and one more', 'k'.repeat(63)],
    ['72 bytes and one more', 'k'.repeat(71)],
    ['73 bytes and one more', 'k'.repeat(72)],
    ['200 characters and one more', 'mn'.repeat(99).concat('x')],
    ['emoji', '🌊🏔️🌲🦊🌙🔥🪁🧭🛶🏮'],
    ['a NUL in the middle', 'before the nul\0after it '],
    ['blanks around it', '   twelve and more   '],
    ['capitals', 'Ümlaut And CAPITALS'],
  ])('R-071 the password is exactly what was sent, to its last character: %s', async (_what, start_) => {
    const host = await start()
    const [chosen, ends] = [`q${start_}ä`, ['b', '', 'ä ', 'Ä']]
    const { email, link } = await pending(host, { password: chosen })
    await post(host, `/activate/${link}`)

    for (const end of ends) expect((await post(host, '/login', { email, password: `q${start_}${end}` })).status, end).toBe(401)
    expect((await post(host, '/login', { email, password: chosen })).status).toBe(200)
    if (chosen.includes('\0')) expect((await post(host, '/login', { email, password: chosen.split('\0')[0] })).status).toBe(401)
  })
})

describe('login', () => {
  const { start } = onLocal(sqlite)

  test('R-071 ill-formed UTF-16 is refused at signup and at login, since encoded it would all be one password', async () => {
    const host = await start()
    for (const path of ['/signup', '/login']) {
      const body = `{"email":"ana@example.test","password":"\\ud800 a quiet harbour"}`
      const answer = await sendRaw(host.app, { path: `/auth${path}`, headers: { 'Content-Type': 'application/json' }, body })
      expect([answer.status, answer.body['details']]).toEqual([422, { errors: [{ path: 'password', rule: 'string.malformed' }] }])
    }
  })

  /** Whoever cannot log in, and why. */
  async function refused(host: LocalHost): Promise<Record<string, { email: string; password: string }>> {
    const active = await signedIn(host)
    const deactivated = await signedIn(host)
    await host.auth.service.deactivate(deactivated.userId)
    const social = newPerson()
    await signIn(host, host.browser(), { profile: social })
    return {
      'an unknown email': { email: newAddress(), password },
      'a wrong password': { email: active.email, password: 'not this one either' },
      'an inactive user, the right password': { email: deactivated.email, password },
      'a pending account, the right password': { email: (await pending(host)).email, password },
      'a social-only account': { email: social.email, password },
    }
  }

  test('R-073 unknown email, wrong password, inactive, pending, social-only: byte-identical answers, and headers but for the date', async () => {
    const host = await start()
    const seen: string[] = []
    for (const [what, body] of Object.entries(await refused(host))) {
      const one = await start() // budgets of its own
      const { status, headers, text } = await sendRaw(one.app, {
        path: '/auth/login',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      const { date: _date, ...others } = headers
      expect(status, what).toBe(401)
      seen.push(JSON.stringify([others, text]))
    }
    expect(seen).toHaveLength(5)
    expect(new Set(seen).size, seen.join('\n')).toBe(1)
    expect(seen[0]).toContain(JSON.stringify('{"detail":"invalid email or password","code":"UNAUTHORIZED","details":{}}').slice(1, -1))
  })

  test('R-073 each of them costs one verification of a password and no hash, as the right one does', async () => {
    const verified: string[] = []
    const fast = fastHasher()
    const hasher: PasswordHasher = {
      hash: (text) => fast.hash(text),
      needsRehash: () => false,
      verify: (hash, text) => {
        verified.push(hash)
        return fast.verify(hash, text)
      },
    }
    const host = await start({ options: { passwordHasher: hasher, throttle: { login: false } } })
    const bodies = await refused(host)
    await post(host, '/login', { email: newAddress(), password }) // makes the dummy hash
    const right = await signedIn(host)
    for (const [what, body] of [...Object.entries(bodies), ['the right one', { email: right.email, password }] as const]) {
      const [before, hashed] = [verified.length, fast.hashed]
      await post(host, '/login', body)
      expect([verified.length - before, fast.hashed - hashed], what).toEqual([1, 0])
    }
  })

  test.each([
    ['throws', () => Promise.reject(new Error('the hasher is broken'))],
    ['throws at once', () => raise()],
    ['answers "true"', () => Promise.resolve('true' as unknown as boolean)],
    ['answers 1', () => Promise.resolve(1 as unknown as boolean)],
  ])('R-074 a hasher that %s is a failed login, never a 500 and never a success', async (_what, verify) => {
    const fast = fastHasher()
    const host = await start()
    const { email } = await signedIn(host)
    const broken = await start({ options: { passwordHasher: { hash: (text) => fast.hash(text), needsRehash: () => false, verify } } })

    const { status, body } = await post(broken, '/login', { email, password })

    expect([status, body.code, body.detail]).toEqual([401, 'UNAUTHORIZED', 'invalid email or password'])
    if (_what.startsWith('throws')) expect(broken.logs.text()).toContain('the password hasher failed')
  })

  test.each(['', 'garbage', '$argon2id$', '$argon2id$v=19$m=2097152,t=2,p=1$c2FsdHNhbHQ$aGFzaA', '$2b$12$garbage', 'null'])(
    'R-074 the stored hash %j, under the real hasher: a failed login, logged',
    async (hashedPassword) => {
      const host = await start({ options: { passwordHasher: await import('../../src').then((library) => library.argon2idHasher()) } })
      const { email } = await addUser(host.knex, { email: newAddress(), hashedPassword })

      const { status, body } = await post(host, '/login', { email, password })

      expect([status, body.code]).toEqual([401, 'UNAUTHORIZED'])
      expect(host.logs.entries.length).toBeGreaterThan(0)
      expect(host.logs.text()).not.toContain(email)
    },
  )

  test('R-077 an account of social login has no usable password: nothing logs in, and a change asks for the current one', async () => {
    const host = await start()
    const profile = newPerson()
    const session = await signIn(host, host.browser(), { profile })
    const login = (given: unknown) => post(host, '/login', { email: profile.email, password: given })

    expect((await userOf(host, profile.email)).passwordSetAt).toBeNull()
    for (const given of ['', null, undefined, 0, false, [], {}, [''], ['a quiet harbour in winter']])
      expect([401, 422], JSON.stringify(given)).toContain((await login(given)).status)
    const bearer = { Authorization: `Bearer ${session.body.access_token}` }
    for (const current of ['', null, undefined, password]) {
      const body = { current_password: current, new_password: 'nine green bicycles' }
      expect([401, 422], JSON.stringify(current)).toContain((await post(host, '/password-change', body, bearer)).status)
    }
    // No hash of anything, and nothing that could be typed in.
    const { hashedPassword } = await userOf(host, profile.email)
    expect(hashedPassword).toMatch(/^![A-Za-z0-9_-]{43}$/)
    for (const given of [hashedPassword, hashedPassword.slice(1)]) expect((await login(given)).status).toBe(401)
  })

  test('R-077 a login against an account of social login costs what an unknown address costs, and the hasher sees no row of it', async () => {
    const verified: string[] = []
    const inner = fastHasher()
    const verify: PasswordHasher['verify'] = (hash, given) => {
      verified.push(hash)
      return inner.verify(hash, given)
    }
    const host = await start({ options: { passwordHasher: { ...inner, verify } } })
    const profile = newPerson()
    await signIn(host, host.browser(), { profile })

    const unknown = await post(host, '/login', { email: newAddress(), password })
    const known = await post(host, '/login', { email: profile.email, password })

    expect([known.status, known.body]).toEqual([unknown.status, unknown.body])
    expect(verified).toEqual(Array(2).fill(expect.stringMatching(/^test\$/)))
    expect(verified[1]).toBe(verified[0])
    expect(host.logs.text()).not.toMatch(/password hash/)
  })

  test('another social login afterwards does not prove a password, and a reset gives one', async () => {
    const host = await start()
    const profile = newPerson()
    await signIn(host, host.browser(), { profile })
    await post(host, '/password-reset/request', { email: profile.email })
    const mail = await host.mails.next({ kind: 'password_reset', to: profile.email })
    const token = new URL(String(mail.url)).pathname.split('/').at(-1)
    await post(host, '/password-reset/confirm', { token, new_password: password })

    expect((await post(host, '/login', { email: profile.email, password })).status).toBe(200)
    expect((await createKnexStore({ knex: host.knex }).users.findByEmail(profile.email))?.passwordSetAt).toEqual(host.clock.now())
  })
})

function raise(): never {
  throw new Error('the hasher is broken at once')
}
