import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { adminOn } from '../admin/people'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, post } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { ageFactor } from '../mfa/people'
import { age, newAuthenticator } from '../passkeys/people'
import { databases } from '../support/databases'
import { undo, undoTokenOf } from '../undo/people'
import { isTrusted, login, onTrust, send, type Trusting, trust, trusting, trustRows, untrustedReasons } from './people'

type Change = (host: LocalHost, person: Trusting) => Promise<unknown>

const serviceOf = ({ auth }: LocalHost) => auth.service

async function addPasskey(host: LocalHost, { userId }: Trusting): Promise<string> {
  const { options, challenge } = await serviceOf(host).passkeyRegistrationOptions({ userId })
  const { id } = await serviceOf(host).registerPasskey({ userId, credential: newAuthenticator().create(options), challenge })
  await age(host, id)
  return id
}

async function sessionOfTrust(host: LocalHost, { userId }: Trusting): Promise<string> {
  return String((await trustRows(host, userId))[0]?.session_id)
}

async function replaceFactor(host: LocalHost, { userId, app }: Trusting, revokeSessions: boolean): Promise<void> {
  const { secret } = await serviceOf(host).enrollTotp(userId, { code: app.nextCode() })
  await serviceOf(host).confirmTotp({ userId, amr: ['pwd', 'otp'], code: authenticator(secret, host.clock).nextCode(), revokeSessions })
}

/** Changes of the account. */
const changes: Readonly<Record<string, Change>> = {
  'a changed password': (host, { userId }) =>
    serviceOf(host).changePassword({ userId, currentPassword: password, newPassword: otherPassword }),
  'a password changed with a code': (host, { userId, app }) =>
    serviceOf(host).changePasswordWithMfa({ userId, newPassword: otherPassword, code: app.nextCode() }),
  async 'a first password'(host, { userId }) {
    await host
      .knex('auth_users')
      .where({ id: userId })
      .update({ hashed_password: `!${'a'.repeat(43)}`, password_set_at: null })
    await serviceOf(host).setFirstPassword({ userId, newPassword: otherPassword })
  },
  async 'a reset'(host, { email }) {
    const link = await serviceOf(host).requestPasswordReset(email)
    await serviceOf(host).resetPassword({ token: String(link?.token), newPassword: otherPassword })
  },
  async 'a reset that keeps the sessions'(host, { email }) {
    const link = await serviceOf(host).requestPasswordReset(email)
    await serviceOf(host).resetPassword({ token: String(link?.token), newPassword: otherPassword, revokeSessions: false })
  },
  async 'a take-over'(host, { userId }) {
    await createKnexStore({ knex: host.knex }).users.update(userId, { emailVerifiedAt: null })
    const link = await serviceOf(host).requestEmailVerification(userId)
    const { takenOver } = (await serviceOf(host).verifyEmail(String(link?.token), {})) as unknown as { takenOver?: unknown }
    expect(takenOver).not.toBe(false)
  },
  async 'an undo'(host, { email }) {
    expect((await undo(host, await undoTokenOf(host, email))).status).toBe(200)
  },
  'a deactivation': (host, { userId }) => serviceOf(host).deactivate(userId),
  async 'an activation of an account that the host closed in its table'(host, { userId }) {
    await createKnexStore({ knex: host.knex }).users.update(userId, { isActive: false })
    await serviceOf(host).activateUser(userId)
  },
  'a removed factor': (host, { userId, app }) => serviceOf(host).disableTotp({ userId, password, code: app.nextCode() }),
  'a factor removed by an administrator': (host, { userId }) => serviceOf(host).resetMfa(userId),
  'a replaced factor': (host, person) => replaceFactor(host, person, true),
  'a replaced factor that keeps the sessions': (host, person) => replaceFactor(host, person, false),
  async 'a removed passkey'(host, person) {
    await serviceOf(host).removePasskey(person.userId, await addPasskey(host, person))
  },
  async 'a changed address'(host, { userId }) {
    const link = await serviceOf(host).requestEmailChange({ userId, newEmail: newAddress() })
    await serviceOf(host).changeEmail(String(link?.token))
  },
}

