import { expect, test } from 'vitest'
import { bearerOf, post } from '../local/people'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { logIn, newAuthenticator, onPasskeys, passkeyOwner, register, registrationOptions, type SignedIn } from './people'

/** Section 30.3: what a browser tells the authenticators of a person. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPasskeys(database)
type Host = Awaited<ReturnType<typeof start>>

const signal = (host: Host, person: SignedIn) => host.browser().get(`${host.prefix}/passkeys/signal`).set(bearerOf(person))

test('the signal lists the passkeys that sign in, under the user handle and the names of the options', async () => {
  const host = await start()
  const owner = await passkeyOwner(host)
  const { user, rp } = await registrationOptions(host, owner)
  const { status, body, headers } = await signal(host, owner)
  expect([status, body]).toEqual([
    200,
    {
      rp_id: rp.id,
      user_id: user.id,
      all_accepted_credential_ids: owner.authenticator.credentialIds,
      name: user.name,
      display_name: user.displayName,
    },
  ])
  expect(user.id).not.toBe(owner.userId)
  expect([headers['cache-control'], headers['access-control-allow-origin']]).toEqual(['no-store', undefined])

  const phone = newAuthenticator()
  await register(host, owner, phone)
  await host.auth.service.removePasskey(owner.userId, owner.passkeyId)
  expect((await signal(host, owner)).body.all_accepted_credential_ids).toEqual(phone.credentialIds)
})

test('without a passkey the list is empty, and the handle is the one that the first passkey will get', async () => {
  const host = await start()
  const owner = await passkeyOwner(host)
  const { user_id } = (await signal(host, owner)).body
  await host.auth.service.removePasskey(owner.userId, owner.passkeyId)
  expect((await signal(host, owner)).body).toMatchObject({ user_id, all_accepted_credential_ids: [] })
})

test('a passkey of which only the digest of its id is stored makes the list null, because a list without it would hide it', async () => {
  const host = await start()
  const owner = await passkeyOwner(host)
  await host.knex('auth_passkeys').where({ id: owner.passkeyId }).update({ credential_id: 'sha256:AAAA' })
  expect((await signal(host, owner)).body.all_accepted_credential_ids).toBeNull()
})

test('the signal needs a live session, and tells nobody about another person', async () => {
  const host = await start()
  const [owner, other] = [await passkeyOwner(host), await passkeyOwner(host)]
  expect((await host.browser().get(`${host.prefix}/passkeys/signal`)).status).toBe(401)
  expect((await signal(host, other)).body.all_accepted_credential_ids).toEqual(other.authenticator.credentialIds)
  await host.auth.service.logOut(String(owner.refreshToken))
  expect((await signal(host, owner)).status).toBe(401)
  expect((await post(host, '/passkeys/signal', {}, bearerOf(other))).status).toBe(405)
})

test('the signal is one query beside that of the session, and is absent without passkeys', async () => {
  const host = await start()
  const owner = await passkeyOwner(host)
  const cost = async (path: string) => {
    const recorded = recordQueries(host.knex)
    await host.browser().get(`${host.prefix}${path}`).set(bearerOf(owner)).expect(200)
    return recorded.stop()
  }
  const asked = await cost('/passkeys/signal')
  expect(asked.filter((sql) => sql.includes('auth_passkeys'))).toHaveLength(1)
  expect(asked.filter((sql) => !sql.includes('auth_passkeys'))).toEqual([expect.stringContaining('auth_sessions')])
  const without = await start({ settings: { passkeysEnabled: false } })
  expect((await signal(without, owner)).status).toBe(404)
})

test('attack: a login with an unknown passkey and one with a removed passkey get the same refusal', async () => {
  const host = await start()
  const [owner, stranger] = [await passkeyOwner(host), newAuthenticator()]
  stranger.create(await registrationOptions(host, owner))
  await host.auth.service.removePasskey(owner.userId, owner.passkeyId)
  const [unknown, removed] = [await logIn(host, stranger), await logIn(host, owner.authenticator)]
  expect([removed.status, removed.body]).toEqual([unknown.status, unknown.body])
  expect(unknown.body.code).toBe('PASSKEY_REJECTED')
})
