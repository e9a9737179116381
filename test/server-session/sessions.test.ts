import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { newSession } from '../../src/testing/records'
import { onLocal, password, sha256 } from '../local/people'
import { setCookies } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { ask, attributesOf, by, device, idOf, isIn, logIn, member, rowsOf, sessionCookie } from './devices'

/** Statements on the wire, BEGIN and COMMIT included; MariaDB has SET TRANSACTION before BEGIN, and no write that returns rows. */
const loginCosts = { sqlite: 7, postgres: 5, mariadb: 8 }

describe.each(await databases())('server-side sessions on $name', (database) => {
  const { start } = onLocal(database)

  test('R-115 a login answers { user_id, expires_at }; the value is in Set-Cookie alone, and stored as its SHA-256', async () => {
    const host = await start()
    const ana = await member(host)

    const response = await logIn(host, ana, { 'User-Agent': 'Firefox on a laptop' })

    const now = host.clock.now()
    const expiresAt = new Date(now.getTime() + 86_400_000)
    expect([response.status, response.body]).toEqual([200, { user_id: ana.userId, expires_at: expiresAt.toISOString() }])
    const { token } = sessionCookie(response)
    expect(token).toMatch(/^[\w-]{112}$/) // 256 of its bits are random
    expect(response.text).not.toContain(token)
    expect(attributesOf(response)).toEqual({
      httponly: '',
      path: '/',
      samesite: 'Lax',
      'max-age': '86400',
      expires: expect.any(String),
    })
    expect(setCookies(response).map((line) => line.split('=')[0])).toEqual(['auth_device', 'auth_session', 'auth_hint'])
    expect(response.headers['cache-control']).toBe('no-store')
    const [row, ...more] = await rowsOf(host, ana.userId)
    expect(more).toEqual([])
    expect(row).toEqual({
      id: expect.any(String),
      userId: ana.userId,
      kind: 'session',
      tokenHash: sha256(token),
      generation: 0,
      rotatedAt: null,
      amr: 'pwd',
      authenticatedAt: now,
      isPersistent: true,
      ip: expect.stringMatching(/127\.0\.0\.1$/),
      userAgent: 'Firefox on a laptop',
      provider: null,
      providerSid: null,
      createdAt: now,
      lastSeenAt: now,
      expiresAt,
      endsAt: new Date(now.getTime() + 30 * 86_400_000),
      revokedAt: null,
    })
    expect(await host.knex('auth_sessions').where({ user_id: ana.userId })).toHaveLength(1)

    const me = await ask(host, 'get', '/session/me', { Cookie: `auth_session=${token}` })
    const instants = { created_at: now.toISOString(), last_seen_at: now.toISOString(), expires_at: expiresAt.toISOString() }
    const { ip } = row ?? {}
    expect(me.body).toEqual({ user_id: ana.userId, email: ana.email, amr: ['pwd'], ...instants, ip, user_agent: 'Firefox on a laptop' })
  })

  test('R-115 R-064 the list is the caller’s own, oldest first, by ids that open nothing; each can be ended, another’s never', async () => {
    const host = await start()
    const ana = await member(host)
    const phone = await device(host, ana, { 'User-Agent': 'phone' })
    host.clock.advance(10)
    const laptop = await device(host, ana, { 'User-Agent': 'laptop' })
    const bob = await device(host)

    const list = await ask(host, 'get', '/session/list', by(laptop))
    expect(list.body).toEqual(
      (await rowsOf(host, ana.userId)).map((row) => ({
        id: row.id,
        created_at: row.createdAt.toISOString(),
        last_seen_at: row.lastSeenAt.toISOString(),
        expires_at: row.expiresAt.toISOString(),
        ip: row.ip,
        user_agent: row.userAgent,
        is_current: row.userAgent === 'laptop',
      })),
    )
    expect(list.body.map(({ user_agent }: { user_agent: string }) => user_agent)).toEqual(['phone', 'laptop'])
    for (const { token } of [phone, laptop]) {
      expect(list.text).not.toContain(token)
      expect(list.text).not.toContain(sha256(token))
    }
    const [phoneId, bobsId] = [await idOf(host, phone), await idOf(host, bob)]
    expect(await isIn(host, { cookie: `auth_session=${phoneId}` })).toBe(false)

    // Another's, an unknown one, what is no id, and the value and hash of the cookie: one and the same answer.
    const strange = [bobsId, randomUUID(), 'x', '%00', "'%20or%201=1", phoneId.toUpperCase(), laptop.token, sha256(phone.token)]
    for (const id of strange) {
      const { status, text, headers } = await ask(host, 'delete', `/session/${id}`, by(laptop))
      expect([status, text, headers['set-cookie']], id).toEqual([404, '{"detail":"Not found.","code":"NOT_FOUND","details":{}}', undefined])
    }
    expect([await isIn(host, phone), await isIn(host, bob)]).toEqual([true, true])

    const ended = await ask(host, 'delete', `/session/${phoneId}`, by(laptop))
    expect([ended.status, ended.text, ended.headers['set-cookie']]).toEqual([204, '', undefined])
    expect((await ask(host, 'delete', `/session/${phoneId}`, by(laptop))).status).toBe(404)
    expect([await isIn(host, phone), await isIn(host, laptop), await isIn(host, bob)]).toEqual([false, true, true])
  })

  test('a session slides: at most one write a minute, then the cookie is sent again; untouched it ends after its TTL', async () => {
    const host = await start({ settings: { sessionTtlSeconds: 600 } })
    const ana = await device(host)
    const createdAt = host.clock.now()
    const id = await idOf(host, ana)
    const seen = async () => {
      const { lastSeenAt, expiresAt } = (await createKnexStore({ knex: host.knex }).sessions.find({ id }))?.session ?? newSession('')
      return [lastSeenAt, expiresAt].map((at) => (+at - +createdAt) / 1000)
    }

    host.clock.advance(59)
    const early = await ask(host, 'get', '/session/me', by(ana))
    expect([early.status, early.headers['set-cookie'], await seen()]).toEqual([200, undefined, [0, 600]])
    host.clock.advance(1)
    const slid = await ask(host, 'get', '/session/me', by(ana))
    expect([slid.body.last_seen_at, slid.body.expires_at]).toEqual([
      host.clock.now().toISOString(),
      new Date(+createdAt + 660_000).toISOString(),
    ])
    expect([sessionCookie(slid).token, attributesOf(slid)?.['max-age'], await seen()]).toEqual([ana.token, '600', [60, 660]])
    expect((await ask(host, 'get', '/session/me', by(ana))).headers['set-cookie']).toBeUndefined()

    host.clock.advance(599)
    expect((await ask(host, 'get', '/session/list', by(ana))).status).toBe(200) // slides once more
    host.clock.advance(600)
    expect(await isIn(host, ana)).toBe(false)
    expect(await seen()).toEqual([659, 1259]) // an expired one is not moved on
    const again = await device(host, ana)
    expect((await ask(host, 'get', '/session/list', by(again))).body).toHaveLength(1) // nor shown
  })

  test('however often it is used, a session ends at its absolute end, sessionMaxSeconds after its login', async () => {
    const host = await start({ settings: { sessionTtlSeconds: 600, sessionMaxSeconds: 900 } })
    const ana = await device(host)
    const end = new Date(host.clock.now().getTime() + 900_000)

    host.clock.advance(500)
    const slid = await ask(host, 'get', '/session/me', by(ana))
    expect([slid.status, slid.body.expires_at, attributesOf(slid)?.['max-age']]).toEqual([200, end.toISOString(), '400'])
    host.clock.advance(399)
    expect((await ask(host, 'get', '/session/me', by(ana))).status).toBe(200)
    expect((await rowsOf(host, ana.userId)).map(({ expiresAt, endsAt }) => [expiresAt, endsAt])).toEqual([[end, end]])
    host.clock.advance(1)
    expect(await isIn(host, ana)).toBe(false)
  })

  test('logout ends the session, clears the cookie under the same attributes, and is 204 whatever came along', async () => {
    const host = await start({ settings: { cookieDomain: 'example.test', cookieSamesite: 'strict', cookieSecure: true } })
    const ana = await member(host)
    const login = await logIn(host, ana)
    const { cookie } = sessionCookie(login)
    const told: object[] = []
    host.auth.events.on('logout', (payload) => told.push(payload))
    const { expires: _later, 'max-age': _lifetime, ...scope } = attributesOf(login) ?? {}
    expect(scope).toEqual({ httponly: '', path: '/', samesite: 'Strict', secure: '', domain: 'example.test' })

    for (const headers of [{ Cookie: cookie }, { Cookie: cookie }, {}, { Cookie: 'auth_session=unknown' }] as Record<string, string>[]) {
      const { status, text, ...response } = await ask(host, 'post', '/session/logout', headers)
      const { expires, ...attributes } = attributesOf(response as never) ?? {}
      expect([status, text, expires, attributes]).toEqual([204, '', 'Thu, 01 Jan 1970 00:00:00 GMT', scope])
    }
    expect(await isIn(host, { cookie })).toBe(false)
    expect(told).toEqual([{ userId: ana.userId, allSessions: false }])
  })

  test('of twenty requests at once one writes and sends the cookie again, and all are answered', async () => {
    const host = await start()
    const ana = await device(host, await member(host))
    host.clock.advance(61)

    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(host, 'get', '/session/me', by(ana))))

    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(answers.filter(({ headers }) => headers['set-cookie'])).toHaveLength(1)
    expect((await rowsOf(host, ana.userId)).map(({ lastSeenAt }) => lastSeenAt)).toEqual([host.clock.now()])
  })

  test('what it costs: a login as many round trips as one with tokens, a guarded request one, or two when it slides', async () => {
    const host = await start()
    const ana = await member(host)
    const statementsOf = async <T extends { status: number; text: string }>(call: () => PromiseLike<T>) => {
      const recorded = recordQueries(host.knex)
      const response = await call()
      expect(response.status, response.text).toBe(200)
      return { response, statements: recorded.stop() }
    }

    const { response, statements } = await statementsOf(() => logIn(host, ana))
    expect(statements, statements.join('\n')).toHaveLength(loginCosts[database.name])
    const me = () => ask(host, 'get', '/session/me', by(sessionCookie(response)))
    expect((await statementsOf(me)).statements).toHaveLength(1)
    host.clock.advance(60)
    expect((await statementsOf(me)).statements).toHaveLength(2)
    expect((await statementsOf(me)).statements).toHaveLength(1)
    // What was never a value of ours costs nothing.
    const recorded = recordQueries(host.knex)
    for (const value of ['x', 'a'.repeat(44), 'a'.repeat(112), `${'a'.repeat(111)}%00`, 'j:{"a":1}'])
      expect(await isIn(host, { cookie: `auth_session=${value}` })).toBe(false)
    expect(recorded.stop()).toEqual([])
  })

  test('ended everywhere: by reset, password change, deactivate, revokeSessions, a logout of all, and clearing is_active', async () => {
    const host = await start()
    const { service } = host.auth
    const bystander = await device(host)
    const ways: Record<string, (person: { userId: string; email: string }) => Promise<unknown>> = {
      reset: async ({ email }) => {
        const link = await service.requestPasswordReset(email)
        return service.resetPassword({ token: link?.token ?? '', newPassword: 'nine green bicycles uphill' })
      },
      'password change': ({ userId }) =>
        service.changePassword({ userId, currentPassword: password, newPassword: 'nine green bicycles uphill' }),
      deactivate: ({ userId }) => service.deactivate(userId),
      revokeSessions: ({ userId }) => service.revokeSessions(userId),
      'logout of all, by token': async ({ email }) => {
        const login = await service.logIn({ email, password })
        await service.logOut(login.kind === 'session' ? login.refreshToken : '', { allSessions: true })
      },
      'clearing is_active': ({ userId }) => host.knex('auth_users').where({ id: userId }).update({ is_active: false }),
    }
    for (const [way, end] of Object.entries(ways)) {
      const phone = await device(host)
      const laptop = await device(host, phone)
      await end(phone)
      expect([await isIn(host, phone), await isIn(host, laptop)], way).toEqual([false, false])
      expect((await rowsOf(host, phone.userId)).length, way).toBe(way === 'clearing is_active' ? 2 : 0)
    }
    expect(await isIn(host, bystander)).toBe(true)
  })
})
