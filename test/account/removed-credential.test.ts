import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, isAlive, type LocalHost, type LocalMember, openAs, password, post } from '../local/people'
import { outcome } from '../mfa/people'
import { fieldValue, sendForm } from '../page-routes/people'
import { logIn, newAuthenticator, onPasskeys, passkeyOwner, register } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'

const provider = 'corp'

/** A further session, whose row says how it was opened. */
async function openedBy(host: LocalHost, { userId }: Pick<LocalMember, 'userId'>, amr: string, key: string | null = null) {
  const before = (await host.knex('auth_sessions').select('id')).map(({ id }) => id)
  const session = await openAs(host, userId)
  const [row] = await host.knex('auth_sessions').whereNotIn('id', before).select('id')
  await host.knex('auth_sessions').where({ id: row.id }).update({ amr, provider: key })
  return { ...session, id: String(row.id), userId }
}

async function liveOf(host: LocalHost, userId: string): Promise<string[]> {
  return (await host.auth.service.listSessions(userId)).map(({ id }) => id)
}

function listening(host: LocalHost) {
  const heard: unknown[] = []
  host.auth.events.on('session.revoked', (payload) => heard.push(payload))
  return heard
}

const currentOf = async (host: LocalHost, who: { token: string }) => {
  const { body } = await host.browser().get(`${host.prefix}/sessions`).set(bearerOf(who))
  return body.find((one: { is_current: boolean }) => one.is_current)
}

const removePasskey = (host: LocalHost, who: { token: string }, id: string) =>
  host.browser().delete(`${host.prefix}/passkeys/${id}`).set(bearerOf(who)).send({})
const unlink = (host: LocalHost, who: { token: string }, key = provider) =>
  post(host, '/oauth/accounts/unlink', { provider: key }, bearerOf(who))

