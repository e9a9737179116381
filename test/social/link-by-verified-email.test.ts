import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type AuthEventName, type AuthStore, createKnexStore } from '../../src'
import type { SessionKind, UserRecord } from '../../src/store/auth-store'
import { newSession } from '../../src/testing/records'
import { type Mounted, signIn } from '../support/app'
import { databases } from '../support/databases'
import { addIdentity, addUser, someTime, userById } from './accounts-at-hand'
import { bearer, newPerson, onDatabase } from './redirect-steps'

const linking = { oauthLinkByVerifiedEmail: true }

describe.each(await databases())('on $name', (database) => {
  const { start } = onDatabase(database)

  /** Whatever lets somebody into an account, one of each. */
  async function everyWayIn(host: Mounted, user: UserRecord) {
    const store = createKnexStore({ knex: host.knex })
    const { subject } = await addIdentity(host.knex, user.id, { provider: 'acme', email: user.email, emailVerified: false })
    const acme = await signIn(host, host.browser(), { key: 'acme', profile: newPerson({ sub: subject }) })
    expect(acme.status, acme.text).toBe(200)
    const later = new Date(host.clock.now().getTime() + 3_600_000)
    const at = { userId: user.id, expiresAt: later, createdAt: someTime }
    for (const purpose of ['ACTIVATION', 'PASSWORD_RESET', 'EMAIL_VERIFICATION', 'EMAIL_CHANGE'] as const) {
      await store.userTokens.insert({ ...at, tokenHash: randomUUID(), purpose, payload: null, usedAt: null })
    }
    await store.recoveryCodes.replaceForUser(user.id, [randomUUID(), randomUUID()])
    await store.sessions.insert(newSession(user.id, { kind: 'session', createdAt: someTime, expiresAt: later, endsAt: later }))
    return { refreshToken: acme.body.refresh_token as string }
  }

  async function waysIn(host: Mounted, userId: string) {
    const alive = (kind: SessionKind) => host.knex('auth_sessions').where({ user_id: userId, kind }).whereNull('revoked_at')
    const [tokens, codes, sessions, pairs, identities] = await Promise.all([
      host.knex('auth_user_tokens').where({ user_id: userId }).whereNull('used_at'),
      host.knex('auth_recovery_codes').where({ user_id: userId }),
      alive('session'),
      alive('tokens'),
      host.knex('auth_identities').where({ user_id: userId }).orderBy('provider'),
    ])
    const providers = identities.map(({ provider }: { provider: string }) => provider)
    return { tokens: tokens.length, codes: codes.length, sessions: sessions.length, pairs: pairs.length, providers }
  }

  const factor = { totpSecret: 'SECRET', totpEnabledAt: someTime, totpLastStep: 7 }

  test('an account that proved its address keeps password, sessions, factor and identities, and gains one', async () => {
    const host = await start({ settings: linking, providers: { corp: {}, acme: {} } })
    const user = await addUser(host.knex, factor)
    const { refreshToken } = await everyWayIn(host, user)

    const response = await signIn(host, host.browser(), { profile: newPerson({ email: user.email.toUpperCase() }) })

    expect(response.status, response.text).toBe(200)
    expect(response.body.user_id).toBe(user.id)
    const now = host.clock.now()
    expect(await userById(host.knex, user.id)).toEqual({ ...user, lastLoginAt: now, updatedAt: now })
    expect(await waysIn(host, user.id)).toEqual({ tokens: 4, codes: 2, sessions: 1, pairs: 2, providers: ['acme', 'corp'] })
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: refreshToken })).status).toBe(200)
    expect(host.hasher.hashed).toBe(0)
  })

  test('R-060: of an account that never proved its address nothing that lets anyone in is left but the new identity', async () => {
    const host = await start({ settings: linking, providers: { corp: {}, acme: {} } })
    const user = await addUser(host.knex, { ...factor, emailVerifiedAt: null })
    const { refreshToken } = await everyWayIn(host, user)
    const heard: [AuthEventName, object][] = []
    for (const name of ['account.taken_over', 'identity.unlinked', 'mfa.disabled', 'identity.linked', 'login', 'challenge'] as const)
      host.auth.events.on(name, (payload) => heard.push([name, payload]))

    const owner = newPerson({ email: user.email })
    const response = await signIn(host, host.browser(), { profile: owner })

    expect(response.status, response.text).toBe(200)
    expect(response.body.user_id).toBe(user.id)
    const userId = user.id
    expect(heard).toEqual([
      ['account.taken_over', { userId }],
      ['mfa.disabled', { userId }],
      ['identity.unlinked', { userId, provider: 'acme' }],
      ['identity.linked', { userId, provider: 'corp' }],
      ['login', { userId, amr: ['ext'], provider: 'corp' }],
    ])
    const now = host.clock.now()
    const after = await userById(host.knex, user.id)
    expect(after).toEqual({
      ...user,
      hashedPassword: expect.stringMatching(/^![A-Za-z0-9_-]{43}$/),
      passwordSetAt: null,
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      emailVerifiedAt: now,
      lastLoginAt: now,
      updatedAt: now,
    })
    expect(await waysIn(host, user.id)).toEqual({ tokens: 0, codes: 0, sessions: 0, pairs: 1, providers: ['corp'] })
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: refreshToken })).status).toBe(401)
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: response.body.refresh_token })).status).toBe(200)
    // The address is proven now: the next link takes nothing away.
    const again = await signIn(host, host.browser(), { key: 'acme', profile: newPerson({ email: user.email }) })
    expect(again.body.user_id).toBe(user.id)
    expect((await userById(host.knex, user.id)).hashedPassword).toBe(after.hashedPassword)
  })

  test('R-060: where the unit fails in the middle, nothing was taken and nothing was linked', async () => {
    const user = { emailVerifiedAt: null }
    let victim: UserRecord | null = null
    const store = brokenAt('sessions.insertWithin', () => createKnexStore({ knex: host.knex }))
    const host: Mounted = await start({ settings: linking, providers: { corp: {}, acme: {} } })
    victim = await addUser(host.knex, user)
    const { refreshToken } = await everyWayIn(host, victim)
    const before = { row: await userById(host.knex, victim.id), ways: await waysIn(host, victim.id) }
    const failing = await start({ settings: linking, options: { store: store() } })

    const response = await signIn(failing, failing.browser(), { profile: newPerson({ email: victim.email }) })

    expect(response.status).toBe(500)
    expect(response.body.code).toBe('INTERNAL_ERROR')
    expect({ row: await userById(host.knex, victim.id), ways: await waysIn(host, victim.id) }).toEqual(before)
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: refreshToken })).status).toBe(200)
  })

  test('the owner deactivated is 401, and a stranger without the verified email takes nothing', async () => {
    const host = await start({ settings: linking, providers: { corp: {}, acme: {} } })
    const user = await addUser(host.knex, { emailVerifiedAt: null })
    await everyWayIn(host, user)
    const before = await waysIn(host, user.id)
    for (const emailVerified of [false, null]) {
      const response = await signIn(host, host.browser(), { profile: newPerson({ email: user.email, email_verified: emailVerified }) })
      expect(response.body.code).toBe('OAUTH_EMAIL_UNVERIFIED')
    }
    await host.knex('auth_users').where({ id: user.id }).update({ is_active: false })
    const response = await signIn(host, host.browser(), { profile: newPerson({ email: user.email }) })
    expect([response.status, response.body.code]).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
    expect(await waysIn(host, user.id)).toEqual(before)
  })

  test('R-063, C16: a second identity of one provider is 409 OAUTH_PROVIDER_ALREADY_LINKED, and the first stays', async () => {
    const host = await start({ settings: linking })
    const user = await addUser(host.knex)
    const first = newPerson({ email: user.email })
    expect((await signIn(host, host.browser(), { profile: first })).body.user_id).toBe(user.id)

    const second = await signIn(host, host.browser(), { profile: newPerson({ email: user.email }) })

    expect([second.status, second.body.code]).toEqual([409, 'OAUTH_PROVIDER_ALREADY_LINKED'])
    expect(await host.auth.service.listIdentities(user.id)).toMatchObject([{ subject: first.sub }])
  })

  test('the linked identity is in the accounts list, with what the provider said', async () => {
    const host = await start({ settings: linking })
    const user = await addUser(host.knex)
    const person = newPerson({ email: user.email, picture: 'https://cdn.example.test/p.png' })
    const response = await signIn(host, host.browser(), { profile: person })
    const list = await host.browser().get('/auth/oauth/accounts').set(bearer(response))
    expect(list.body).toMatchObject([
      { provider: 'corp', subject: person.sub, email: user.email, email_verified: true, picture: person['picture'] },
    ])
    expect((await userById(host.knex, user.id)).name).toBe('There Before')
  })

  test('C16: of ten links of one account at once, one is made; the others log in or are told', async () => {
    const host = await start({ settings: linking })
    const user = await addUser(host.knex, { emailVerifiedAt: null })
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => signIn(host, host.browser(), { profile: newPerson({ email: user.email }) })),
    )
    expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
    const winner = responses.find(({ status }) => status === 200)
    expect(await waysIn(host, user.id)).toMatchObject({ pairs: 1, providers: ['corp'] })
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: winner?.body.refresh_token })).status).toBe(200)
  })

  test('C16: ten first links of one identity at once end in one link, and everybody is in', async () => {
    const host = await start({ settings: linking })
    const user = await addUser(host.knex, { emailVerifiedAt: null })
    const person = newPerson({ email: user.email })
    const responses = await Promise.all(Array.from({ length: 10 }, () => signIn(host, host.browser(), { profile: person })))
    expect(responses.map(({ status, body }) => [status, body.user_id])).toEqual(Array(10).fill([200, user.id]))
    expect(await waysIn(host, user.id)).toEqual({ tokens: 0, codes: 0, sessions: 0, pairs: 10, providers: ['corp'] })
  })

  describe('a store without the column email_verified_at', () => {
    function withoutColumn(store: AuthStore): AuthStore {
      const fields = new Set([...store.users.fields].filter((field) => field !== 'emailVerifiedAt'))
      const blind = (user: UserRecord | null) => user && { ...user, emailVerifiedAt: null }
      const { users } = store
      return {
        ...store,
        users: {
          ...users,
          fields,
          find: async (id) => blind(await users.find(id)),
          findByEmail: async (email) => blind(await users.findByEmail(email)),
          lock: async (id) => blind(await users.lock(id)),
        },
        transaction: (work) => store.transaction((inside) => work(withoutColumn(inside))),
      }
    }

    test('is refused at boot together with linking, unless the host vouches for its addresses', async () => {
      const host = await start()
      const store = withoutColumn(createKnexStore({ knex: host.knex }))
      await expect(start({ settings: linking, options: { store } })).rejects.toThrow(/email_verified_at/)
      await expect(start({ settings: { ...linking, assumeEmailsProven: true }, options: { store } })).resolves.toBeDefined()
    })

    test('counts its addresses as proven where assumeEmailsProven says so: nothing is taken', async () => {
      const plain = await start({ providers: { corp: {}, acme: {} } })
      const user = await addUser(plain.knex, { ...factor, emailVerifiedAt: null })
      const { refreshToken } = await everyWayIn(plain, user)
      const store = withoutColumn(createKnexStore({ knex: plain.knex }))
      const host = await start({ settings: { ...linking, assumeEmailsProven: true }, options: { store } })

      expect((await signIn(host, host.browser(), { profile: newPerson({ email: user.email }) })).body.user_id).toBe(user.id)
      expect(await userById(plain.knex, user.id)).toMatchObject({ hashedPassword: user.hashedPassword, totpSecret: 'SECRET' })
      expect((await plain.browser().post('/auth/refresh').send({ refresh_token: refreshToken })).status).toBe(200)
    })

    test('assumeEmailsProven changes nothing where the column is there', async () => {
      const host = await start({ settings: { ...linking, assumeEmailsProven: true } })
      const user = await addUser(host.knex, { emailVerifiedAt: null })
      await signIn(host, host.browser(), { profile: newPerson({ email: user.email }) })
      expect((await userById(host.knex, user.id)).hashedPassword).not.toBe(user.hashedPassword)
    })
  })
})

/** A store whose unit fails at its last write. */
function brokenAt(verb: 'sessions.insertWithin', make: () => AuthStore): () => AuthStore {
  const broken = (store: AuthStore): AuthStore => {
    if (!store.sessions) throw new Error('no sessions')
    const insertWithin = () => Promise.reject(new Error(`${verb} failed`))
    return {
      ...store,
      sessions: { ...store.sessions, insertWithin },
      transaction: (work) => store.transaction((inside) => work(broken(inside))),
    }
  }
  return () => broken(make())
}
