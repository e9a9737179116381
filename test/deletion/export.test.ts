import { describe, expect, test, vi } from 'vitest'
import { auditLog } from '../../src'
import { bearerOf, type LocalHost, type LocalMember, password, post, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { passkeyOwner, passkeySettings } from '../passkeys/people'
import { addIdentity, addUser, someTime } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { codeOf, onDeletion } from './people'

const download = (host: LocalHost, person: Pick<LocalMember, 'token'>, headers: Record<string, string> = {}) =>
  host
    .browser()
    .get(`${host.prefix}/account/export`)
    .set({ ...bearerOf(person), ...headers })

describe.each(await databases())('the export of an account on $name', (database) => {
  const { start, opened } = onDeletion(database)

  test('32.2 is a file with everything of the person, and nothing else', async () => {
    const host = await start({ settings: { ...passkeySettings, ...mfaSettings, invitationsEnabled: true } })
    const person = await passkeyOwner(host, { changes: { name: 'Ana' } })
    await addIdentity(host.knex, person.userId, { subject: 'her subject', email: 'ana@corp.example' })
    const { id: invitationId, token } = await host.auth.service.invitations.create({ data: { team: 'secret' } })
    await host.auth.service.invitations.redeem(person.userId, String(token))
    const { status, headers, body, text } = await download(host, person)
    expect([status, headers['content-disposition'], headers['cache-control']]).toEqual([
      200,
      'attachment; filename="account.json"',
      expect.stringContaining('no-store'),
    ])
    const at = host.clock.now().toISOString()
    expect(body).toEqual({
      exported_at: at,
      user: expect.objectContaining({ id: person.userId, email: person.email, name: 'Ana', email_verified_at: someTime.toISOString() }),
      identities: [expect.objectContaining({ provider: 'corp', subject: 'her subject', email: 'ana@corp.example' })],
      sessions: [expect.objectContaining({ amr: ['pwd'] }), expect.anything()],
      passkeys: [expect.objectContaining({ id: person.passkeyId })],
      second_factor: null,
      api_keys: [],
      invitations: [{ invitation_id: invitationId, used_at: at }],
      devices: [],
    })
    const secrets = await host.knex('auth_passkeys').where({ user_id: person.userId }).first()
    for (const secret of [secrets.public_key, secrets.credential_id, secrets.user_handle, 'test$', 'token_hash', 'team'])
      expect(text).not.toContain(secret)
    expect(await host.auth.service.exportUser(person.userId)).toEqual(body)
    await expect(host.auth.service.exportUser('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('shows since when the second factor is on, and the events of the person without clients, addresses and digests', async () => {
    const log = auditLog(opened().knex)
    const host = await start({ settings: mfaSettings, options: { auditLog: log } })
    const person = await enrolled(host)
    await post(host, '/login', { email: person.email, password: 'a stranger tries this one' })
    await log.flush()
    const read = vi.spyOn(log, 'list')
    const { body, text } = await download(host, person)
    expect(read).toHaveBeenCalledWith(expect.objectContaining({ except: expect.arrayContaining(['login.failed']) }))
    expect(body.second_factor).toEqual({ enabled_at: expect.any(String) })
    expect(body.events.map(({ name }: { name: string }) => name)).toContain('mfa.enrolled')
    expect(body.events.map(({ name }: { name: string }) => name)).not.toContain('login.failed')
    expect(text).not.toMatch(/clientKey|addressDigest|127\.0\.0\.1"/)
  })

  test('says nothing of a deleted account whose id the database gave again', async () => {
    let now = () => new Date()
    const log = auditLog(opened().knex, { now: () => now() })
    const host = await start({ options: { auditLog: log } })
    now = host.clock.now
    const person = await signedIn(host)
    await log.flush()
    await host.auth.service.deleteUser(person.userId)
    host.clock.advance(2)
    const next = await addUser(host.knex, { createdAt: host.clock.now(), name: 'The next one' })
    await host.knex('auth_users').where({ id: next.id }).update({ id: person.userId })
    await host.auth.service.openSession(person.userId)
    await log.flush()
    const { user, events } = await host.auth.service.exportUser(person.userId)
    expect(user).toMatchObject({ name: 'The next one' })
    expect(events).toEqual([expect.objectContaining({ name: 'login', details: { amr: ['ext'] } })])
    await host.knex('auth_sessions').where({ user_id: person.userId }).delete()
    await host.knex('auth_users').where({ id: person.userId }).delete()
  })

  test('`host` is what onExport returns, and replaces no member of ours; a failure is 503', async () => {
    let answer: () => unknown = () => ({ user: 'a fake', orders: [true] })
    const host = await start({ options: { onExport: () => answer() as object } })
    const person = await signedIn(host)
    const { body } = await download(host, person)
    expect([body.host, body.user.id]).toEqual([{ user: 'a fake', orders: [true] }, person.userId])
    const faults: (() => unknown)[] = [() => 'no object', () => [], () => ({ big: 1n }), () => Promise.reject(new Error('down'))]
    for (const fault of faults) {
      answer = fault
      await expect(host.auth.service.exportUser(person.userId)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    }
    expect((await download(host, person)).status).toBe(503)
  })

  test('needs a fresh session, refuses another site, and answers five times an hour for each account', async () => {
    const host = await start({ settings: { freshSessionSeconds: 300 } })
    const [person, other] = [await signedIn(host), await signedIn(host)]
    const foreign = await download(host, person, { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' })
    expect(codeOf(foreign)).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    for (let count = 0; count < 5; count += 1) expect((await download(host, person)).status).toBe(200)
    expect(codeOf(await download(host, person))).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect((await download(host, other)).status).toBe(200)
    host.clock.advance(3_700)
    expect((await download(host, other)).status).toBe(401)
    const { body } = await post(host, '/login', { email: other.email, password })
    host.clock.advance(300)
    await download(host, { token: body.access_token }).expect(200)
    host.clock.advance(1)
    expect(codeOf(await download(host, { token: body.access_token }))).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
  })
})
