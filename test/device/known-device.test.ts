import { describe, expect, test } from 'vitest'
import { createKnexStore, purgeExpired } from '../../src'
import { bearerOf, type LocalHost, type LocalOptions, onLocal, otherPassword, password, post, signedIn, userOf } from '../local/people'
import { cookiePair, type HttpResponse } from '../social/redirect-steps'
import { databases } from '../support/databases'

const wrong = 'a loud harbour in summer'
const once = { attempts: 1, windowSeconds: 900 }
const throttle = { login: { pair: once, email: once, client: false }, signup: false, links: false, mail: false, routes: false } as const

interface Person {
  email: string
  userId: string
  token: string
  refreshToken: string
}

describe.each(await databases())('a known device on $name', (database) => {
  const { start } = onLocal(database)
  const open = (settings: object = {}, options: LocalOptions['options'] = {}) =>
    start({ settings: { tokenDelivery: 'both', ...settings }, options: { throttle, ...options } })

  const logIn = (host: LocalHost, email: string, given: string, presented: { cookie?: string; previous_token?: string } = {}) => {
    const { cookie, ...body } = presented
    return post(host, '/cookie/login', { email, password: given, ...body }, cookie === undefined ? {} : { Cookie: cookie })
  }
  const device = (response: HttpResponse) => cookiePair(response, 'auth_device') ?? ''

  /** Signed in in a browser, which keeps its cookies. */
  async function atHome(host: LocalHost) {
    const { email, userId } = await signedIn(host)
    const login = await logIn(host, email, password)
    const user = await userOf(host, email)
    const refresh = cookiePair(login, 'refresh_token') ?? ''
    return { email, userId, user, cookie: device(login), refresh, all: [device(login), refresh].join('; ') }
  }

  /** A stranger uses up what the address has. */
  async function lockOut(host: LocalHost, email: string): Promise<void> {
    await logIn(host, email, wrong)
    expect((await logIn(host, email, password)).status, 'strangers are kept out').toBe(429)
  }

  /** Whether the device gets in where a stranger does not. */
  async function isKnown(host: LocalHost, email: string, presented: { cookie?: string; previous_token?: string }, given = password) {
    const { status } = await logIn(host, email, given, presented)
    if (status !== 200 && status !== 429) throw new Error(`login answered ${status}`)
    return status === 200
  }

  test('X15: the owner of a locked address gets in by the cookie, or in an app by previous_token', async () => {
    const host = await open()
    const [ana, bruno] = [await atHome(host), await signedIn(host)]
    for (const { email } of [ana, bruno]) await lockOut(host, email)
    expect(await isKnown(host, ana.email, { cookie: ana.cookie })).toBe(true)
    const inBody = { email: bruno.email, password, previous_token: bruno.refreshToken }
    expect((await post(host, '/login', inBody)).status).toBe(200)
    expect((await post(host, '/session/login', inBody)).status).toBe(200)
    const service = host.auth.service.logIn({ email: bruno.email, password, previousToken: bruno.refreshToken })
    expect((await service).kind).toBe('session')
  })

  test('X15: a device has ten attempts of its own; when they are used up it counts as a stranger, and another device is not touched', async () => {
    const host = await open()
    const person = await atHome(host)
    const other = device(await logIn(host, person.email, password))
    const told: unknown[] = []
    host.auth.events.on('throttled', (payload) => told.push(payload))
    const guesses: number[] = []
    for (let count = 0; count < 13; count++) guesses.push((await logIn(host, person.email, wrong, { cookie: person.cookie })).status)
    expect(guesses).toEqual([...Array(11).fill(401), 429, 429])
    expect(told.length, 'only a refusal is told').toBe(2)
    expect(await isKnown(host, person.email, { cookie: person.cookie })).toBe(false)
    expect(await isKnown(host, person.email, { cookie: other })).toBe(true)
    host.clock.advance(900)
    expect(await isKnown(host, person.email, { cookie: person.cookie })).toBe(true)
  })

  test('ten guesses of a device at once are all that are looked at, and a right login forgets them', async () => {
    const host = await open()
    const person = await atHome(host)
    await lockOut(host, person.email)
    const burst = await Promise.all(Array.from({ length: 30 }, () => logIn(host, person.email, wrong, { cookie: person.cookie })))
    expect(burst.filter(({ status }) => status === 401)).toHaveLength(10)
    host.clock.advance(900)
    for (const round of [1, 2]) {
      for (let count = 0; count < 9; count++) expect((await logIn(host, person.email, wrong, { cookie: person.cookie })).status).toBe(401)
      expect([round, await isKnown(host, person.email, { cookie: person.cookie })]).toEqual([round, true])
    }
  })

  type Home = Awaited<ReturnType<typeof atHome>>
  const asSession = (host: LocalHost, { refresh }: Home) => refreshed(host, refresh.replace('refresh_token=', ''))
  async function refreshed(host: LocalHost, refreshToken: string): Promise<{ token: string; refreshToken: string }> {
    const { body } = await post(host, '/refresh', { refresh_token: refreshToken })
    return { token: body.access_token, refreshToken: body.refresh_token }
  }

  const stays: Record<string, (host: LocalHost, person: Home) => Promise<string | undefined>> = {
    'a logout of this browser': async (host, person) => device(await post(host, '/cookie/logout', {}, { Cookie: person.all })),
    'the expiry of its session': async (host) => void host.clock.advance(40 * 86_400),
    'a refresh of its session': async (host, person) => void (await asSession(host, person)),
    'the end of another session': async (host, person) => {
      const other = await logIn(host, person.email, password)
      await post(host, '/cookie/logout', {}, { Cookie: cookiePair(other, 'refresh_token') ?? '' })
    },
    'a new session of another device that ends the others but this one': async (host, person) => {
      await logIn(host, person.email, password)
      const { token } = await asSession(host, person)
      expect((await post(host, '/sessions/revoke-others', {}, bearerOf({ token }))).status).toBe(204)
    },
  }

  test.each(Object.keys(stays))('survives %s', async (what) => {
    const host = await open()
    const person = await atHome(host)
    const cookie = (await stays[what]?.(host, person)) ?? person.cookie
    await lockOut(host, person.email)
    expect(await isKnown(host, person.email, { cookie })).toBe(true)
  })

  const ends: Record<string, (host: LocalHost, person: Home) => Promise<string | undefined>> = {
    'a new password': async (host, person) => {
      const { token } = await asSession(host, person)
      const body = { current_password: password, new_password: otherPassword }
      expect((await post(host, '/password-change', body, bearerOf({ token }))).status).toBe(204)
      return otherPassword
    },
    'a new address': async (host, { user }) => {
      const { users } = createKnexStore({ knex: host.knex })
      await users.update(user.id, { email: `moved-${user.email}` })
      const changes = { hashedPassword: await host.hasher.hash(otherPassword), passwordSetAt: host.clock.now() }
      await users.update(user.id, { email: user.email, ...changes })
      return otherPassword
    },
    'DELETE /sessions/:id': async (host, person) => {
      const other = await host.auth.service.logIn({ email: person.email, password })
      const token = other.kind === 'session' ? other.accessToken : ''
      const list = await host.browser().get('/auth/sessions').set(bearerOf({ token }))
      for (const { id, is_current: isCurrent } of list.body as { id: string; is_current: boolean }[])
        if (!isCurrent) expect((await host.browser().delete(`/auth/sessions/${id}`).set(bearerOf({ token }))).status).toBe(204)
      return undefined
    },
    'revoke-others of another session': async (host, person) => {
      const other = await host.auth.service.logIn({ email: person.email, password })
      const token = other.kind === 'session' ? other.accessToken : ''
      expect((await post(host, '/sessions/revoke-others', {}, bearerOf({ token }))).status).toBe(204)
      return undefined
    },
    'a logout of all sessions, in this browser': async (host, person) => {
      expect((await post(host, '/cookie/logout', { all_sessions: true }, { Cookie: person.all })).status).toBe(204)
      return undefined
    },
    'revokeSessions by an administrator': async (host, person) => void (await host.auth.service.revokeSessions(person.userId)),
    'the purge of its session, which may have been one that was ended': async (host, person) => {
      await host.auth.service.revokeSessions(person.userId)
      await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now() })
      return undefined
    },
  }

  test.each(Object.keys(ends))('ends with %s', async (what) => {
    const host = await open()
    const person = await atHome(host)
    const chosen = (await ends[what]?.(host, person)) ?? password
    host.clock.advance(901)
    await logIn(host, person.email, wrong)
    expect(await isKnown(host, person.email, { cookie: person.cookie }, chosen)).toBe(false)
  })

  test('opens nothing: without the password it is a failed login, and for another account it is no device', async () => {
    const host = await open()
    const [ana, bruno] = [await atHome(host), await atHome(host)]
    expect((await logIn(host, ana.email, wrong, { cookie: ana.cookie })).status).toBe(401)
    await lockOut(host, bruno.email)
    expect(await isKnown(host, bruno.email, { cookie: ana.cookie })).toBe(false)
    expect(await isKnown(host, bruno.email, { previous_token: ana.refresh.replace('refresh_token=', '') })).toBe(false)
  })

  const tokens: Record<string, [isKnown: boolean, (host: LocalHost, person: Person) => Promise<string>]> = {
    'the present refresh token': [true, async (_host, { refreshToken }) => refreshToken],
    'one that was used': [
      true,
      async (host, { refreshToken }) => {
        await refreshed(host, refreshToken)
        return refreshToken
      },
    ],
    'an expired one': [
      true,
      async (host, { refreshToken }) => {
        host.clock.advance(40 * 86_400)
        return refreshToken
      },
    ],
    'an expired one, whose owner signed out everywhere since': [
      false,
      async (host, { refreshToken, userId }) => {
        host.clock.advance(40 * 86_400)
        await host.auth.service.revokeSessions(userId)
        return refreshToken
      },
    ],
    'one whose session was logged out': [
      false,
      async (host, { refreshToken }) => {
        await host.auth.service.logOut(refreshToken)
        return refreshToken
      },
    ],
    'one with another MAC': [false, async (_host, { refreshToken }) => refreshToken.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'))],
    'an access token': [false, async (_host, { token }) => token],
    'a session cookie': [
      false,
      async (host, { email }) =>
        (cookiePair(await post(host, '/session/login', { email, password }), 'auth_session') ?? '').replace('auth_session=', ''),
    ],
    junk: [false, async () => 'x'.repeat(112)],
  }

  test.each(Object.keys(tokens))('previous_token: %s', async (what) => {
    const host = await open()
    const person = await signedIn(host)
    const [expected, make] = tokens[what] ?? never()
    const previousToken = await make(host, person)
    await lockOut(host, person.email)
    expect(await isKnown(host, person.email, { previous_token: previousToken })).toBe(expected)
  })

  test('without a table of sessions the digest alone decides: an expired token counts, and every refresh of it is one device', async () => {
    const store = createKnexStore({ knex: (await open()).knex, sessions: false })
    const host = await open({}, { store })
    const person = await atHome(host)
    const { email } = person
    const first = person.refresh.replace('refresh_token=', '')
    const second = (await refreshed(host, first)).refreshToken
    await lockOut(host, email)
    for (let count = 0; count < 10; count++)
      expect((await logIn(host, email, wrong, { previous_token: count % 2 ? first : second })).status).toBe(401)
    expect(await isKnown(host, email, { previous_token: second })).toBe(false)
    expect(await isKnown(host, email, { cookie: person.cookie })).toBe(true)
    host.clock.advance(40 * 86_400)
    await lockOut(host, email)
    expect(await isKnown(host, email, { previous_token: first })).toBe(true)
    const changes = { hashedPassword: await host.hasher.hash(otherPassword), passwordSetAt: host.clock.now() }
    await createKnexStore({ knex: host.knex }).users.update(person.userId, changes)
    host.clock.advance(901)
    await logIn(host, email, wrong)
    for (const presented of [{ cookie: person.cookie }, { previous_token: first }])
      expect(await isKnown(host, email, presented, otherPassword)).toBe(false)
  })
})

function never(): never {
  throw new Error('there is one')
}