/** Ends of sessions that are not a logout of the browser itself. */
const ends: Readonly<Record<string, Change>> = {
  async 'the end of its session by the list'(host, person) {
    const path = `${host.prefix}/sessions/${await sessionOfTrust(host, person)}`
    expect((await host.browser().delete(path).set(bearerOf(person))).status).toBe(204)
  },
  'the end of its session by the service': async (host, person) =>
    serviceOf(host).revokeSession(person.userId, await sessionOfTrust(host, person)),
  'the sessions revoked by an administrator': async (host, { userId }) =>
    serviceOf(host).revokeSessions(userId, { by: (await adminOn(host)).userId }),
  'the sessions revoked by the host': (host, { userId }) => serviceOf(host).revokeSessions(userId),
  async 'a logout of all sessions, in this browser'(_host, { browser }) {
    expect((await send(browser, '/logout', { all_sessions: true })).status).toBe(204)
  },
  'a logout of all sessions, elsewhere': (host, { refreshToken }) => serviceOf(host).logOut(refreshToken, { allSessions: true }),
  async 'revoke-others in another browser'(host, person) {
    expect((await post(host, '/sessions/revoke-others', { refresh_token: person.refreshToken }, bearerOf(person))).status).toBe(204)
  },
  async 'revoke-others by the service'(host, person) {
    const [session] = await serviceOf(host).listSessions(person.userId)
    await serviceOf(host).revokeOtherSessions(person.userId, String(session?.id))
  },
}

const removals: Readonly<Record<string, Change>> = {
  async 'a removal by the route'(host, person) {
    const [row] = await trustRows(host, person.userId)
    const path = `${host.prefix}/trusted-devices/${row?.id}`
    expect((await host.browser().delete(path).set(bearerOf(person))).status).toBe(204)
  },
  async 'a removal by the service'(host, { userId }) {
    const [device] = await serviceOf(host).listTrustedDevices(userId)
    await serviceOf(host).removeTrustedDevice(userId, String(device?.id))
  },
}

/** What the person may do without losing the trust. */
const harmless: Readonly<Record<string, Change>> = {
  async 'a logout of this browser'(_host, { browser }) {
    expect((await send(browser, '/logout')).status).toBe(204)
  },
  async 'revoke-others in this browser'(_host, { browser }) {
    expect((await send(browser, '/sessions/revoke-others')).status).toBe(204)
  },
  async 'the end of another session by the list'(host, person) {
    const own = await sessionOfTrust(host, person)
    const other = (await serviceOf(host).listSessions(person.userId)).find(({ id }) => id !== own)
    await serviceOf(host).revokeSession(person.userId, String(other?.id))
  },
  'new recovery codes': (host, { userId, app }) => serviceOf(host).regenerateRecoveryCodes({ userId, code: app.nextCode() }),
  'another name': (host, { userId }) => serviceOf(host).updateUser(userId, { name: 'Ana' }),
  'another passkey': (host, person) => addPasskey(host, person),
  async 'a login elsewhere'(host, person) {
    await trust(host.browser(), person)
  },
}

