import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { type Mounted, signIn } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { addIdentity, addUser, someTime, userById } from './accounts-at-hand'
import { bearer, cookiePair, newPerson, onDatabase } from './redirect-steps'

describe.each(await databases())('on $name', (database) => {
  const { start, opened } = onDatabase(database)

  function unlink(host: Mounted, headers: Record<string, string>, provider: unknown = 'corp') {
    return host.browser().post('/auth/oauth/accounts/unlink').set(headers).send({ provider })
  }

  describe('GET /oauth/accounts', () => {
    test("lists the caller's identities and nobody else's, oldest first, with exactly the fields of the specification", async () => {
      const host = await start({ providers: { corp: {}, acme: {} } })
      const person = newPerson({ name: 'Ana', picture: 'https://cdn.example.test/ana.png' })
      const response = await signIn(host, host.browser(), { profile: person })
      await addIdentity(host.knex, response.body.user_id, { provider: 'acme', subject: 'older' })
      await signIn(host, host.browser(), { profile: newPerson() })

      const list = await host.browser().get('/auth/oauth/accounts').set(bearer(response))

      expect(list.status).toBe(200)
      const now = host.clock.now().toISOString()
      const silent = { email: null, email_verified: null, name: null, picture: null }
      expect(list.body).toEqual([
        { provider: 'acme', subject: 'older', ...silent, created_at: someTime.toISOString(), last_login_at: someTime.toISOString() },
        {
          provider: 'corp',
          subject: person.sub,
          email: person.email,
          email_verified: true,
          name: 'Ana',
          picture: 'https://cdn.example.test/ana.png',
          created_at: now,
          last_login_at: now,
        },
      ])
    })

    test('is an empty array for an account with none', async () => {
      const host = await start()
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      await unlink(host, bearer(response))
      const list = await host.browser().get('/auth/oauth/accounts').set(bearer(response))
      expect([list.status, list.body]).toEqual([200, []])
    })

    test('needs a bearer access token: without one, or with another, 401', async () => {
      const host = await start()
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      const bad: Record<string, string>[] = [{}, { Authorization: 'Bearer x' }, { Authorization: `Bearer ${response.body.refresh_token}` }]
      for (const headers of bad) {
        const list = await host.browser().get('/auth/oauth/accounts').set(headers)
        expect(list.status).toBe(401)
        expect(list.headers['www-authenticate']).toMatch(/^Bearer/)
        expect((await unlink(host, headers)).status).toBe(401)
      }
    })
  })

  describe('POST /oauth/accounts/unlink', () => {
    test('removes the link: 204, and the identity is a stranger afterwards', async () => {
      const host = await start()
      const person = newPerson()
      const response = await signIn(host, host.browser(), { profile: person })

      const unlinked = await unlink(host, bearer(response))

      expect([unlinked.status, unlinked.text]).toEqual([204, ''])
      expect(await host.auth.service.listIdentities(response.body.user_id)).toEqual([])
      expect((await unlink(host, bearer(response))).body.code).toBe('OAUTH_ACCOUNT_NOT_LINKED')
      const again = await signIn(host, host.browser(), { profile: person })
      expect([again.status, again.body.code]).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    })

    test("R-064: another user's link answers 404 exactly like none, and stays", async () => {
      const host = await start({ providers: { corp: {}, acme: {} } })
      const owner = await signIn(host, host.browser(), { key: 'acme', profile: newPerson() })
      const caller = await signIn(host, host.browser(), { key: 'corp', profile: newPerson() })

      const foreign = await unlink(host, bearer(caller), 'acme')
      const missing = await unlink(host, bearer(caller), 'never-registered')

      expect([foreign.status, foreign.body.code]).toEqual([404, 'OAUTH_ACCOUNT_NOT_LINKED'])
      expect({ ...missing.body, details: null }).toEqual({ ...foreign.body, details: null })
      expect([missing.status, missing.body.details]).toEqual([404, { provider: 'never-registered' }])
      expect(await host.auth.service.listIdentities(owner.body.user_id)).toHaveLength(1)
    })

    test('a link of a provider that is no longer registered can still be removed', async () => {
      const host = await start()
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      await addIdentity(host.knex, response.body.user_id, { provider: 'retired' })
      expect((await unlink(host, bearer(response), 'retired')).status).toBe(204)
      expect(await host.auth.service.listIdentities(response.body.user_id)).toMatchObject([{ provider: 'corp' }])
    })

    test.each([undefined, null, '', 7, [], ['corp'], { $ne: '' }, 'p'.repeat(65), 'a\u0000b'])(
      '422 for a provider that is no short text (%j)',
      async (provider) => {
        const host = await start()
        const response = await signIn(host, host.browser(), { profile: newPerson() })
        const refused = await host.browser().post('/auth/oauth/accounts/unlink').set(bearer(response)).send({ provider })
        expect([refused.status, refused.body.code]).toEqual([422, 'VALIDATION_ERROR'])
        expect(await host.auth.service.listIdentities(response.body.user_id)).toHaveLength(1)
      },
    )

    test('unknown body fields are ignored: the caller stays the caller', async () => {
      const host = await start()
      const [victim, caller] = [
        await signIn(host, host.browser(), { profile: newPerson() }),
        await signIn(host, host.browser(), { profile: newPerson() }),
      ]
      const body = { provider: 'corp', user_id: victim.body.user_id, userId: victim.body.user_id, sub: victim.body.user_id }
      expect((await host.browser().post('/auth/oauth/accounts/unlink').set(bearer(caller)).send(body)).status).toBe(204)
      expect(await host.auth.service.listIdentities(victim.body.user_id)).toHaveLength(1)
      expect(await host.auth.service.listIdentities(caller.body.user_id)).toEqual([])
    })

    test('R-065: with oauthKeepLastLoginMethod the last identity behind a generated password stays: 409 LAST_LOGIN_METHOD', async () => {
      const host = await start({ settings: { oauthKeepLastLoginMethod: true } })
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      const userId = response.body.user_id

      const kept = await unlink(host, bearer(response))
      expect([kept.status, kept.body.code, kept.body.details]).toEqual([409, 'LAST_LOGIN_METHOD', { provider: 'corp' }])
      expect((await unlink(host, bearer(response), 'acme')).body.code).toBe('OAUTH_ACCOUNT_NOT_LINKED')

      await addIdentity(host.knex, userId, { provider: 'acme' })
      expect((await unlink(host, bearer(response))).status).toBe(204)
      expect((await unlink(host, bearer(response), 'acme')).body.code).toBe('LAST_LOGIN_METHOD')
    })

    test('R-065: an account whose generated password was hashed, by a version before, keeps its last identity too', async () => {
      const host = await start({ settings: { oauthKeepLastLoginMethod: true } })
      const user = await addUser(host.knex, { passwordSetAt: null })
      const { subject } = await addIdentity(host.knex, user.id)
      const response = await signIn(host, host.browser(), { profile: newPerson({ sub: subject }) })
      expect((await unlink(host, bearer(response))).body.code).toBe('LAST_LOGIN_METHOD')
    })

    test('R-065: where the table has no password_set_at, an unusable password is no login method, and every other one is', async () => {
      const store = createKnexStore({ knex: opened().knex, users: { columns: { passwordSetAt: false } } })
      const host = await start({ settings: { oauthKeepLastLoginMethod: true }, options: { store } })
      const born = await signIn(host, host.browser(), { profile: newPerson() })
      expect((await unlink(host, bearer(born))).body.code).toBe('LAST_LOGIN_METHOD')

      const { subject } = await addIdentity(host.knex, (await addUser(host.knex)).id)
      const other = await signIn(host, host.browser(), { profile: newPerson({ sub: subject }) })
      expect((await unlink(host, bearer(other))).status).toBe(204)
    })

    test('with oauthKeepLastLoginMethod a password somebody knows is a door of its own', async () => {
      const host = await start({ settings: { oauthKeepLastLoginMethod: true } })
      const user = await addUser(host.knex)
      const { subject } = await addIdentity(host.knex, user.id)
      const response = await signIn(host, host.browser(), { profile: newPerson({ sub: subject }) })
      expect((await unlink(host, bearer(response))).status).toBe(204)
    })

    test.each([
      ['an account that was deactivated', { is_active: false }, 403, 'ACCOUNT_INACTIVE'],
      ['an account that is gone', null, 401, 'UNAUTHORIZED'],
    ])('%s changes nothing with a token it still holds', async (_what, change, status, code) => {
      const host = await start()
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      const row = host.knex('auth_users').where({ id: response.body.user_id })
      await (change ? row.update(change) : row.delete())

      const refused = await unlink(host, bearer(response))

      expect([refused.status, refused.body.code]).toEqual([status, code])
      const left = await host.knex('auth_identities').where({ user_id: response.body.user_id })
      expect(left).toHaveLength(change ? 1 : 0)
    })

    test('C17: of the last two methods unlinked at once, one stays', async () => {
      const host = await start({ settings: { oauthKeepLastLoginMethod: true } })
      for (let round = 0; round < 5; round += 1) {
        const response = await signIn(host, host.browser(), { profile: newPerson() })
        await addIdentity(host.knex, response.body.user_id, { provider: 'acme' })
        const statuses = (await Promise.all([unlink(host, bearer(response)), unlink(host, bearer(response), 'acme')])).map(
          ({ status }) => status,
        )
        expect(statuses.sort()).toEqual([204, 409])
        expect(await host.auth.service.listIdentities(response.body.user_id)).toHaveLength(1)
      }
    })

    test('by the access cookie it is refused from another Origin or site with 403 CSRF_VALIDATION_FAILED; a bearer header may', async () => {
      const host = await start({ settings: { tokenDelivery: 'both', trustedOrigins: ['https://spa.example.test'] } })
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      const cookie = { Cookie: String(cookiePair(response, 'access_token')) }
      const foreign: Record<string, string>[] = [
        { Origin: 'https://evil.example' },
        { Origin: 'null' },
        { Origin: 'https://app.example.test.evil.example' },
        { 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'same-site' },
      ]
      for (const headers of foreign) {
        const refused = await unlink(host, { ...cookie, ...headers, ...oldBrowser })
        expect([refused.status, refused.body.code]).toEqual([403, 'CSRF_VALIDATION_FAILED'])
      }
      expect(await host.auth.service.listIdentities(response.body.user_id)).toHaveLength(1)
      const allowed: Record<string, string>[] = [
        { ...cookie, Origin: 'https://app.example.test' },
        { ...cookie, Origin: 'https://spa.example.test' },
        cookie,
        { ...bearer(response), Origin: 'https://evil.example' },
      ]
      for (const headers of allowed) expect((await unlink(host, headers, 'none')).status).toBe(404)
      expect((await unlink(host, { ...bearer(response), Origin: 'https://evil.example' })).status).toBe(204)
    })

    test('in delivery bearer no cookie vouches for anybody', async () => {
      const host = await start()
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      expect((await unlink(host, { Cookie: `access_token=${response.body.access_token}` })).status).toBe(401)
    })

    test('the account itself stays as it is', async () => {
      const host = await start()
      const response = await signIn(host, host.browser(), { profile: newPerson() })
      const before = await userById(host.knex, response.body.user_id)
      await unlink(host, bearer(response))
      expect(await userById(host.knex, response.body.user_id)).toEqual(before)
      expect((await host.browser().get('/auth/me').set(bearer(response))).status).toBe(200)
    })
  })
})
