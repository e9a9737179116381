import { describe, expect, test } from 'vitest'
import { type AuthStore, createAuthTables, createKnexStore } from '../../src'
import { signIn, startLogin } from '../support/app'
import { databases } from '../support/databases'
import { addIdentity, addUser, rowCounts, userById } from './accounts-at-hand'
import { beginLink, finishLink, link, type Member, member, requestLink } from './link-steps'
import { newPerson, onDatabase } from './redirect-steps'

const two = { providers: { corp: {}, acme: {} } }
const bearerOf = ({ token }: Pick<Member, 'token'>) => ({ Authorization: `Bearer ${token}` })

describe.each(await databases())('on $name', (database) => {
  const { start, opened } = onDatabase(database)

  describe('a deactivated account', () => {
    test('R-061: no route revives it, with whatever was got before', async () => {
      const host = await start({ ...two, settings: { oauthLinkByVerifiedEmail: true } })
      host.app.get('/guarded', host.auth.guards.requireUser(), (_req, res) => void res.json({}))
      const ana = await member(host)
      const begun = await beginLink(host, ana)
      const login = await startLogin(host, ana.browser, { profile: ana.profile })
      await host.knex('auth_users').where({ id: ana.userId }).update({ is_active: false })
      const before = { row: await userById(host.knex, ana.userId), counts: await rowCounts(host.knex) }
      const get = (path: string) => ana.browser.get(path).set(bearerOf(ana))

      const outcomes = {
        'social login': await signIn(host, host.browser(), { profile: ana.profile }),
        'a login begun before': await finishLink(host, ana.browser, login.callbackQuery, 'corp'),
        'the verified address at another provider': await signIn(host, host.browser(), {
          key: 'acme',
          profile: newPerson({ email: ana.email }),
        }),
        refresh: await ana.browser.post('/auth/refresh').send({ refresh_token: ana.refreshToken }),
        'a link begun before': await finishLink(host, ana.browser, begun.query),
        'a new link': await requestLink(host, ana),
        me: await get('/auth/me'),
        "the host's guarded route": await get('/guarded'),
      }

      expect(Object.fromEntries(Object.entries(outcomes).map(([what, { status, body }]) => [what, [status, body.code]]))).toEqual({
        'social login': [401, 'OAUTH_ACCOUNT_INACTIVE'],
        'a login begun before': [401, 'OAUTH_ACCOUNT_INACTIVE'],
        'the verified address at another provider': [401, 'OAUTH_ACCOUNT_INACTIVE'],
        refresh: [403, 'ACCOUNT_INACTIVE'],
        'a link begun before': [401, 'OAUTH_STATE_MISMATCH'],
        'a new link': [403, 'ACCOUNT_INACTIVE'],
        me: [403, 'ACCOUNT_INACTIVE'],
        "the host's guarded route": [403, 'ACCOUNT_INACTIVE'],
      })
      expect({ row: await userById(host.knex, ana.userId), counts: await rowCounts(host.knex) }).toEqual(before)
    })

    test('R-062: its refresh token starts no session; its access token ends within its minutes', async () => {
      const host = await start({ ...two, settings: { accessTokenTtlSeconds: 900 } })
      const ana = await member(host)
      await host.knex('auth_users').where({ id: ana.userId }).update({ is_active: false })
      const list = () => ana.browser.get('/auth/oauth/accounts').set(bearerOf(ana))
      expect((await ana.browser.post('/auth/refresh').send({ refresh_token: ana.refreshToken })).status).toBe(403)
      // requireAuth asks no database: the documented price, and its end.
      expect((await list()).status).toBe(200)
      host.clock.advance(900)
      expect((await list()).body.code).toBe('TOKEN_EXPIRED')
    })
  })

  test("R-064: every route of linked identities is the caller's own; another's is like none", async () => {
    const host = await start(two)
    const [ana, mallory] = [await member(host), await member(host)]
    await link(host, ana)
    const unlink = (body: object) => mallory.browser.post('/auth/oauth/accounts/unlink').set(bearerOf(mallory)).send(body)

    const foreign = await unlink({ provider: 'acme', user_id: ana.userId, userId: ana.userId, id: ana.userId })
    const missing = await unlink({ provider: 'nowhere' })

    expect([foreign.status, missing.status]).toEqual([404, 404])
    expect({ ...foreign.body, details: null }).toEqual({ ...missing.body, details: null })
    const list = await mallory.browser.get('/auth/oauth/accounts').query({ user_id: ana.userId }).set(bearerOf(mallory))
    expect(list.body.map(({ subject }: { subject: string }) => subject)).toEqual([mallory.profile.sub])
    expect(await host.auth.service.listIdentities(ana.userId)).toHaveLength(2)
  })

  const account = { id: 'x', user_id: 'x', is_admin: true, is_active: false, email_verified_at: 0, hashed_password: 'x', subject: 'x' }

  test.each([
    ['columns', JSON.stringify(account).slice(1, -1)],
    ['__proto__', `"__proto__":${JSON.stringify(account)}`],
    ['constructor', `"constructor":{"prototype":${JSON.stringify(account)}}`],
  ])('R-066: fields of the account in a body are never written (ignored, as the contract reads it): %s', async (_what, extra) => {
    const host = await start(two)
    const ana = await member(host)
    const before = await userById(host.knex, ana.userId)
    const post = (path: string, body: object) => {
      const members = [extra, JSON.stringify(body).slice(1, -1)].filter((text) => text !== '')
      return ana.browser
        .post(path)
        .set(bearerOf(ana))
        .type('json')
        .send(`{${members.join(',')}}`)
    }

    const begun = await post('/auth/oauth/acme/link', {})
    expect([begun.status, Object.keys(begun.body)]).toEqual([200, ['authorize_url']])
    const { callbackQuery } = host.provider.authorize(begun.body.authorize_url, { profile: newPerson({ sub: 'linked-one' }) })
    const { body } = await finishLink(host, ana.browser, callbackQuery)
    expect((await post('/auth/oauth/link/redeem', { ticket: body.link_ticket })).status).toBe(200)
    expect((await host.auth.service.listIdentities(ana.userId)).map(({ subject }) => subject).sort()).toEqual(
      ['linked-one', ana.profile.sub].sort(),
    )
    expect((await post('/auth/oauth/accounts/unlink', { provider: 'acme' })).status).toBe(204)
    expect((await post('/auth/refresh', { refresh_token: ana.refreshToken })).status).toBe(200)
    expect((await post('/auth/logout', { refresh_token: ana.refreshToken })).status).toBe(204)

    expect(await userById(host.knex, ana.userId)).toEqual(before)
    expect(({} as Record<string, unknown>)['is_admin']).toBeUndefined()
  })

  test('R-067: what an adapter returns beside the fields of the contract reaches no answer', async () => {
    const leak = { hashed_password: 'LEAK-1', totp_secret: 'LEAK-2', password_hint: 'LEAK-3', toJSON: () => ({ leak: 'LEAK-4' }) }
    const talkative = (real: AuthStore): AuthStore => {
      const { users, identities } = real
      if (!identities) throw new Error('no identities')
      const more = <Row extends object>(row: Row | null) => row && { ...row, hashedPassword: 'LEAK-5', totpSecret: 'LEAK-6', ...leak }
      const spoken = <Row extends object>(row: Row) => ({ ...row, ...leak })
      return {
        ...real,
        users: { ...users, find: async (id) => more(await users.find(id)), lock: async (id) => more(await users.lock(id)) },
        identities: {
          ...identities,
          listForUser: async (userId) => (await identities.listForUser(userId)).map(spoken),
          insert: async (identity) => spoken(await identities.insert(identity)),
          recordLogin: async (given, at) => more(await identities.recordLogin(given, at)),
          findWithUser: async (provider, subject) => {
            const found = await identities.findWithUser(provider, subject)
            return found && { identity: spoken(found.identity), user: more(found.user) ?? found.user }
          },
        },
        transaction: (work) => real.transaction((inside) => work(talkative(inside))),
      }
    }
    const { knex } = opened()
    await createAuthTables(knex)
    const host = await start({ ...two, options: { store: talkative(createKnexStore({ knex })) } })
    const ana = await member(host)
    const linked = await link(host, ana)
    const answers = [
      linked,
      await link(host, ana, { profile: newPerson() }),
      await signIn(host, host.browser(), { profile: ana.profile }),
      await ana.browser.get('/auth/oauth/accounts').set(bearerOf(ana)),
      await ana.browser.get('/auth/me').set(bearerOf(ana)),
      await ana.browser.post('/auth/refresh').send({ refresh_token: ana.refreshToken }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 409, 200, 200, 200, 200])
    for (const { text, headers } of answers) expect(text + JSON.stringify(headers)).not.toContain('LEAK')
    expect(Object.keys(linked.body)).toEqual([
      'provider',
      'subject',
      'email',
      'email_verified',
      'name',
      'picture',
      'created_at',
      'last_login_at',
    ])
  })

  test("R-063: nor does a service call move another's identity", async () => {
    const host = await start(two)
    const [ana, bob] = [await addUser(host.knex), await addUser(host.knex)]
    const identity = await addIdentity(host.knex, ana.id)
    const profile = { provider: 'corp', subject: identity.subject, email: null, emailVerified: null, name: null, picture: null, raw: {} }
    await expect(host.auth.service.linkIdentity(bob.id, profile)).rejects.toMatchObject({ code: 'OAUTH_IDENTITY_TAKEN' })
    expect(await host.auth.service.listIdentities(ana.id)).toEqual([identity])
  })
})
