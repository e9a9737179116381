import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, isAlive, mailsTo, otherPassword, post, resetLink, settled, signedIn } from '../local/people'
import { enrolled } from '../mfa/people'
import { databases } from '../support/databases'
import { codeOf, logIn, onPasskeys, ownerWithFactor, passkeyOwner, rejected, withFactors } from './people'

describe.each(await databases())('an administrator resets the factors of an account, on $name', (database) => {
  const { start } = onPasskeys(database)

  test('passkeys stay, unless they are asked for; then each is gone, the sessions end, and the owner is told', async () => {
    const host = await start({ settings: withFactors })
    const [admin, owner] = [await enrolled(host, { isAdmin: true }), await ownerWithFactor(host)]
    const reset = (body: object) => post(host, `/admin/users/${owner.userId}/reset-mfa`, body, bearerOf(admin))
    const removed: unknown[] = []
    host.auth.events.on('passkey.removed', (payload) => removed.push(payload))

    expect((await reset({})).status).toBe(204)
    const login = await logIn(host, owner.authenticator)
    expect([login.status, removed]).toEqual([200, []])

    expect(codeOf(await reset({ passkeys: 'yes' }))).toEqual([422, 'VALIDATION_ERROR'])
    const mails = mailsTo(host, owner.email).length
    expect((await reset({ passkeys: true })).status).toBe(204)
    expect(codeOf(await logIn(host, owner.authenticator))).toEqual(rejected)
    expect(await isAlive(host, login.body.refresh_token)).toBe(false)
    expect(removed).toEqual([{ userId: owner.userId, passkeyId: owner.passkeyId, actorId: admin.userId }])
    expect((await reset({ passkeys: true })).status).toBe(204) // nothing is left to take off
    await settled(host)
    expect(mailsTo(host, owner.email).length - mails).toBe(1)
  })

  test('24.3: factor and passkeys at once are one mail, which names both', async () => {
    const host = await start({ settings: withFactors })
    const [admin, owner] = [await enrolled(host, { isAdmin: true }), await ownerWithFactor(host)]
    await settled(host)
    const before = host.mails.mails.length
    expect((await post(host, `/admin/users/${owner.userId}/reset-mfa`, { passkeys: true }, bearerOf(admin))).status).toBe(204)
    await settled(host)
    const mails = host.mails.mails.slice(before).filter(({ to }) => to === owner.email)
    expect(mails.map(({ subject }) => subject)).toEqual(['Two-step verification is off'])
    expect(mails[0]?.text).toContain('All passkeys were also removed from your account.')
  })

  test('the host does the same by its service', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    await host.auth.service.resetMfa(owner.userId)
    expect((await logIn(host, owner.authenticator)).status).toBe(200)
    await host.auth.service.resetMfa(owner.userId, undefined, { passkeys: true })
    expect(await host.auth.service.listPasskeys(owner.userId)).toEqual([])
  })
})

describe.each(await databases())('while passkeys are off, on $name', (database) => {
  const { start, opened } = onPasskeys(database)
  const off = { passkeysEnabled: false }

  test('a reset of the factors removes them, so that none logs in once they are on again', async () => {
    const host = await start()
    const { userId } = await passkeyOwner(host)
    const later = await start({ settings: { ...withFactors, ...off } })
    const admin = await enrolled(later, { isAdmin: true })
    expect((await post(later, `/admin/users/${userId}/reset-mfa`, { passkeys: true }, bearerOf(admin))).status).toBe(204)
    expect(await host.auth.service.listPasskeys(userId)).toEqual([])
  })

  test('a first proof of the address removes those of who came before the owner', async () => {
    const host = await start()
    const { userId, email } = await passkeyOwner(host, { changes: { emailVerifiedAt: null } })
    const later = await start({ settings: off })
    const form = { token: await resetLink(later, email), new_password: otherPassword }
    expect((await post(later, '/password-reset/confirm', form)).status).toBe(200)
    expect(await host.auth.service.listPasskeys(userId)).toEqual([])
  })

  test('a host without their table resets and proves as before', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex, passkeys: { table: 'no_such_passkeys' } })
    const host = await start({ settings: off, options: { store } })
    const { userId, email } = await signedIn(host, { emailVerifiedAt: null })
    await host.auth.service.resetMfa(userId, undefined, { passkeys: true })
    const form = { token: await resetLink(host, email), new_password: otherPassword }
    expect((await post(host, '/password-reset/confirm', form)).status).toBe(200)
  })

  if (database.name !== 'postgres') return // its catalogue alone shows tables that a role may not use
  test('so does a host whose role may use every table but theirs', async () => {
    const { knex } = await start()
    const [{ name: schema }] = (await knex.raw('select current_schema() as name')).rows
    const role = `${schema}_without_passkeys`
    await knex.raw(`create role ${role}`)
    await knex.raw(`grant usage on schema ${schema} to ${role}`)
    await knex.raw(`grant select, insert, update, delete on all tables in schema ${schema} to ${role}`)
    await knex.raw(`revoke all on ${schema}.auth_passkeys from ${role}`)
    const guest = opened().connect({
      min: 0,
      max: 4,
      afterCreate: (connection: { query(sql: string, done: () => void): void }, done: () => void) =>
        connection.query(`set role ${role}`, done),
    })
    try {
      const host = await start({ settings: off, options: { store: createKnexStore({ knex: guest }) } })
      const { userId, email } = await signedIn(host, { emailVerifiedAt: null })
      await host.auth.service.resetMfa(userId, undefined, { passkeys: true })
      const form = { token: await resetLink(host, email), new_password: otherPassword }
      expect((await post(host, '/password-reset/confirm', form)).status).toBe(200)
    } finally {
      await guest.destroy()
      await knex.raw(`drop owned by ${role}; drop role ${role}`)
    }
  })
})
