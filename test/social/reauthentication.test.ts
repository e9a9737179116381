import { describe, expect, test } from 'vitest'
import { GitHubClient } from '../../src'
import { type Mounted, type MountOptions, setCookieOf, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { link, type Member, member } from './link-steps'
import { begin, callBack, cookiePair, type HttpResponse, newPerson } from './redirect-steps'

const start = appPerTest()
const origin = 'https://app.example.test'
const two = (settings: MountOptions['settings'] = {}) => ({
  providers: { corp: {}, acme: {} },
  settings: { accessTokenTtlSeconds: 7_200, ...settings },
})

const claimsOf = (token: unknown) => JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())
const secondsOf = (host: Mounted) => Math.floor(host.clock.now().getTime() / 1000)
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

function ask(host: Mounted, headers: Record<string, string>, key = 'corp'): Promise<HttpResponse> {
  return Promise.resolve(host.browser().post(`/auth/oauth/${key}/reauthenticate`).set(headers).send({}))
}

/** Somebody whose session is no longer fresh, and who has begun to confirm at the provider. */
async function begun(host: Mounted, who: Member, profile: Record<string, unknown> = who.profile, signedInAgo: number | null = 0) {
  const response = await ask(host, bearer(who.token))
  expect(response.status, response.text).toBe(200)
  const authTime = signedInAgo === null ? {} : { auth_time: secondsOf(host) - signedInAgo }
  const { callbackQuery, params } = host.provider.authorize(response.body.authorize_url, { profile: { ...profile, ...authTime } })
  return { response, params, query: callbackQuery, state: String(cookiePair(response)) }
}

async function ticketOf(host: Mounted, who: Member): Promise<string> {
  const { query, state } = await begun(host, who)
  const answer = await callBack(host, query, { cookie: state })
  expect([answer.status, Object.keys(answer.body)], answer.text).toEqual([200, ['reauthentication_ticket']])
  return answer.body.reauthentication_ticket
}

const redeem = (host: Mounted, token: string, ticket: unknown) =>
  host.browser().post('/auth/reauthenticate').set(bearer(token)).send({ ticket })

async function stale(host: Mounted) {
  const ana = await member(host)
  host.clock.advance(1_000)
  return ana
}

describe('POST /oauth/:provider/reauthenticate', () => {
  test('asks the provider for a new sign-in, and REAUTHENTICATION_REQUIRED says that it can', async () => {
    const host = await start(two())
    const ana = await stale(host)
    const refused = await host.browser().post('/auth/oauth/acme/link').set(bearer(ana.token)).send({})
    expect([refused.status, refused.body.details]).toEqual([403, { methods: ['provider:corp'] }])

    const { response, params } = await begun(host, ana)

    expect(Object.keys(response.body)).toEqual(['authorize_url'])
    expect([params.get('prompt'), params.get('max_age')]).toEqual(['login', '0'])
    const login = await host.browser().get('/auth/oauth/corp/login')
    expect(new URL(String(login.headers['location'])).searchParams.get('prompt')).toBeNull()
  })

  test('is refused without a session, for an unknown provider, and for one that is not linked', async () => {
    const host = await start(two())
    const ana = await stale(host)
    expect((await ask(host, {})).status).toBe(401)
    expect((await ask(host, bearer(ana.token), 'nobody')).body.code).toBe('OAUTH_PROVIDER_NOT_CONFIGURED')
    expect((await ask(host, bearer(ana.token), 'acme')).body.code).toBe('OAUTH_ACCOUNT_NOT_LINKED')
    await host.browser().post('/auth/logout').send({ refresh_token: ana.refreshToken })
    expect((await ask(host, bearer(ana.token))).body.code).toBe('INVALID_TOKEN')
  })

  test('X13: never in place of a second factor, and not by an identity of less than 24 hours', async () => {
    const host = await start(two({ mfaEnabled: true, mfaIssuer: 'Test' }))
    const ana = await stale(host)
    await link(host, { ...ana, token: (await signIn(host, host.browser(), { profile: ana.profile })).body.access_token })
    const young = await ask(host, bearer(ana.token), 'acme')
    expect([young.status, young.body.code]).toEqual([403, 'MFA_FACTOR_TOO_NEW'])
    expect(Date.parse(young.body.details.usable_at)).toBe(host.clock.now().getTime() + 86_400_000)

    const { token, ticket } = { token: ana.token, ticket: await ticketOf(host, ana) }
    const { knex } = host
    await knex('auth_users')
      .where({ id: ana.userId })
      .update({ totp_enabled_at: host.clock.now().getTime() - 90_000_000, created_at: 0 })
    expect((await ask(host, bearer(token))).body.code).toBe('MFA_REQUIRED')
    expect((await redeem(host, token, ticket)).body.code).toBe('MFA_REQUIRED')
  })

  test('X13: a provider that proves no new sign-in is no method, unless the host says that it asks anew', async () => {
    for (const reauthenticates of [false, true]) {
      const host = await start({
        ...two(),
        providers: {
          corp: {},
          github: (provider) => new GitHubClient({ ...provider.githubOptions(), reauthenticates }),
        },
      })
      const ana = await stale(host)
      await host.auth.service.linkIdentity(ana.userId, {
        provider: 'github',
        subject: '583231',
        email: null,
        emailVerified: null,
        name: null,
        picture: null,
        raw: {},
      })
      host.clock.advance(86_400)
      const { access_token: token } = (await signIn(host, host.browser(), { profile: ana.profile })).body
      host.clock.advance(1_000)
      const answer = await ask(host, bearer(token), 'github')
      const methods = (await host.browser().post('/auth/oauth/acme/link').set(bearer(token)).send({})).body.details.methods
      expect(methods).toEqual(reauthenticates ? ['provider:corp', 'provider:github'] : ['provider:corp'])
      expect(reauthenticates ? answer.status : answer.body.code).toBe(reauthenticates ? 200 : 'REAUTHENTICATION_REQUIRED')
    }
  })
})

