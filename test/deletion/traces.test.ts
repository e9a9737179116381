import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { describe, expect, test } from 'vitest'
import { auditLog, createKnexStore, knexCounters } from '../../src'
import { adminOn } from '../admin/people'
import { loginTemplate, request } from '../email-login/people'
import { bearerOf, type LocalHost, newAddress, password, post, signedIn, userOf } from '../local/people'
import { enrolled } from '../mfa/people'
import { newAuthenticator } from '../passkeys/people'
import { addIdentity, addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { onTrust, send } from '../trusted-devices/people'
import { moveTo } from '../undo/people'
import { dayMs, isGone, purge } from './people'

/** Every cell of every table of doorward, as text. */
async function cells(knex: Knex): Promise<{ where: string; text: string }[]> {
  const isSqlite = String(knex.client.config.client).includes('sqlite')
  const all: string[] = isSqlite
    ? await knex('sqlite_master').where({ type: 'table' }).pluck('name')
    : (await knex.raw(`select table_name as name from information_schema.tables where table_name like 'auth%'`).then(rowsOf)).map(
        ({ name }: { name: string }) => name,
      )
  const tables = [...new Set(all)].filter((name) => name.startsWith('auth_'))
  expect(tables).toContain('auth_trusted_devices')
  const found: { where: string; text: string }[] = []
  for (const table of tables) {
    for (const row of await knex(table))
      for (const [column, value] of Object.entries(row)) found.push({ where: `${table}.${column}`, text: String(value) })
  }
  return found
}

const rowsOf = (answer: { rows?: { name: string }[] } & [{ name: string }[]]) => answer.rows ?? answer[0]

describe.each(await databases())('what a deleted person leaves on $name', (database) => {
  const { start, opened } = onTrust(database)

  for (const accountDeletion of ['soft', 'immediate'] as const) {
    test(`no table or column of doorward contains the person (${accountDeletion}, every feature on)`, async () => {
      const knex = opened().knex
      const now = () => host.clock.now()
      const log = auditLog(knex, { now })
      const settings = {
        ...loginTemplate,
        accountDeletion,
        emailLogin: 'both',
        emailLoginSignup: true,
        mailedCodes: 'both',
        invitationsEnabled: true,
        tokenDelivery: 'both',
        unknownDevice: 'notice',
      } as const
      const throttle = { counters: knexCounters(knex, { now: () => now().getTime() }) }
      const host: LocalHost = await start({ settings, options: { outbox: true, auditLog: log, throttle } })
      const [mark, admin] = [`m${randomUUID().slice(0, 8)}`, await adminOn(host)]
      const [first, last] = [`${mark}-first@example.test`, `${mark}-last@example.test`]
      const person = await enrolled(host, { email: first, name: `${mark} Name`, isAdmin: true })
      const browser = host.browser()
      const { body: challenge } = await send(browser, '/cookie/login', { email: first, password }).set('User-Agent', `${mark} agent`)
      await send(browser, '/cookie/mfa/verify', { mfa_token: challenge.mfa_token, code: person.app.nextCode(), trust_device: true })
      const { service } = host.auth
      const { options, challenge: ceremony } = await service.passkeyRegistrationOptions({ userId: person.userId })
      await service.registerPasskey({
        userId: person.userId,
        credential: newAuthenticator().create(options),
        challenge: ceremony,
        name: mark,
      })
      await addIdentity(host.knex, person.userId, { subject: `${mark} subject`, email: `${mark}@corp.example`, name: mark, picture: mark })
      await service.requestEmailLogin(first)
      const invitation = await service.invitations.create({ data: { kept: 'of the host' } })
      await service.invitations.redeem(person.userId, String(invitation.token))
      const forThem = await service.invitations.create({ email: last, send: false })
      await moveTo(host, person, last)
      const made = await post(host, '/admin/invitations', {}, bearerOf(person))
      expect(made.status).toBe(201)
      await request(host, last)
      await post(host, '/password-reset/request', { email: last })
      await post(host, '/login', { email: last, password: 'somebody guesses this one' })
      await host.auth.drain()
      await log.flush()
      const user = await userOf(host, last)
      const passkey = await host.knex('auth_passkeys').where({ user_id: user.id }).first()
      const digests = (await cells(host.knex))
        .flatMap(({ text }) => [...text.matchAll(/"(?:addressDigest|clientKey)":"([^"]+)"/g)])
        .map(([, one]) => one)
      expect(digests.length).toBeGreaterThan(0)
      expect((await cells(host.knex)).filter(({ text }) => text.includes(mark)).length).toBeGreaterThan(8)

      const { body } = await send(host.browser(), '/login', { email: last, password })
      const verified = await post(host, '/mfa/verify', { mfa_token: body.mfa_token, code: person.app.nextCode() })
      const gone = await post(host, '/account/delete', {}, bearerOf({ token: verified.body.access_token }))
      expect(gone.status).toBe(accountDeletion === 'soft' ? 202 : 204)
      host.clock.advance((30 * dayMs) / 1_000)
      await purge(host)
      await host.auth.drain()
      await log.flush()
      await purge(host)
      expect(await isGone(host, user.id)).toBe(true)

      const left = await cells(host.knex)
      const secrets = [mark, String(user.totpSecret), passkey.credential_id, passkey.user_handle, passkey.public_key]
      for (const secret of secrets) expect(left.filter(({ text }) => text.includes(secret))).toEqual([])
      const named = new Set(left.filter(({ text }) => text.includes(user.id)).map(({ where }) => where))
      expect([...named].sort()).toEqual(['auth_audit_log.payload', 'auth_audit_log.user_id', 'auth_outbox.payload', 'auth_outbox.user_id'])
      for (const { payload } of await host.knex('auth_audit_log').where({ user_id: user.id }))
        expect(JSON.parse(payload)).not.toMatchObject({ clientKey: expect.any(String) })
      const address = digests.filter((digest) =>
        left.some(({ text }) => text.includes(`"userId":"${user.id}"`) && text.includes(String(digest))),
      )
      expect(address).toEqual([])
      for (const { payload } of await host.knex('auth_outbox').where({ user_id: user.id }))
        expect(JSON.stringify(Object.values(JSON.parse(payload)))).not.toContain('@')
      const { invitations } = createKnexStore({ knex: host.knex })
      expect(await invitations.find({ id: forThem.id })).toMatchObject({ email: null, revokedAt: expect.any(Date) })
      expect(await invitations.find({ id: made.body.id })).toMatchObject({ createdBy: null, revokedAt: null })
      expect(await isGone(host, admin.userId)).toBe(false)
    })
  }

  test('an account that nobody has verified leaves the invitation for its address to the owner, unless an administrator deletes it', async () => {
    const host = await start({ settings: { accountDeletion: 'soft', invitationsEnabled: true, tokenDelivery: 'both' } })
    const { service } = host.auth
    const ended: unknown[] = []
    for (const isByAdmin of [false, true]) {
      const email = newAddress()
      const { id } = await service.invitations.create({ email, send: false })
      const stranger = await signedIn(host, { email, emailVerifiedAt: null })
      if (isByAdmin) await service.deleteUser(stranger.userId)
      else await post(host, '/account/delete', {}, bearerOf(stranger)).expect(204)
      ended.push((await createKnexStore({ knex: host.knex }).invitations.find({ id }))?.email === null)
    }
    expect(ended).toEqual([false, true])
  })

  test('the log forgets events that still wait, and the purge repeats it for two days', async () => {
    const knex = opened().knex
    const log = auditLog(knex, { now: () => host.clock.now() })
    const host: LocalHost = await start({ settings: { accountDeletion: 'immediate' }, options: { auditLog: log } })
    const { id: userId } = await addUser(knex)
    const failed = { reason: 'UNAUTHORIZED', userId, addressDigest: 'a digest', clientKey: '192.0.2.1' }
    const emit = (host.auth as unknown as { events: { emit(name: string, payload: object): void } }).events.emit
    emit('login.failed', failed)
    await host.auth.service.deleteUser(userId)
    await log.flush()
    const traces = async () =>
      (await knex('auth_audit_log').where({ user_id: userId, name: 'login.failed' })).map(({ payload }) => JSON.parse(payload))
    const forgotten = { ...failed, addressDigest: null, clientKey: null }
    await expect.poll(traces).toEqual([forgotten])
    emit('login.failed', failed) // of a request that ended later
    await log.flush()
    expect(await traces()).toContainEqual(failed)
    host.clock.advance(86_400)
    await log.purge()
    expect(await traces()).toEqual([forgotten, forgotten])
    expect((await log.list({ userId, limit: 2 })).items.length).toBe(2)
  })
})
