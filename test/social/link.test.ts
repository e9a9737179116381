import type { Request, Response } from 'express'
import { describe, expect, test } from 'vitest'
import { createKnexStore, type ProviderClient } from '../../src'
import type { AuthContext } from '../../src/context'
import { OAuthTokenAudienceMismatchError } from '../../src/core/errors'
import { deriveKeys } from '../../src/core/keys'
import { createPhraseBook } from '../../src/core/texts/phrase-book'
import { type Attempt, readAttempts, writeAttempts } from '../../src/social/state-cookie'
import { type Mounted, type MountOptions, setCookieOf, signIn } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { answer } from '../support/fake-provider'
import { addUser, rowCounts, userById } from './accounts-at-hand'
import { beginLink, finishLink, link, type Member, member, redeemed, requestLink } from './link-steps'
import { callBack, cookiePair, isCleared, newPerson, onDatabase, providerCalls } from './redirect-steps'

const two = { providers: { corp: {}, acme: {} } }

describe.each(await databases())('POST /oauth/:provider/link, on $name', (database) => {
  const { start } = onDatabase(database)

  /** `corp` before `acme`, whatever the order in time. */
  const subjects = async (host: Mounted, userId: string) => {
    const identities = await host.auth.service.listIdentities(userId)
    return identities
      .map(({ provider, subject }) => `${provider}:${subject}`)
      .sort()
      .reverse()
  }

  describe('by redirect', () => {
    test('answers the authorize URL and a state cookie, and its callback links instead of logging in', async () => {
      const host = await start(two)
      const linked: unknown[] = []
      host.auth.events.on('identity.linked', (payload) => linked.push(payload))
      const ana = await member(host)
      const before = await rowCounts(host.knex)

      const { response, profile, query } = await beginLink(host, ana)

      expect(Object.keys(response.body)).toEqual(['authorize_url'])
      expect(response.headers['cache-control']).toBe('no-store')
      const url = new URL(response.body.authorize_url)
      expect(url.origin + url.pathname).toBe(host.provider.authorizeUrl)
      expect(url.searchParams.get('redirect_uri')).toBe('https://app.example.test/auth/oauth/acme/callback')
      expect(url.searchParams.get('code_challenge_method')).toBe('S256')
      expect(setCookieOf(response, 'oauth_state')?.attributes).toMatch(/HttpOnly; SameSite=Lax/)

      const given = await ana.browser.get('/auth/oauth/acme/callback').query(query)
      expect([given.status, Object.keys(given.body), isCleared(given)]).toEqual([200, ['link_ticket'], true])
      const callback = await redeemed(host, ana.browser, given)

      const now = host.clock.now().toISOString()
      expect(callback.status, callback.text).toBe(200)
      expect(callback.body).toEqual({
        provider: 'acme',
        subject: profile.sub,
        email: profile.email,
        email_verified: true,
        name: profile['name'],
        picture: null,
        created_at: now,
        last_login_at: now,
      })
      // One identity more, and the used ticket: no session, no account.
      expect(await rowCounts(host.knex)).toEqual({
        ...before,
        auth_identities: Number(before['auth_identities']) + 1,
        auth_user_tokens: Number(before['auth_user_tokens']) + 1,
      })
      expect(linked.at(-1)).toEqual({ userId: ana.userId, provider: 'acme' })
      expect((await signIn(host, host.browser(), { key: 'acme', profile })).body.user_id).toBe(ana.userId)
    })

    test('needs no email at all, and asks nobody about it: not even where it belongs to another account', async () => {
      const host = await start({ ...two, settings: { oauthAllowAccountCreation: true } })
      const [ana, other] = [await member(host), await addUser(host.knex)]
      const without = await link(host, ana, { profile: newPerson({ email: null }) })
      expect([without.status, without.body.email]).toEqual([200, null])

      const bob = await member(host)
      const foreign = await link(host, bob, { profile: newPerson({ email: other.email }) })
      expect([foreign.status, foreign.body.email]).toEqual([200, other.email])
      expect(await subjects(host, other.id)).toEqual([])
      expect((await userById(host.knex, bob.userId)).email).toBe(bob.email)
    })

    test('linking the same identity again is 200 and changes nothing', async () => {
      const host = await start(two)
      const ana = await member(host)
      const profile = newPerson()
      const first = await link(host, ana, { profile })
      const events: unknown[] = []
      host.auth.events.on('identity.linked', (payload) => events.push(payload))
      host.clock.advance(60)

      const again = await link(host, ana, { profile: { ...profile, name: 'Another Name' } })

      expect([again.status, again.body]).toEqual([200, first.body])
      expect(events).toEqual([])
    })

    test('R-063: an identity of another account is 409 OAUTH_IDENTITY_TAKEN, and is not moved', async () => {
      const host = await start(two)
      const [ana, mallory] = [await member(host), await member(host)]
      const profile = newPerson()
      await link(host, ana, { profile })
      const row = await host.knex('auth_identities').where({ provider: 'acme', subject: profile.sub }).first()

      const response = await link(host, mallory, { profile })

      expect(response.status).toBe(409)
      expect(response.body).toMatchObject({ code: 'OAUTH_IDENTITY_TAKEN', details: { provider: 'acme' } })
      expect(response.text).not.toContain(ana.userId)
      expect(await host.knex('auth_identities').where({ provider: 'acme', subject: profile.sub }).first()).toEqual(row)
      expect(await subjects(host, mallory.userId)).toEqual([`corp:${mallory.profile.sub}`])
    })

    test('another identity of a provider the account has is 409 OAUTH_PROVIDER_ALREADY_LINKED, and the first stays', async () => {
      const host = await start(two)
      const ana = await member(host)
      const first = newPerson()
      await link(host, ana, { profile: first })

      const response = await link(host, ana, { profile: newPerson() })

      expect([response.status, response.body.code]).toEqual([409, 'OAUTH_PROVIDER_ALREADY_LINKED'])
      expect(await subjects(host, ana.userId)).toEqual([`corp:${ana.profile.sub}`, `acme:${first.sub}`])
    })

    test('with a success redirect the linking browser lands there, and a refusal at the error redirect', async () => {
      const settings = { tokenDelivery: 'cookie', oauthSuccessRedirect: '/account', oauthErrorRedirect: '/account?tab=1' } as const
      const host = await start({ ...two, settings })
      const [ana, other] = [host.browser(), host.browser()]
      const taken = newPerson()
      await signIn(host, other, { key: 'acme', profile: taken })
      await signIn(host, ana, { profile: newPerson() })
      const begin = async (profile: Record<string, unknown>) => {
        const { body } = await ana.post('/auth/oauth/acme/link').set('Origin', 'https://app.example.test')
        return host.provider.authorize(body.authorize_url, { profile }).callbackQuery
      }

      const refused = await finishLink(host, ana, await begin(taken))
      expect([refused.status, refused.headers['location']]).toEqual([302, '/account?tab=1&error=OAUTH_IDENTITY_TAKEN'])
      const linked = await finishLink(host, ana, await begin(newPerson()))
      expect([linked.status, linked.headers['location']]).toEqual([302, '/account'])
      expect(setCookieOf(linked, 'access_token')).toBeNull()
    })

    test('a link and a login side by side in one browser do not mix', async () => {
      const host = await start(two)
      const ana = await member(host)
      const linking = await beginLink(host, ana)
      const stranger = newPerson()
      const login = await ana.browser.get('/auth/oauth/acme/login')
      const { callbackQuery } = host.provider.authorize(String(login.headers['location']), { profile: stranger })

      const loggedIn = await finishLink(host, ana.browser, callbackQuery)
      const linked = await finishLink(host, ana.browser, linking.query)

      expect(loggedIn.body.user_id).not.toBe(ana.userId)
      expect(linked.body).toMatchObject({ provider: 'acme', subject: linking.profile.sub })
      expect(await subjects(host, ana.userId)).toEqual([`corp:${ana.profile.sub}`, `acme:${linking.profile.sub}`])
    })
  })

  describe('who may', () => {
    test('nobody without an access token, nor with a refused one', async () => {
      const host = await start(two)
      const ana = await member(host)
      for (const token of [null, 'x.y.z', ana.refreshToken]) {
        const response = await requestLink(host, ana, { token })
        expect(response.status).toBe(401)
        expect(cookiePair(response)).toBeNull()
      }
      expect(providerCalls(host)).toBe(3) // the login before: token, keys, userinfo
    })

    test('an unknown provider is 404, a deactivated account 403, an account that is gone 401, and no attempt begins', async () => {
      const host = await start(two)
      const ana = await member(host)
      for (const key of ['nobody', '__proto__', 'constructor']) {
        expect((await requestLink(host, ana, { key })).body.code).toBe('OAUTH_PROVIDER_NOT_CONFIGURED')
      }
      await host.knex('auth_users').where({ id: ana.userId }).update({ is_active: false })
      const inactive = await requestLink(host, ana)
      expect([inactive.status, inactive.body.code, cookiePair(inactive)]).toEqual([403, 'ACCOUNT_INACTIVE', null])
      await host.knex('auth_identities').where({ user_id: ana.userId }).delete()
      await host.knex('auth_sessions').where({ user_id: ana.userId }).delete()
      await host.knex('auth_users').where({ id: ana.userId }).delete()
      const gone = await requestLink(host, ana)
      expect([gone.status, gone.body.code, cookiePair(gone)]).toEqual([401, 'UNAUTHORIZED', null])
    })

    test('by cookie only from our own pages', async () => {
      const host = await start({ ...two, settings: { tokenDelivery: 'cookie' } })
      const browser = host.browser()
      await signIn(host, browser, { profile: newPerson() })
      const fromElsewhere: Record<string, string>[] = [
        { Origin: 'https://evil.example' },
        { Origin: 'null' },
        { 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'same-site' },
      ]
      for (const headers of fromElsewhere) {
        const response = await browser.post('/auth/oauth/acme/link').set({ ...headers, ...oldBrowser })
        expect([response.status, response.body.code]).toEqual([403, 'CSRF_VALIDATION_FAILED'])
        expect(cookiePair(response)).toBeNull()
      }
      expect((await browser.post('/auth/oauth/acme/link').set('Origin', 'https://app.example.test')).status).toBe(200)
    })

    test('as often as the route budget of one address says, then 429', async () => {
      const host = await start({ ...two, options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
      const ana = await member(host)
      const statuses: number[] = []
      for (let call = 0; call < 4; call += 1) statuses.push((await requestLink(host, ana)).status)
      expect(statuses).toEqual([200, 200, 200, 429])
    })

    test('another method is 405', async () => {
      const host = await start(two)
      const response = await host.browser().get('/auth/oauth/acme/link')
      expect([response.status, response.headers['allow']]).toEqual([405, 'POST'])
    })
  })

  describe('an attempt is bound', () => {
    test("S15: an attacker's attempt finished in the victim's browser links nothing, with or without an attempt of the victim's own", async () => {
      const host = await start(two)
      const [mallory, victim] = [await member(host), await member(host)]
      const own = await beginLink(host, mallory)
      const visit = host.provider.authorize((await requestLink(host, mallory)).body.authorize_url, { profile: newPerson() }).callbackQuery

      // The victim is lured to the provider by mallory's URL, or straight to mallory's callback.
      for (const query of [visit, own.query]) {
        const lured = await finishLink(host, victim.browser, query)
        expect([lured.status, lured.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
        await beginLink(host, victim)
        expect((await finishLink(host, victim.browser, query)).body.code).toBe('OAUTH_STATE_MISMATCH')
      }
      expect(await subjects(host, mallory.userId)).toEqual([`corp:${mallory.profile.sub}`])
      expect(await subjects(host, victim.userId)).toEqual([`corp:${victim.profile.sub}`])
    })

    test('S15: an attempt planted in a browser where somebody else is signed in links nothing and spends no code', async () => {
      const host = await start({ ...two, settings: { tokenDelivery: 'cookie' } })
      const [mallory, victim] = [host.browser(), host.browser()]
      const { body: malloryBody } = await signIn(host, mallory, { profile: newPerson() })
      const victimLogin = await signIn(host, victim, { profile: newPerson() })
      const begun = await mallory.post('/auth/oauth/acme/link').set('Origin', 'https://app.example.test')
      const { callbackQuery } = host.provider.authorize(begun.body.authorize_url, { profile: newPerson() })
      const exchanges = host.provider.requestsTo('token').length

      const access = cookiePair(victimLogin, 'access_token')
      const response = await callBack(host, callbackQuery, { key: 'acme', cookie: `${cookiePair(begun)}; ${access}` })

      expect([response.status, response.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
      expect(isCleared(response)).toBe(true)
      expect(host.provider.requestsTo('token').length).toBe(exchanges)
      expect(await subjects(host, malloryBody.user_id)).toHaveLength(1)
    })

    test('an access token that expired on the way is no obstacle: the attempt names the account', async () => {
      const host = await start({ ...two, settings: { tokenDelivery: 'cookie', accessTokenTtlSeconds: 60 } })
      const browser = host.browser()
      const login = await signIn(host, browser, { profile: newPerson() })
      const begun = await browser.post('/auth/oauth/acme/link').set('Origin', 'https://app.example.test')
      const { callbackQuery } = host.provider.authorize(begun.body.authorize_url, { profile: newPerson() })
      host.clock.advance(120)

      const cookie = [cookiePair(begun), cookiePair(login, 'access_token'), cookiePair(login, 'refresh_token')].join('; ')
      const answered = await callBack(host, callbackQuery, { key: 'acme', cookie })
      expect([answered.status, answered.body.provider]).toEqual([200, 'acme'])
    })

    test('R-020, R-022: it is good for one callback, for ten minutes, at its own provider', async () => {
      const host = await start(two)
      const ana = await member(host)
      const once = await beginLink(host, ana)
      const cookie = cookiePair(once.response)
      expect((await callBack(host, once.query, { key: 'acme', cookie })).status).toBe(200)
      expect((await callBack(host, once.query, { key: 'acme', cookie })).body.code).toBe('OAUTH_STATE_MISMATCH')

      const elsewhere = await beginLink(host, ana)
      expect((await callBack(host, elsewhere.query, { key: 'corp', cookie: cookiePair(elsewhere.response) })).body.code).toBe(
        'OAUTH_STATE_MISMATCH',
      )
      const late = await beginLink(host, ana)
      host.clock.advance(600)
      expect((await callBack(host, late.query, { key: 'acme', cookie: cookiePair(late.response) })).body.code).toBe('OAUTH_STATE_MISMATCH')
    })

    test('purpose, account and digest are under the seal: none of them can be changed', async () => {
      const host = await start(two)
      const [ana, mallory] = [await member(host), await member(host)]
      const { response, query } = await beginLink(host, mallory)
      const sealed = String(setCookieOf(response, 'oauth_state')?.value).split('.')
      const [purpose, provider, random, expiry, locale, user, digest, session, begun, final, seal] = sealed
      expect([sealed.length, purpose, provider]).toEqual([11, 'link', 'acme'])
      const other = Buffer.from(ana.userId).toString('base64url')
      const forged = [
        ['login', provider, random, expiry, locale, user, digest, session, begun, final, seal],
        ['reauthenticate', provider, random, expiry, locale, user, digest, session, begun, final, seal],
        ['login', provider, random, expiry, locale, seal],
        [purpose, provider, random, expiry, locale, other, digest, session, begun, final, seal],
        [purpose, provider, random, expiry, locale, user, `${digest}x`, session, begun, final, seal],
        [purpose, provider, random, expiry, locale, user, digest, '', begun, final, seal],
        [purpose, provider, random, expiry, locale, user, digest, session, '0', final, seal],
        [purpose, provider, random, expiry, locale, user, digest, session, begun, 'final', seal],
        [purpose, provider, random, expiry, locale, seal],
      ]
      for (const fields of forged) {
        const answered = await callBack(host, query, { key: 'acme', cookie: `oauth_state=${fields.join('.')}` })
        expect([answered.status, answered.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
      }
      expect(host.provider.requestsTo('token')).toHaveLength(2)
      expect(sealed.join('.')).not.toContain((await userById(host.knex, mallory.userId)).hashedPassword)
    })

    const inBetween: [string, object][] = [
      ['a password change or reset', { hashed_password: 'test$changed' }],
      ['a second factor', { totp_enabled_at: 1_700_000_000_000 }],
      ['a deactivation', { is_active: false }],
    ]
    test.each(inBetween)('%s in between is 401 OAUTH_STATE_MISMATCH, spends no code and ends the other attempts', async (what, changes) => {
      const host = await start(two)
      const ana = await member(host)
      const { query } = await beginLink(host, ana)
      const value = what === 'a second factor' && database.name !== 'sqlite' ? { totp_enabled_at: new Date(1_700_000_000_000) } : changes
      await host.knex('auth_users').where({ id: ana.userId }).update(value)
      const exchanges = host.provider.requestsTo('token').length

      const response = await finishLink(host, ana.browser, query)

      expect([response.status, response.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
      expect(isCleared(response)).toBe(true)
      expect(host.provider.requestsTo('token').length).toBe(exchanges)
      expect(await subjects(host, ana.userId)).toEqual([`corp:${ana.profile.sub}`])
    })

    test.each(inBetween.filter(([what]) => what !== 'a second factor'))(
      '%s while the provider is being asked is seen under the lock',
      async (_what, changes) => {
        const host = await start(two)
        const ana = await member(host)
        const { query, profile } = await beginLink(host, ana)
        host.provider.on('userinfo', async (request, response) => {
          await host.knex('auth_users').where({ id: ana.userId }).update(changes)
          await answer(200, profile)(request, response)
        })

        const response = await finishLink(host, ana.browser, query)

        expect([response.status, response.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
        expect(await subjects(host, ana.userId)).toEqual([`corp:${ana.profile.sub}`])
      },
    )

    test('an account deleted in between is 401 OAUTH_STATE_MISMATCH', async () => {
      const host = await start(two)
      const ana = await member(host)
      const { query } = await beginLink(host, ana)
      await host.knex('auth_identities').where({ user_id: ana.userId }).delete()
      await host.knex('auth_sessions').where({ user_id: ana.userId }).delete()
      await host.knex('auth_users').where({ id: ana.userId }).delete()
      expect((await finishLink(host, ana.browser, query)).body.code).toBe('OAUTH_STATE_MISMATCH')
    })

    test.each([false, true])('a logout in that browser ends it (all_sessions: %s)', async (all_sessions) => {
      const host = await start(two)
      const ana = await member(host)
      const { query, profile } = await beginLink(host, ana)
      await ana.browser.post('/auth/logout').send({ refresh_token: ana.refreshToken, all_sessions })

      const response = await finishLink(host, ana.browser, query)

      expect([response.status, response.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
      expect(await host.knex('auth_identities').where({ subject: profile.sub })).toEqual([])
    })

    test('the proof of the address in between ends it', async () => {
      const host = await start(two)
      const ana = await member(host)
      const { query } = await beginLink(host, ana)
      host.clock.advance(1)
      await createKnexStore({ knex: host.knex }).users.update(ana.userId, { emailVerifiedAt: host.clock.now() })
      expect((await finishLink(host, ana.browser, query)).body.code).toBe('OAUTH_STATE_MISMATCH')
    })

    test('a login, a refresh or a profile change in between is nothing to it', async () => {
      const host = await start(two)
      const ana = await member(host)
      const { query } = await beginLink(host, ana)
      await signIn(host, host.browser(), { profile: ana.profile })
      await host.browser().post('/auth/refresh').send({ refresh_token: ana.refreshToken })
      await host.knex('auth_users').where({ id: ana.userId }).update({ name: 'Renamed' })
      expect((await finishLink(host, ana.browser, query)).status).toBe(200)
    })
  })

  describe('with an access token in the body', () => {
    interface Native {
      client: ProviderClient
      calls: string[]
    }

    /** A client of the host's own, with one subject behind every token. */
    function native(subjectOf: (token: string) => string, audience?: (token: string) => Promise<void>): Native {
      const calls: string[] = []
      const client: ProviderClient = {
        providerName: 'acme',
        clientId: 'app',
        authorizeUrl: 'https://acme.example/authorize',
        tokenUrl: 'https://acme.example/token',
        scopes: [],
        exchangeCode: () => Promise.reject(new Error('no code here')),
        async fetchUser({ accessToken }) {
          calls.push(`fetchUser ${accessToken}`)
          return { provider: 'acme', subject: subjectOf(accessToken), email: null, emailVerified: null, name: null, picture: null, raw: {} }
        },
        ...(audience && {
          async verifyTokenAudience(token: string) {
            calls.push(`verifyTokenAudience ${token}`)
            await audience(token)
          },
        }),
      }
      return { client, calls }
    }

    const mountNative = (acme: ProviderClient, more: Omit<MountOptions, 'knex'> = {}) => start({ providers: { corp: {}, acme }, ...more })

    test('the audience is checked before the profile is read; the first link is 201, the same again 200', async () => {
      const subject = newPerson().sub
      const { client, calls } = native(
        () => subject,
        async () => {},
      )
      const host = await mountNative(client)
      const ana = await member(host)

      const first = await requestLink(host, ana, { body: { access_token: 'in-hand' } })
      const again = await requestLink(host, ana, { body: { access_token: 'in-hand' } })

      expect([first.status, again.status]).toEqual([201, 200])
      expect(first.body).toMatchObject({ provider: 'acme', subject, email: null, email_verified: null })
      expect(again.body).toEqual(first.body)
      expect(cookiePair(first)).toBeNull()
      expect(calls).toEqual(['verifyTokenAudience in-hand', 'fetchUser in-hand', 'verifyTokenAudience in-hand', 'fetchUser in-hand'])
      expect(await subjects(host, ana.userId)).toEqual([`corp:${ana.profile.sub}`, `acme:${subject}`])
    })

    test('whoever a reset or a logout puts out while the provider is asked links nothing', async () => {
      const ends: Record<string, (host: Mounted, who: Member) => Promise<unknown>> = {
        reset: async (host, { email }) => {
          const link = await host.auth.service.requestPasswordReset(email)
          return host.auth.service.resetPassword({ token: link?.token ?? '', newPassword: 'a quiet harbour in winter' })
        },
        logout: async (host, { refreshToken }) => host.browser().post('/auth/logout').send({ refresh_token: refreshToken }),
      }
      for (const [name, end] of Object.entries(ends)) {
        let meanwhile: () => Promise<unknown> = async () => undefined
        const { client } = native(
          (token) => token,
          async () => void (await meanwhile()),
        )
        const host = await mountNative(client)
        const ana = await member(host)
        host.clock.advance(2)
        meanwhile = () => end(host, ana)

        const response = await requestLink(host, ana, { body: { access_token: 'in-hand' } })

        expect([name, response.status, response.body.code]).toEqual([name, 401, 'INVALID_TOKEN'])
        expect(await subjects(host, ana.userId)).not.toContain('acme:in-hand')
      }
    })

    test('a session that is not fresh is refused before the provider is asked', async () => {
      const { client, calls } = native(
        () => 'x',
        async () => undefined,
      )
      const host = await mountNative(client)
      const ana = await member(host)
      host.clock.advance(901)
      const { body } = await ana.browser.post('/auth/refresh').send({ refresh_token: ana.refreshToken })
      const response = await requestLink(host, { ...ana, token: body.access_token }, { body: { access_token: 'in-hand' } })

      expect([response.status, response.body.code, calls]).toEqual([403, 'REAUTHENTICATION_REQUIRED', []])
    })

    test('a client that cannot check the audience is 501 OAUTH_AUDIENCE_UNVERIFIABLE before any call', async () => {
      const { client, calls } = native(() => 'x')
      const host = await mountNative(client)
      const ana = await member(host)
      const response = await requestLink(host, ana, { body: { access_token: 'in-hand' } })
      expect([response.status, response.body.code]).toEqual([501, 'OAUTH_AUDIENCE_UNVERIFIABLE'])
      expect(calls).toEqual([])
    })

    test('a token of another application is refused before the profile is read', async () => {
      const { client, calls } = native(
        () => 'x',
        () => Promise.reject(new OAuthTokenAudienceMismatchError()),
      )
      const host = await mountNative(client)
      const ana = await member(host)
      const response = await requestLink(host, ana, { body: { access_token: 'stolen' } })
      expect([response.status, response.body.code]).toEqual([401, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'])
      expect(calls).toEqual(['verifyTokenAudience stolen'])
      expect(await subjects(host, ana.userId)).toHaveLength(1)
    })

    test('a client that throws anything else is 502, and the token stands in no log', async () => {
      const { client } = native(
        () => 'x',
        () => Promise.reject(new TypeError('broken with in-hand-secret')),
      )
      const host = await mountNative(client)
      const ana = await member(host)
      const response = await requestLink(host, ana, { body: { access_token: 'in-hand-secret' } })
      expect([response.status, response.body.code, response.body.details]).toEqual([
        502,
        'OAUTH_ERROR',
        { provider: 'acme', status: null, body: null },
      ])
      expect(response.text + host.logs.text()).not.toContain('in-hand-secret')
      expect(host.logs.text()).toContain('a provider call failed')
    })

    test('R-063: an identity of another account is 409, a second one of the provider too', async () => {
      const { client } = native(
        (token) => `subject of ${token}`,
        async () => {},
      )
      const host = await mountNative(client)
      const [ana, bob] = [await member(host), await member(host)]
      const [one, other] = [newPerson().sub, newPerson().sub]
      expect((await requestLink(host, ana, { body: { access_token: one } })).status).toBe(201)
      expect((await requestLink(host, bob, { body: { access_token: one } })).body.code).toBe('OAUTH_IDENTITY_TAKEN')
      expect((await requestLink(host, ana, { body: { access_token: other } })).body.code).toBe('OAUTH_PROVIDER_ALREADY_LINKED')
    })

    test.each([[''], ['with blank'], ['a\n'], ['ü'], ['a'.repeat(8193)], [7], [null], [['a']], [{}]])(
      'access_token %j is 422 without any call',
      async (value) => {
        const { client, calls } = native(
          () => 'x',
          async () => {},
        )
        const host = await mountNative(client)
        const ana = await member(host)
        const response = await requestLink(host, ana, { body: { access_token: value } })
        expect([response.status, response.body.code, response.body.details.errors[0].path]).toEqual([
          422,
          'VALIDATION_ERROR',
          'access_token',
        ])
        if (typeof value === 'string' && value.length > 3) expect(response.text).not.toContain(value)
        expect(calls).toEqual([])
      },
    )

    test('8192 visible characters are taken; a body that is no JSON is 415', async () => {
      const { client } = native(
        (token) => String(token.length),
        async () => {},
      )
      const host = await mountNative(client)
      const ana = await member(host)
      expect((await requestLink(host, ana, { body: { access_token: '~'.repeat(8192) } })).body.subject).toBe('8192')
      const form = await ana.browser
        .post('/auth/oauth/acme/link')
        .set('Authorization', `Bearer ${ana.token}`)
        .type('form')
        .send('access_token=x')
      expect(form.status).toBe(415)
    })

    test('a deactivated account is 403, one that is gone 401', async () => {
      const { client } = native(
        () => newPerson().sub,
        async () => {},
      )
      const host = await mountNative(client)
      const ana = await member(host)
      await host.knex('auth_users').where({ id: ana.userId }).update({ is_active: false })
      const inactive = await requestLink(host, ana, { body: { access_token: 'in-hand' } })
      expect([inactive.status, inactive.body.code]).toEqual([403, 'ACCOUNT_INACTIVE'])
      expect(await subjects(host, ana.userId)).toHaveLength(1)
    })
  })

  describe('service.linkIdentity', () => {
    const profile = (subject: string) => ({
      provider: 'acme',
      subject,
      email: null,
      emailVerified: null,
      name: null,
      picture: null,
      raw: {},
    })

    test('does the same without HTTP, throwing the same errors', async () => {
      const host = await start(two)
      const [ana, bob] = [await addUser(host.knex), await addUser(host.knex)]
      const { sub } = newPerson()
      const { service } = host.auth
      const identity = await service.linkIdentity(ana.id, profile(sub))
      expect(identity).toMatchObject({ userId: ana.id, provider: 'acme', subject: sub })
      expect(await service.linkIdentity(ana.id, profile(sub))).toEqual(identity)
      await expect(service.linkIdentity(bob.id, profile(sub))).rejects.toMatchObject({ code: 'OAUTH_IDENTITY_TAKEN' })
      await expect(service.linkIdentity(ana.id, profile(newPerson().sub))).rejects.toMatchObject({ code: 'OAUTH_PROVIDER_ALREADY_LINKED' })
      await expect(service.linkIdentity(ana.id, profile(''))).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
      await expect(service.linkIdentity('00000000-0000-4000-8000-000000000000', profile(sub))).rejects.toMatchObject({
        code: 'UNAUTHORIZED',
      })
      await host.knex('auth_users').where({ id: bob.id }).update({ is_active: false })
      await expect(service.linkIdentity(bob.id, profile(newPerson().sub))).rejects.toMatchObject({ code: 'ACCOUNT_INACTIVE' })
    })

    test('C16: of ten accounts that link one identity at once, one has it, and nine are told', async () => {
      const host = await start(two)
      const users = await Promise.all(Array.from({ length: 10 }, () => addUser(host.knex)))
      const { sub } = newPerson()
      const outcomes = await Promise.allSettled(users.map(({ id }) => host.auth.service.linkIdentity(id, profile(sub))))
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const codes = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
      expect(codes).toEqual(Array(9).fill('OAUTH_IDENTITY_TAKEN'))
      expect(await host.knex('auth_identities').where({ provider: 'acme', subject: sub })).toHaveLength(1)
    })

    test('of ten links of one account to ten identities at once, one is made', async () => {
      const host = await start(two)
      const { id } = await addUser(host.knex)
      const outcomes = await Promise.allSettled(
        Array.from({ length: 10 }, () => host.auth.service.linkIdentity(id, profile(newPerson().sub))),
      )
      const codes = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
      expect(codes).toEqual(Array(9).fill('OAUTH_PROVIDER_ALREADY_LINKED'))
      expect(await subjects(host, id)).toHaveLength(1)
    })

    test('ten links of one identity to one account at once all answer the same identity', async () => {
      const host = await start(two)
      const { id } = await addUser(host.knex)
      const { sub } = newPerson()
      const identities = await Promise.all(Array.from({ length: 10 }, () => host.auth.service.linkIdentity(id, profile(sub))))
      expect(new Set(identities.map((identity) => identity.id)).size).toBe(1)
    })

    test("inside the host's transaction it is kept or undone with it", async () => {
      const host = await start(two)
      const user = await addUser(host.knex)
      const store = createKnexStore({ knex: host.knex })
      const rolledBack = host.knex.transaction(async (trx) => {
        await host.auth.service.using(store.using(trx)).linkIdentity(user.id, profile(newPerson().sub))
        throw new Error('the host changed its mind')
      })
      await expect(rolledBack).rejects.toThrow('the host changed its mind')
      expect(await subjects(host, user.id)).toEqual([])
    })
  })

  test('an identity that was unlinked can be linked elsewhere', async () => {
    const host = await start(two)
    const [ana, bob] = [await member(host), await member(host)]
    const profile = newPerson()
    await link(host, ana, { profile })
    await ana.browser.post('/auth/oauth/accounts/unlink').set('Authorization', `Bearer ${ana.token}`).send({ provider: 'acme' })
    expect((await link(host, bob, { profile })).status).toBe(200)
    expect(await subjects(host, bob.userId)).toContain(`acme:${profile.sub}`)
  })

  test('a list shows the linked one, and only its owner can unlink it (R-064)', async () => {
    const host = await start(two)
    const [ana, mallory] = [await member(host), await member(host)]
    host.clock.advance(1)
    await link(host, ana)
    const list = await ana.browser.get('/auth/oauth/accounts').set('Authorization', `Bearer ${ana.token}`)
    expect(list.body.map(({ provider }: { provider: string }) => provider)).toEqual(['corp', 'acme'])
    const unlink = await mallory.browser
      .post('/auth/oauth/accounts/unlink')
      .set('Authorization', `Bearer ${mallory.token}`)
      .send({ provider: 'acme' })
    expect([unlink.status, unlink.body.code]).toEqual([404, 'OAUTH_ACCOUNT_NOT_LINKED'])
    expect(await subjects(host, ana.userId)).toHaveLength(2)
  })
})

test('an account id of any characters goes through the cookie and back', () => {
  const settings = { oauthStateCookieName: 'oauth_state', oauthStateTtlSeconds: 600, cookieDomain: null, cookieSecure: true }
  const ctx = {
    providers: new Map(),
    settings,
    prefix: '/auth',
    keys: deriveKeys('a secret of more than thirty-two bytes'),
    now: () => new Date(0),
    texts: createPhraseBook({ 'fr-CA': {} }),
  } as unknown as AuthContext // all it reads
  const core = { provider: 'acme', random: 'r', expiresAt: 600, secret: 0, locale: null, destination: null }
  const attempts: Attempt[] = [
    { ...core, purpose: 'link', userId: 'a.b~c%20é;"𝄞=', digest: 'd', sessionId: null, startedAt: 1, isFinal: false },
    { ...core, purpose: 'login', browser: 'b-1', locale: 'pt-BR', invitation: 'x'.repeat(128) },
    { ...core, purpose: 'login', browser: null, locale: 'fr-CA', destination: { returnTo: '/a.b~c?q="\\"' }, invitation: 'a.b~c' },
    {
      ...core,
      purpose: 'link',
      userId: '7',
      digest: 'd',
      sessionId: null,
      startedAt: 1,
      isFinal: false,
      destination: { returnTo: '/x' },
    },
    { ...core, purpose: 'reauthenticate', userId: '42', digest: 'd', sessionId: 's-1', startedAt: 2, isFinal: true },
  ]
  let value = ''
  const response = { cookie: (_name: string, text: string) => (value = text), getHeader: () => undefined } // all it calls
  writeAttempts(ctx, response as unknown as Response, attempts)

  const request = { headers: { cookie: `oauth_state=${encodeURIComponent(value)}` } } as Request
  expect(readAttempts(ctx, request)).toEqual(attempts)
})