describe('the callback', () => {
  test('X13: an id_token of an older sign-in, or without auth_time, confirms nobody', async () => {
    const host = await start(two())
    const ana = await stale(host)
    for (const ago of [61, 3_600, null]) {
      const { query, state } = await begun(host, ana, ana.profile, ago)
      const answer = await callBack(host, query, { cookie: state })
      expect([answer.status, answer.body.code, answer.body.details]).toEqual([
        403,
        'REAUTHENTICATION_REQUIRED',
        { methods: ['provider:corp'] },
      ])
    }
    // The provider's clock may be a minute behind ours.
    for (const ago of [60, 0]) {
      const { query, state } = await begun(host, ana, ana.profile, ago)
      expect((await callBack(host, query, { cookie: state })).status).toBe(200)
    }
  })

  test('another identity confirms nobody, also where it is linked to another account', async () => {
    const host = await start(two())
    const [ana, bob] = [await member(host), await member(host)]
    host.clock.advance(1_000)
    for (const profile of [newPerson(), bob.profile]) {
      const { query, state } = await begun(host, ana, profile)
      expect((await callBack(host, query, { cookie: state })).body.code).toBe('OAUTH_STATE_MISMATCH')
    }
  })

  test('freshens the session that began where it is signed in by cookie, gives it new cookies, and moves no end of it', async () => {
    const host = await start(two({ tokenDelivery: 'cookie' }))
    const profile = newPerson()
    const { query, cookie } = await begin(host, { profile })
    const login = await callBack(host, query, { cookie })
    const session = `${cookiePair(login, 'access_token')}; ${cookiePair(login, 'refresh_token')}`
    host.clock.advance(1_000)
    const before = await host.knex('auth_sessions').first()
    const started = await ask(host, { Cookie: session, Origin: origin })
    const { callbackQuery } = host.provider.authorize(started.body.authorize_url, { profile: { ...profile, auth_time: secondsOf(host) } })

    const answer = await callBack(host, callbackQuery, { cookie: `${cookiePair(started)}; ${session}` })

    expect(answer.status, answer.text).toBe(200)
    const token = setCookieOf(answer, 'access_token')?.value
    const after = await host.knex('auth_sessions').first()
    expect([claimsOf(token).auth_time, claimsOf(token).sid, claimsOf(token).amr]).toEqual([secondsOf(host), before.id, ['ext']])
    expect([after.id, after.expires_at, after.ends_at]).toEqual([before.id, before.expires_at, before.ends_at])
    expect(after.token_hash).not.toBe(before.token_hash)
    const old = await host.browser().post('/auth/refresh').set({ Cookie: session, Origin: origin })
    expect(old.status, 'the old refresh token is dead').toBe(401)
    const fresh = await host
      .browser()
      .post('/auth/oauth/acme/link')
      .set({ Cookie: `access_token=${token}`, Origin: origin })
    expect(fresh.body.code, 'the reuse ended the session').toBe('INVALID_TOKEN')
  })

  test('with a success redirect the browser lands there, fresh, or with a ticket in the fragment', async () => {
    const host = await start(two({ tokenDelivery: 'cookie', oauthSuccessRedirect: '/account' }))
    const profile = newPerson()
    const { query, cookie } = await begin(host, { profile })
    const login = await callBack(host, query, { cookie })
    const session = `${cookiePair(login, 'access_token')}; ${cookiePair(login, 'refresh_token')}`
    const finish = async (more: string) => {
      const started = await ask(host, { Cookie: session, Origin: origin })
      const { callbackQuery } = host.provider.authorize(started.body.authorize_url, { profile: { ...profile, auth_time: secondsOf(host) } })
      return callBack(host, callbackQuery, { cookie: `${cookiePair(started)}; ${more}` })
    }
    expect((await finish('')).headers['location']).toMatch(/^\/account#reauthentication_ticket=[\w.-]+$/)
    const landed = await finish(session)
    expect([landed.headers['location'], setCookieOf(landed, 'access_token') !== null]).toEqual(['/account', true])
  })
})

describe('a ticket', () => {
  test('freshens the session that began, once; the new access token is fresh and brings no refresh token', async () => {
    const host = await start(two())
    const ana = await stale(host)
    const ticket = await ticketOf(host, ana)

    const answer = await redeem(host, ana.token, ticket)

    expect([answer.status, answer.body.refresh_token]).toEqual([200, null])
    expect(claimsOf(answer.body.access_token).auth_time).toBe(secondsOf(host))
    const begin = await host.browser().post('/auth/oauth/acme/link').set(bearer(answer.body.access_token)).send({})
    expect(begin.status).toBe(200)
    expect((await redeem(host, ana.token, ticket)).body.code).toBe('OAUTH_STATE_MISMATCH')
    expect((await host.browser().post('/auth/refresh').send({ refresh_token: ana.refreshToken })).status).toBe(200)
  })

  test('of somebody else, or of another session of the account, is 401 and used up; a link ticket is none', async () => {
    const host = await start(two())
    const ana = await stale(host)
    const elsewhere = (await signIn(host, host.browser(), { profile: ana.profile })).body.access_token as string
    for (const token of [(await member(host)).token, elsewhere]) {
      const ticket = await ticketOf(host, ana)
      expect((await redeem(host, token, ticket)).body.code).toBe('OAUTH_STATE_MISMATCH')
      expect((await redeem(host, ana.token, ticket)).body.code).toBe('OAUTH_STATE_MISMATCH')
    }
    const ticket = await ticketOf(host, ana)
    const asLink = await host.browser().post('/auth/oauth/link/redeem').set(bearer(ana.token)).send({ ticket })
    expect(asLink.body.code).toBe('OAUTH_STATE_MISMATCH')
    host.clock.advance(300)
    expect((await redeem(host, ana.token, ticket)).body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('does nothing when the identity was unlinked in between', async () => {
    const host = await start(two())
    const ana = await stale(host)
    const ticket = await ticketOf(host, ana)
    await host.knex('auth_identities').where({ user_id: ana.userId }).delete()
    expect((await redeem(host, ana.token, ticket)).body.code).toBe('OAUTH_STATE_MISMATCH')
    const row = await host
      .knex('auth_sessions')
      .where({ id: claimsOf(ana.token).sid })
      .first()
    expect(new Date(row.authenticated_at).getTime()).toBe(host.clock.now().getTime() - 1_000_000)
  })

  test('service.reauthenticate takes it too', async () => {
    const host = await start(two())
    const ana = await stale(host)
    const ticket = await ticketOf(host, ana)
    const kept = await host.auth.service.reauthenticate({ userId: ana.userId, sessionId: claimsOf(ana.token).sid, ticket })
    expect(kept).toMatchObject({ kind: 'session', userId: ana.userId, amr: ['ext'] })
  })
})
