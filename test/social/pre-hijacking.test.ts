import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { deriveKey } from '../../src/core/keys'
import { accountDigest } from '../../src/sessions/challenge'
import type { AuthStore, UserRecord } from '../../src/store/auth-store'
import { withSession } from '../../src/testing/records'
import { type Mounted, signIn, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { addIdentity, addUser, someTime, userById } from './accounts-at-hand'
import { beginLink, finishLink, link, member, requestLink } from './link-steps'
import { newPerson, onDatabase } from './redirect-steps'

/**
 * The attacks of "Pre-hijacked Accounts" (Sudhodanan, Paverd, 2022), played out: somebody makes an account with the
 * victim's address and waits for the victim. `attic` is the attacker's own provider, `corp` the one the victim uses.
 */
describe.each(await databases())('R-060, pre-hijacked accounts, on $name', (database) => {
  const { start, opened } = onDatabase(database)
  const linking = { oauthLinkByVerifiedEmail: true }
  const mounted = () => start({ settings: linking, providers: { corp: {}, attic: {}, acme: {} } })

  const password = 'what the attacker chose'

  /** An account with the victim's address that never proved it, and the attacker signed in to it. */
  async function hijack(host: Mounted, changes: Partial<UserRecord> = {}) {
    const chosen = { hashedPassword: await host.hasher.hash(password), emailVerifiedAt: null }
    const account = await addUser(host.knex, { ...chosen, ...changes })
    const trojan = newPerson()
    await addIdentity(host.knex, account.id, { provider: 'attic', subject: trojan.sub, email: trojan.email, emailVerified: true })
    const attacker = await member(host, { key: 'attic', profile: trojan })
    expect(attacker.userId).toBe(account.id)
    return { account, attacker, trojan }
  }

  /** The victim's first sign-in, by a provider that verified the address; a second after whatever the attacker did. */
  async function arrive(host: Mounted, account: UserRecord) {
    host.clock.advance(1)
    const victim = await member(host, { profile: newPerson({ email: account.email }) })
    expect(victim.userId).toBe(account.id)
    return victim
  }

  test('classic-federated merge: the password the attacker chose opens nothing any more', async () => {
    const host = await mounted()
    const { account } = await hijack(host)
    expect(await host.hasher.verify(account.hashedPassword, password)).toBe(true)

    await arrive(host, account)

    const { hashedPassword, passwordSetAt, emailVerifiedAt } = await userById(host.knex, account.id)
    expect(await host.hasher.verify(hashedPassword, password)).toBe(false)
    expect([passwordSetAt, emailVerifiedAt]).toEqual([null, host.clock.now()])
  })

  test('unexpired session: sessions of both kinds are dead, the rotated ones too', async () => {
    const host = await mounted()
    const { account, attacker } = await hijack(host)
    const rotated = await host.browser().post('/auth/refresh').send({ refresh_token: attacker.refreshToken })
    const store = createKnexStore({ knex: host.knex })
    const end = new Date(host.clock.now().getTime() + 86_400_000)
    const { id } = await withSession(store, { userId: account.id, kind: 'session', expiresAt: end, endsAt: end })

    const victim = await arrive(host, account)

    for (const refreshToken of [rotated.body.refresh_token, attacker.refreshToken]) {
      expect((await host.browser().post('/auth/refresh').send({ refresh_token: refreshToken })).status).toBe(401)
    }
    expect((await store.sessions.find({ id }))?.session.revokedAt).toEqual(host.clock.now())
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: victim.refreshToken })).status).toBe(200)
  })

  test('unexpired session: the access token, which lives on for minutes, links no way back in', async () => {
    const host = await mounted()
    const { account, attacker } = await hijack(host)
    const victim = await arrive(host, account)

    const response = await requestLink(host, attacker, { key: 'acme' })

    expect([response.status, response.body.code]).toEqual([401, 'INVALID_TOKEN'])
    expect(response.headers['set-cookie']).toBeUndefined()
    // The owner's own session may, from the next second on.
    host.clock.advance(1)
    const { body } = await victim.browser.post('/auth/refresh').send({ refresh_token: victim.refreshToken })
    expect((await link(host, { ...victim, token: body.access_token })).status).toBe(200)
  })

  test('trojan identifier: the identity the attacker linked leads to the account no more', async () => {
    const host = await mounted()
    const { account, trojan } = await hijack(host)

    await arrive(host, account)

    const again = await signIn(host, host.browser(), { key: 'attic', profile: trojan })
    expect(again.body.user_id).not.toBe(account.id)
    expect((await host.auth.service.listIdentities(account.id)).map(({ provider }) => provider)).toEqual(['corp'])
  })

  test('trojan identifier: a link begun before the victim came ends in 401 OAUTH_STATE_MISMATCH', async () => {
    const host = await mounted()
    const { account, attacker } = await hijack(host)
    const { query } = await beginLink(host, attacker, { key: 'acme' })

    await arrive(host, account)

    const response = await finishLink(host, attacker.browser, query)
    expect([response.status, response.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect((await host.auth.service.listIdentities(account.id)).map(({ provider }) => provider)).toEqual(['corp'])
  })

  test('unexpired email change: no link mailed before the victim came can be redeemed', async () => {
    const host = await mounted()
    const { account } = await hijack(host)
    const store = createKnexStore({ knex: host.knex })
    const purposes = ['EMAIL_CHANGE', 'PASSWORD_RESET', 'ACTIVATION', 'EMAIL_VERIFICATION'] as const
    const expiresAt = new Date(host.clock.now().getTime() + 3_600_000)
    const pending = purposes.map((purpose) => ({ purpose, tokenHash: randomBytes(32).toString('hex') }))
    for (const { purpose, tokenHash } of pending) {
      const payload = purpose === 'EMAIL_CHANGE' ? '- - attacker@example.test' : null
      await store.userTokens.insert({ userId: account.id, purpose, tokenHash, payload, expiresAt, usedAt: null, createdAt: someTime })
    }

    await arrive(host, account)

    for (const { purpose, tokenHash } of pending) expect(await store.userTokens.consume(tokenHash, purpose, host.clock.now())).toBeNull()
  })

  test('a second factor and recovery codes of the attacker lock nobody out, and a challenge begun before is dead', async () => {
    const host = await mounted()
    const factor = { totpSecret: 'ATTACKERS', totpEnabledAt: null, totpLastStep: 4 }
    const { account } = await hijack(host, factor)
    const store = createKnexStore({ knex: host.knex })
    await host
      .knex('auth_users')
      .where({ id: account.id })
      .update({ totp_enabled_at: database.name === 'sqlite' ? someTime.getTime() : someTime })
    await store.recoveryCodes.replaceForUser(account.id, ['a'.repeat(64)])
    const challenged = accountDigest(deriveKey(testSecret, 'mfa'), await userById(host.knex, account.id))

    await arrive(host, account)

    const after = await userById(host.knex, account.id)
    expect(after).toMatchObject({ totpSecret: null, totpEnabledAt: null, totpLastStep: null })
    expect(await store.recoveryCodes.consume(account.id, 'a'.repeat(64), host.clock.now())).toBe(false)
    expect(accountDigest(deriveKey(testSecret, 'mfa'), after)).not.toBe(challenged)
  })

  describe('non-verifying provider', () => {
    test.each([[null], [false], ['yes'], [1]])(
      "an account made with the victim's address by a provider that says %j of it loses its sessions once the victim comes, and keeps the identity it was created with (25.9.1)",
      async (emailVerified) => {
        const host = await mounted()
        const { email } = newPerson()
        const claimed = newPerson({ email, email_verified: emailVerified })
        const attacker = await member(host, { key: 'attic', profile: claimed })
        expect((await userById(host.knex, attacker.userId)).emailVerifiedAt).toBeNull()
        host.clock.advance(1)

        const victim = await member(host, { profile: newPerson({ email }) })

        expect(victim.userId).toBe(attacker.userId)
        const again = await signIn(host, host.browser(), { key: 'attic', profile: claimed })
        expect([again.status, again.body.user_id]).toEqual([200, attacker.userId])
        expect((await host.browser().post('/auth/refresh').send({ refresh_token: attacker.refreshToken })).status).toBe(401)
        expect((await requestLink(host, attacker, { key: 'acme' })).status).toBe(401)
        // The mail names the identity. For a day it signs in, but confirms no change, so the victim can unlink it first.
        const refused = await requestLink(host, { browser: host.browser(), token: again.body.access_token }, { key: 'acme' })
        expect([refused.status, refused.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
        expect(refused.body.details.methods).not.toContain('provider:attic')
      },
    )

    test('the word of one that is not trusted (trustEmail: false) proves nothing: the victim takes the account over, and its first identity stays (25.9.1)', async () => {
      const host = await start({ settings: linking, providers: { corp: {}, attic: { trustEmail: false } } })
      const { email } = newPerson()
      const liar = newPerson({ email, email_verified: true })
      const attacker = await member(host, { key: 'attic', profile: liar })
      host.clock.advance(1)

      const victim = await member(host, { profile: newPerson({ email }) })

      expect(victim.userId).toBe(attacker.userId)
      expect((await host.browser().post('/auth/refresh').send({ refresh_token: attacker.refreshToken })).status).toBe(401)
      expect((await signIn(host, host.browser(), { key: 'attic', profile: liar })).body.user_id).toBe(victim.userId)
    })

    describe('a login by the first identity that begins before the take-over, and ends after it (25.9.1)', () => {
      const unverified = () => {
        const { email } = newPerson()
        return { email, claimed: newPerson({ email, email_verified: false }) }
      }

      test('confirms no change for a day, if the take-over comes between its read and its transaction', async () => {
        const { email, claimed } = unverified()
        let arrivesNow: (() => Promise<unknown>) | null = null
        const real = createKnexStore({ knex: opened().knex })
        const transaction: AuthStore['transaction'] = async (work, options) => {
          const arriving = arrivesNow
          arrivesNow = null
          await arriving?.()
          return real.transaction(work, options)
        }
        const host = await start({
          settings: linking,
          providers: { corp: {}, attic: {}, acme: {} },
          options: { store: { ...real, transaction } },
        })
        const { userId } = await member(host, { key: 'attic', profile: claimed })
        host.clock.advance(86_401) // the identity is old, until the account is taken over
        arrivesNow = () => member(host, { profile: newPerson({ email }) })

        const late = await signIn(host, host.browser(), { key: 'attic', profile: claimed })

        expect([arrivesNow, late.status, late.body.user_id]).toEqual([null, 200, userId])
        const refused = await requestLink(host, { browser: host.browser(), token: late.body.access_token }, { key: 'acme' })
        expect([refused.status, refused.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
      })

      test('is over, if the take-over comes while the host is asked for its claims', async () => {
        const { email, claimed } = unverified()
        let arrivesNow: (() => Promise<unknown>) | null = null
        const accessTokenClaims = async () => {
          const arriving = arrivesNow
          arrivesNow = null
          await arriving?.()
          return {}
        }
        const host = await start({ settings: linking, providers: { corp: {}, attic: {} }, options: { accessTokenClaims } })
        await member(host, { key: 'attic', profile: claimed })
        arrivesNow = () => member(host, { profile: newPerson({ email }) })

        const late = await signIn(host, host.browser(), { key: 'attic', profile: claimed })

        expect([arrivesNow, late.status, late.body.code]).toEqual([null, 401, 'UNAUTHORIZED'])
      })
    })

    test("the other way round it takes nothing: the victim's account is refused to it", async () => {
      const host = await mounted()
      const victim = await member(host)
      const response = await signIn(host, host.browser(), {
        key: 'attic',
        profile: newPerson({ email: victim.email, email_verified: null }),
      })
      expect([response.status, response.body.code]).toEqual([409, 'OAUTH_EMAIL_UNVERIFIED'])
    })
  })

  test('where linking by verified email is off the victim is refused, and never merged into what waits there', async () => {
    const host = await start({ providers: { corp: {}, attic: {} } })
    const { account } = await hijack(host)
    const response = await signIn(host, host.browser(), { profile: newPerson({ email: account.email }) })
    expect([response.status, response.body.code]).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    expect((await host.auth.service.listIdentities(account.id)).map(({ provider }) => provider)).toEqual(['attic'])
  })

  test('an access token from before a reset, a new password or a new factor links nothing; a refreshed one does', async () => {
    for (const field of ['passwordSetAt', 'totpEnabledAt', 'emailVerifiedAt']) {
      const host = await mounted()
      const ana = await member(host)
      host.clock.advance(1)
      await createKnexStore({ knex: host.knex }).users.update(ana.userId, { [field]: host.clock.now() })

      expect((await requestLink(host, ana)).body.code).toBe('INVALID_TOKEN')

      // A token of the very second of the change may be older than it.
      const same = await ana.browser.post('/auth/refresh').send({ refresh_token: ana.refreshToken })
      expect((await requestLink(host, { ...ana, token: same.body.access_token })).body.code, field).toBe('INVALID_TOKEN')
      host.clock.advance(1)
      const { body } = await ana.browser.post('/auth/refresh').send({ refresh_token: same.body.refresh_token })
      expect((await requestLink(host, { ...ana, token: body.access_token })).status, field).toBe(200)
    }
  })
})
