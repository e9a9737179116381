import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { withSession } from '../../src/testing/records'
import { databases } from '../support/databases'
import {
  bearerOf,
  isAlive,
  type LocalHost,
  type LocalMember,
  mailsTo,
  onLocal,
  otherPassword,
  password,
  post,
  resetLink,
  settled,
  signedIn,
  tokenRows,
  userOf,
} from './people'

const body = { current_password: password, new_password: otherPassword }
const change = (host: LocalHost, ana: Pick<LocalMember, 'token'>, changes: object = {}) =>
  post(host, '/password-change', { ...body, ...changes }, bearerOf(ana))

describe.each(await databases())('password change, on $name', (database) => {
  const { start } = onLocal(database)

  test('R-078 needs the current password: 204 with it, and the old one opens nothing any more', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const told: object[] = []
    host.auth.events.on('password.changed', (payload) => told.push(payload))
    host.clock.advance(5)

    const answer = await change(host, ana)

    expect([answer.status, answer.text]).toEqual([204, ''])
    const now = host.clock.now()
    expect(await userOf(host, ana.email)).toMatchObject({ passwordSetAt: now, updatedAt: now, isActive: true })
    expect((await post(host, '/login', { email: ana.email, password })).status).toBe(401)
    expect((await post(host, '/login', { email: ana.email, password: otherPassword })).status).toBe(200)
    expect((await host.mails.next({ kind: 'notice', to: ana.email })).url).toContain('/auth/security/undo/')
    expect(told).toEqual([{ userId: ana.userId, by: 'change' }])
  })

  test('ends every session of the user, of both kinds, except the one the request shows; nobody else’s', async () => {
    const host = await start()
    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const other = await post(host, '/login', { email: ana.email, password })
    const store = createKnexStore({ knex: host.knex })
    const end = new Date('2027-01-01T00:00:00.000Z')
    const { id } = await withSession(store, { userId: ana.userId, kind: 'session', expiresAt: end, endsAt: end })

    expect((await change(host, ana, { refresh_token: ana.refreshToken })).status).toBe(204)

    expect([
      await isAlive(host, ana.refreshToken),
      await isAlive(host, other.body.refresh_token),
      await isAlive(host, bob.refreshToken),
    ]).toEqual([true, false, true])
    expect((await store.sessions.find({ id }))?.session.revokedAt).toEqual(host.clock.now())
  })

  test('without a session shown every one ends; so does with a token of another user, a spent or an unknown one', async () => {
    const host = await start()
    const bob = await signedIn(host)
    const presented: ((token: string) => Promise<string | undefined>)[] = [
      async () => undefined,
      async () => bob.refreshToken,
      async () => 'unknown',
      async (token) => ((await post(host, '/refresh', { refresh_token: token })).status === 200 ? token : undefined),
    ]
    for (const show of presented) {
      const ana = await signedIn(host)
      const other = await post(host, '/login', { email: ana.email, password })
      const refresh_token = await show(ana.refreshToken)
      expect((await change(host, ana, refresh_token === undefined ? {} : { refresh_token })).status).toBe(204)
      expect(await isAlive(host, other.body.refresh_token)).toBe(false)
    }
    expect(await isAlive(host, bob.refreshToken)).toBe(true)
  })

  test('links to reset the password or change the address die with the old password; another purpose’s lives', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const token = await resetLink(host, ana.email)
    const store = createKnexStore({ knex: host.knex })
    for (const purpose of ['EMAIL_CHANGE', 'EMAIL_VERIFICATION'] as const) {
      const now = host.clock.now()
      const row = {
        userId: ana.userId,
        tokenHash: randomBytes(32).toString('hex'),
        purpose,
        payload: 'x@example.test',
        createdAt: now,
        usedAt: null,
      }
      await store.userTokens.insert({ ...row, expiresAt: new Date(now.getTime() + 60_000) })
    }

    await change(host, ana)

    expect((await tokenRows(host, ana.userId)).map(({ purpose, isUsed }) => [purpose, isUsed])).toEqual([
      ['EMAIL_CHANGE', true],
      ['EMAIL_VERIFICATION', false],
      ['PASSWORD_RESET', true],
      ['UNDO', false],
    ])
    expect((await post(host, '/password-reset/confirm', { token, new_password: 'a third quiet place' })).body.code).toBe('INVALID_TOKEN')
  })

  test('a wrong current password is 401, and nothing has changed or ended', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const before = await userOf(host, ana.email)

    const { status, body } = await change(host, ana, { current_password: otherPassword })

    expect([status, body]).toEqual([401, { detail: 'invalid email or password', code: 'UNAUTHORIZED', details: {} }])
    expect(await userOf(host, ana.email)).toEqual(before)
    expect(await isAlive(host, ana.refreshToken)).toBe(true)
    await settled(host)
    expect(mailsTo(host, ana.email)).toEqual([])
  })
})

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('password change', () => {
  const { start } = onLocal(sqlite)

  test('without a session 401, of an account that is gone 401, of an inactive one 403 ACCOUNT_INACTIVE', async () => {
    const host = await start()
    const [gone, inactive] = [await signedIn(host), await signedIn(host)]
    await host.knex('auth_sessions').where({ user_id: gone.userId }).delete()
    await host.knex('auth_users').where({ id: gone.userId }).delete()
    await host.auth.service.deactivate(inactive.userId)
    const codeOf = ({ status, body }: Awaited<ReturnType<typeof post>>) => [status, body.code]

    expect(codeOf(await post(host, '/password-change', body))).toEqual([401, 'UNAUTHORIZED'])
    expect(codeOf(await change(host, { token: 'nonsense' }))).toEqual([401, 'INVALID_TOKEN'])
    expect(codeOf(await change(host, gone))).toEqual([401, 'UNAUTHORIZED'])
    expect(codeOf(await change(host, inactive))).toEqual([403, 'ACCOUNT_INACTIVE'])
    host.clock.advance(900)
    expect(codeOf(await change(host, inactive))).toEqual([401, 'TOKEN_EXPIRED'])
  })

  test.each([
    ['', { rule: 'too_short', min: 12, message: 'Please choose a password of at least 12 characters.' }],
    ['elevenchars', { rule: 'too_short', min: 12, message: 'Please choose a password of at least 12 characters.' }],
    ['password123456', { rule: 'too_common', message: 'This password is easy to guess. Please choose another one.' }],
    [null, { errors: [{ path: 'new_password', rule: 'string.base' }] }],
    [undefined, { errors: [{ path: 'new_password', rule: 'any.required' }] }],
    [['nine green bicycles'], { errors: [{ path: 'new_password', rule: 'string.base' }] }],
  ])('the new password %j is 422, before the current one is looked at', async (new_password, details) => {
    const host = await start()
    const ana = await signedIn(host)
    const answer = await change(host, ana, { new_password, current_password: 'not the one' })

    expect([answer.status, answer.body.code, answer.body.details]).toEqual([422, 'VALIDATION_ERROR', details])
    expect(host.hasher.hashed).toBe(1) // the account's own, made before
  })

  test('the service: `keep` names the session that goes on', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const other = await post(host, '/login', { email: ana.email, password })
    const given = { userId: ana.userId, currentPassword: password, newPassword: otherPassword }

    await expect(host.auth.service.changePassword({ ...given, currentPassword: 'wrong' })).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    await host.auth.service.changePassword({ ...given, keep: { refreshToken: ana.refreshToken } })

    expect([await isAlive(host, ana.refreshToken), await isAlive(host, other.body.refresh_token)]).toEqual([true, false])
    await expect(host.auth.service.changePassword({ ...given, userId: randomUUID() })).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  })

  test('revokeSessions ends every session, says how many were alive, and tells observers', async () => {
    const host = await start()
    const ana = await signedIn(host)
    const other = await post(host, '/login', { email: ana.email, password })
    const told: object[] = []
    host.auth.events.on('session.revoked', (payload) => told.push(payload))

    expect(await host.auth.service.revokeSessions(ana.userId)).toBe(2)

    expect([await isAlive(host, ana.refreshToken), await isAlive(host, other.body.refresh_token)]).toEqual([false, false])
    expect(told).toEqual([{ userId: ana.userId, count: 2 }])
    expect(await host.auth.service.revokeSessions(ana.userId)).toBe(0)
  })
})