describe.each(await databases())('the end of a trust on $name', (database) => {
  const { start } = onTrust(database)

  const cases = [
    ...Object.entries(changes).map(([name, change]) => ({ name, change, reason: 'account_changed' })),
    ...Object.entries(ends).map(([name, change]) => ({ name, change, reason: 'session_ended' })),
    ...Object.entries(removals).map(([name, change]) => ({ name, change, reason: 'removed' })),
  ]
  test.each(cases)('$name deletes the row at once, and says $reason', async ({ change, reason }) => {
    const host = await start()
    const [person, other] = [await trusting(host), await trusting(host)]
    const reasons = untrustedReasons(host, person.userId)
    await change(host, person)
    expect(await trustRows(host, person.userId)).toEqual([])
    await expect.poll(() => reasons).toEqual([reason])
    expect(await isTrusted(other.browser, other)).toBe(true)
  })

  test.each(Object.entries(harmless))('%s ends no trust', async (_name, change) => {
    const host = await start()
    const person = await trusting(host)
    const reasons = untrustedReasons(host, person.userId)
    await change(host, person)
    expect(await isTrusted(person.browser, person)).toBe(true)
    expect(reasons).toEqual([])
  })

  test('revoke-others keeps the trust of the browser that asks, and deletes that of each other browser', async () => {
    const host = await start()
    const person = await trusting(host)
    const others = [host.browser(), host.browser()]
    for (const browser of others) await trust(browser, person)
    const reasons = untrustedReasons(host, person.userId)
    expect((await send(person.browser, '/sessions/revoke-others')).status).toBe(204)
    expect(await trustRows(host, person.userId)).toHaveLength(1)
    await expect.poll(() => reasons).toEqual(['session_ended', 'session_ended'])
    expect(await isTrusted(person.browser, person)).toBe(true)
    for (const browser of others) expect(await isTrusted(browser, person)).toBe(false)
  })

  test('the session that last used a trust is the one whose end deletes it', async () => {
    const host = await start()
    const person = await trusting(host)
    const made = await sessionOfTrust(host, person)
    await login(person.browser, person)
    const used = await sessionOfTrust(host, person)
    await serviceOf(host).revokeSession(person.userId, made)
    expect(await trustRows(host, person.userId)).toHaveLength(1)
    await serviceOf(host).revokeSession(person.userId, used)
    expect(await trustRows(host, person.userId)).toEqual([])
  })

  const writes: readonly (readonly [string, (host: LocalHost, person: Trusting) => Promise<unknown>])[] = [
    ['address', ({ knex }, { userId }) => createKnexStore({ knex }).users.update(userId, { email: newAddress() })],
    ['time of the password', ({ knex }, { userId }) => createKnexStore({ knex }).users.update(userId, { passwordSetAt: new Date(1_000) })],
    ['factor', (host, person) => ageFactor(host, person)],
    ['activation', ({ knex }, { userId }) => createKnexStore({ knex }).users.update(userId, { activatedAt: new Date(1_000) })],
  ]
  test.each(writes)('a row with another digest is no trust: the host writes another %s', async (_name, write) => {
    const host = await start()
    const person = await trusting(host)
    await write(host, person)
    const { email } = (await createKnexStore({ knex: host.knex }).users.find(person.userId)) ?? person
    expect(await isTrusted(person.browser, { email })).toBe(false)
    expect(await trustRows(host, person.userId)).toHaveLength(1)
  })

  test('without a column for the password’s time, a trust ends with another hash', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex, users: { table: 'auth_users', columns: { passwordSetAt: false } } })
    const host = await start({ options: { store } })
    const person = await trusting(host)
    expect(await isTrusted(person.browser, person)).toBe(true)
    const hashed_password = await host.hasher.hash(otherPassword)
    await knex('auth_users').where({ id: person.userId }).update({ hashed_password })
    const answer = await send(person.browser, '/login', { email: person.email, password: otherPassword })
    expect([answer.status, answer.body.mfa_required]).toEqual([200, true])
  })

  test('a rolled-back change of the host ends no trust and says nothing', async () => {
    const host = await start()
    const person = await trusting(host)
    const reasons = untrustedReasons(host, person.userId)
    const store = createKnexStore({ knex: host.knex })
    await host.knex
      .transaction(async (trx) => {
        await serviceOf(host).using(store.using(trx)).revokeSessions(person.userId)
        throw new Error('no')
      })
      .catch(() => undefined)
    expect([await trustRows(host, person.userId).then(({ length }) => length), reasons]).toEqual([1, []])
    await host.knex.transaction((trx) => serviceOf(host).using(store.using(trx)).revokeSessions(person.userId))
    await expect.poll(() => reasons).toEqual(['session_ended'])
  })

  test('a login by trust beside the end of its session: one order or the other, and no trust without a session that lives', async () => {
    const host = await start()
    for (let round = 0; round < 4; round++) {
      const person = await trusting(host)
      const made = await sessionOfTrust(host, person)
      const [answer] = await Promise.all([login(person.browser, person), serviceOf(host).revokeSession(person.userId, made)])
      const [row] = await trustRows(host, person.userId)
      const isOneStep = answer.status === 200 && answer.body.mfa_required === false
      if (row) expect([isOneStep, row.session_id === made]).toEqual([true, false])
    }
  })
})