describe.each(await databases())('removing a credential revokes the sessions that it opened (25.3.2), on $name', (database) => {
  const { start } = onPasskeys(database)

  test('a removed passkey revokes every other session that a passkey opened, and no other session (25.3.2)', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const heard = listening(host)
    const byPasskey = (await logIn(host, owner.authenticator)).body
    const mixed = await openedBy(host, owner, 'pwd passkey')
    const [byPassword, byCode] = [await openedBy(host, owner, 'pwd'), await openedBy(host, owner, 'pwd otp')]
    const stranger = await passkeyOwner(host)
    const strangers = await openedBy(host, stranger, 'passkey')

    expect(outcome(await removePasskey(host, owner, owner.passkeyId))).toBe(204)
    expect(await isAlive(host, byPasskey.refresh_token)).toBe(false)
    expect(await isAlive(host, mixed.refreshToken)).toBe(false)
    for (const session of [owner, byPassword, byCode, strangers]) expect(await isAlive(host, session.refreshToken)).toBe(true)
    expect(heard).toEqual([{ userId: owner.userId, count: 2 }])
  })

  test('the session of the request stays, and loses the method with the last passkey alone, for good (25.3.2)', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const second = (await register(host, owner, newAuthenticator())).body.id
    const { body } = await logIn(host, owner.authenticator)
    const current = { token: body.access_token, refreshToken: body.refresh_token }
    expect((await currentOf(host, current)).amr).toEqual(['passkey'])

    expect(outcome(await removePasskey(host, current, second))).toBe(204)
    expect((await currentOf(host, current)).amr).toEqual(['passkey'])
    expect(outcome(await removePasskey(host, current, owner.passkeyId))).toBe(204)
    expect((await currentOf(host, current)).amr).toEqual([])
    const presented = { password, refresh_token: current.refreshToken }
    const again = await post(host, '/reauthenticate', presented, bearerOf(current))
    expect([again.status, (await currentOf(host, current)).amr]).toEqual([200, ['pwd']])
    expect(await isAlive(host, again.body.refresh_token)).toBe(true)
  })

  test('an unlinked provider revokes every other session of exactly this provider (25.3.2)', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    await addIdentity(host.knex, owner.userId)
    await addIdentity(host.knex, owner.userId, { provider: 'Corp' })
    const heard = listening(host)
    const byProvider = [await openedBy(host, owner, 'ext', provider), await openedBy(host, owner, 'ext otp', provider)]
    const others = [
      await openedBy(host, owner, 'ext', 'Corp'),
      await openedBy(host, owner, 'pwd'),
      await openedBy(host, owner, 'passkey'),
      await openedBy(host, owner, 'pwd ext'),
    ]
    const asking = await openedBy(host, owner, 'ext', provider)

    expect(outcome(await unlink(host, asking))).toBe(204)
    const live = await liveOf(host, owner.userId)
    for (const { id } of byProvider) expect(live).not.toContain(id)
    for (const { id } of [...others, asking]) expect(live).toContain(id)
    expect(heard).toEqual([{ userId: owner.userId, count: 2 }])
  })

  test('a table without the column provider: an unlinked provider revokes every other session with ext in amr; without amr too, all others (25.3.2)', async () => {
    for (const [columns, isKept] of [
      [{ provider: false }, true],
      [{ provider: false, amr: false }, false],
    ] as const) {
      const host = await start()
      const { sessions } = createKnexStore({ knex: host.knex, sessions: { columns } })
      const owner = await passkeyOwner(host)
      const [byProvider, byPassword] = [await openedBy(host, owner, 'ext', 'another'), await openedBy(host, owner, 'pwd')]
      const asking = await openedBy(host, owner, 'ext', provider)
      await sessions.revokeForUser(owner.userId, host.clock.now(), { provider, exceptId: asking.id })
      const live = await liveOf(host, owner.userId)
      expect([byProvider, byPassword, asking].map(({ id }) => live.includes(id))).toEqual([false, isKept, true])
    }
  })

  test('a call of the host has no session, so it revokes every session of the credential (25.3.2)', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    await addIdentity(host.knex, owner.userId)
    const [byPasskey, byProvider] = [await openedBy(host, owner, 'passkey'), await openedBy(host, owner, 'ext', provider)]
    await host.auth.service.removePasskey(owner.userId, owner.passkeyId)
    await host.auth.service.unlinkIdentity(owner.userId, provider)
    const live = await liveOf(host, owner.userId)
    expect([live.includes(byPasskey.id), live.includes(byProvider.id)]).toEqual([false, false])
    expect(await isAlive(host, owner.refreshToken)).toBe(true)
  })

  test('a refused removal revokes nothing (25.3.2)', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const byPasskey = await openedBy(host, owner, 'passkey')
    expect(outcome(await removePasskey(host, owner, 'no-such-passkey'))).toBe('NOT_FOUND')
    expect(outcome(await unlink(host, owner))).toBe('OAUTH_ACCOUNT_NOT_LINKED')
    expect(await isAlive(host, byPasskey.refreshToken)).toBe(true)
  })

  test.each(['passkey', 'connection'] as const)('the page after a removed %s offers to sign out everywhere else (25.3.2)', async (kind) => {
    const host = await start({ settings: { tokenDelivery: 'cookie', pagesEnabled: true } })
    const owner = await passkeyOwner(host)
    await addIdentity(host.knex, owner.userId)
    const browser = host.browser()
    await sendForm(browser, '/auth/login', { email: owner.email, password })
    const { path, fields, next } = {
      passkey: { path: '/auth/account/security/passkeys/remove', fields: { id: owner.passkeyId }, next: '/auth/account/security' },
      connection: { path: '/auth/account/connections/remove', fields: { provider }, next: '/auth/account/connections' },
    }[kind]
    expect((await browser.get(next)).text).not.toContain('Sign out everywhere else')
    const asked = await browser.get(path).query(fields)
    const removed = await sendForm(browser, path, { ...fields, form_of: fieldValue(asked.text, 'form_of') })
    expect([removed.status, removed.headers['location']]).toEqual([303, next])
    const { text } = await browser.get(next)
    expect(text).toContain('Sign out everywhere else')
    const [, action] = /<form method="post" action="([^"]*)"[^>]*>(?:(?!<\/form>).)*value="others"/s.exec(text) ?? []
    const form = { form_of: fieldValue(text, 'form_of'), action: 'others' }
    expect((await liveOf(host, owner.userId)).length).toBeGreaterThan(1)
    expect((await sendForm(browser, String(action), form)).status).toBe(303)
    expect(await liveOf(host, owner.userId)).toHaveLength(1)
    expect((await browser.get(next)).text).not.toContain('Sign out everywhere else')
  })
})
