import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { createKnexStore, OidcClient } from '../../src'
import { loginAs } from '../../src/testing'
import { bearerOf, type LocalHost, otherPassword, password, pending, post, resetLink, signedIn, userOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, onMfa, verify } from '../mfa/people'
import { appSettings, browse, exchange } from '../oauth-code/apps'
import { member } from '../social/link-steps'
import { callBack, cookiePair, newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onMfa(database)

/** A host whose claims come from its own database, through the one connection that the pool has; they fail while `isDown`. */
async function startAsking({ settings = {}, store }: { settings?: object; store?: ReturnType<typeof createKnexStore> } = {}) {
  const asked: { email: string; amr: readonly string[]; isActive: boolean }[] = []
  const state = { isDown: false }
  const host = await start({
    settings: { oauthLinkByVerifiedEmail: true, ...settings },
    providers: {
      corp: {},
      acme: {},
      shop: (provider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })),
    },
    options: {
      ...(store && { store }),
      accessTokenClaims: async ({ id, email, isActive }, { amr }) => {
        const row = await opened().knex('auth_users').where({ id }).first('email')
        asked.push({ email, amr, isActive })
        if (state.isDown) throw new Error('the host has a bad day')
        return { tenant: `of ${row.email}`, methods: amr }
      },
    },
  })
  return Object.assign(host, { asked, state })
}

type Asking = Awaited<ReturnType<typeof startAsking>>

const tenantOf = (token: unknown) => (jwt.decode(String(token)) as jwt.JwtPayload)['tenant']
const outcome = ({ status, body }: { status: number; body: { code?: string; access_token?: string } }) => [
  status,
  body.code ?? tenantOf(body.access_token),
]
const unavailable = [503, 'SERVICE_UNAVAILABLE']

/** Fails once, then works: whatever the request shows was not used up. */
async function twice(host: Asking, send: () => PromiseLike<Parameters<typeof outcome>[0]>, email: string) {
  host.state.isDown = true
  expect(outcome(await send())).toEqual(unavailable)
  host.state.isDown = false
  expect(outcome(await send())).toEqual([200, `of ${email}`])
}

describe('the claims are asked for before the transaction, so a failure uses nothing up', () => {
  test('at a login by password, whose attempt is not counted', async () => {
    const host = await startAsking()
    const { email } = await signedIn(host)
    host.state.isDown = true
    for (let count = 0; count < 7; count += 1) expect(outcome(await post(host, '/login', { email, password }))).toEqual(unavailable)
    host.state.isDown = false
    expect(outcome(await post(host, '/login', { email, password }))).toEqual([200, `of ${email}`])
  })

  test('at a refresh, whose token is still good', async () => {
    const host = await startAsking()
    const { email, refreshToken } = await signedIn(host)
    await twice(host, () => post(host, '/refresh', { refresh_token: refreshToken }), email)
  })

  test('at a stateless refresh', async () => {
    const host = await startAsking({ store: createKnexStore({ knex: opened().knex, sessions: false }) })
    const { email, refreshToken } = await signedIn(host)
    await twice(host, () => post(host, '/refresh', { refresh_token: refreshToken }), email)
  })

  test('at the second step, whose challenge and code are still good; the first step asks nobody', async () => {
    const host = await startAsking()
    const person = await enrolled(host)
    host.asked.length = 0
    const challenge = await challengeOf(host, person)
    expect(host.asked).toEqual([])
    const code = person.app.nextCode()
    await twice(host, () => verify(host, challenge, code), person.email)
    expect(host.asked.map(({ amr }) => amr)).toEqual([
      ['pwd', 'otp'],
      ['pwd', 'otp'],
    ])
  })

  test('at the confirmation of a factor, in the session that goes on', async () => {
    const host = await startAsking()
    const person = await signedIn(host)
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf(person))
    const code = authenticator(body.secret, host.clock).code()
    await twice(host, () => post(host, '/mfa/confirm', { code }, bearerOf(person)), person.email)
  })

  test('at a confirmation of identity, by password and by a ticket of a provider', async () => {
    const host = await startAsking({ settings: { accessTokenTtlSeconds: 7_200 } })
    const person = await signedIn(host)
    await twice(host, () => post(host, '/reauthenticate', { password }, bearerOf(person)), person.email)

    const ana = await member(host)
    const { body, headers } = await host.browser().post('/auth/oauth/corp/reauthenticate').set(bearerOf(ana)).send({})
    const cookie = cookiePair({ headers } as Parameters<typeof cookiePair>[0])
    const profile = { ...ana.profile, auth_time: Math.floor(host.clock.now().getTime() / 1000) }
    const { callbackQuery } = host.provider.authorize(body.authorize_url, { profile })
    const { reauthentication_ticket: ticket } = (await callBack(host, callbackQuery, { cookie })).body
    await twice(host, () => post(host, '/reauthenticate', { ticket }, bearerOf(ana)), String(ana.profile['email']))
  })

  test('at a confirmation of identity that comes back by cookies', async () => {
    const host = await startAsking({ settings: { tokenDelivery: 'cookie', publicUrl: 'https://app.example.test' } })
    const browser = host.browser()
    const profile = newPerson()
    await signIn(host, browser, { profile })
    const begun = await browser.post('/auth/oauth/corp/reauthenticate').set('Origin', 'https://app.example.test').send({})
    const proven = { ...profile, auth_time: Math.floor(host.clock.now().getTime() / 1000) }
    const { callbackQuery } = host.provider.authorize(begun.body.authorize_url, { profile: proven })
    const answer = await browser.get('/auth/oauth/corp/callback').query(callbackQuery)
    expect(answer.status, answer.text).toBe(200)
    expect(tenantOf(/access_token=([^;]+)/.exec(String(answer.headers['set-cookie']))?.[1])).toBe(`of ${profile.email}`)
  })

  test('at a login by a linked identity, and at one that links to a proven address', async () => {
    const host = await startAsking()
    const { profile } = await member(host)
    const again = await signIn(host, host.browser(), { profile })
    expect(outcome(again)).toEqual([200, `of ${profile.email}`])

    const proven = await signedIn(host, { emailVerifiedAt: new Date('2026-01-02T00:00:00Z') })
    const other = newPerson({ email: proven.email })
    host.state.isDown = true
    expect(outcome(await signIn(host, host.browser(), { profile: other }))).toEqual(unavailable)
    expect(await host.knex('auth_identities').where({ user_id: proven.userId })).toEqual([])
    host.state.isDown = false
    expect(outcome(await signIn(host, host.browser(), { profile: other }))).toEqual([200, `of ${proven.email}`])
  })

  test('at a login with a token in hand', async () => {
    const host = await startAsking()
    const profile = newPerson()
    const accessToken = () => host.provider.issueAccessToken({ profile })
    const send = () => host.browser().post('/auth/oauth/shop/token').send({ access_token: accessToken() })
    expect(outcome(await send())).toEqual([200, `of ${profile.email}`])
    await twice(host, send, profile.email)
  })

  test('at the exchange of an app’s code', async () => {
    const host = await startAsking({ settings: appSettings })
    const { code, verifier, profile } = await browse(host)
    expect(host.asked).toEqual([]) // the session begins at the exchange
    await twice(host, () => exchange(host, { code, verifier }), profile.email)
    host.state.isDown = true
    expect(outcome(await exchange(host, { code, verifier }))).toEqual([401, 'OAUTH_CODE_INVALID']) // shown again, it ends the session
  })

  test('at loginAs() of a host’s tests', async () => {
    const host = await startAsking()
    const { email } = await signedIn(host)
    expect(tenantOf((await loginAs(host.auth, { email })).accessToken)).toBe(`of ${email}`)
  })
})

describe('where an account is made, activated or reset, they are asked for after the transaction', () => {
  /** The account as the transaction left it: there and active, without a session. */
  async function expectNoSession(host: LocalHost, email: string): Promise<void> {
    const { id, isActive } = await userOf(host, email)
    expect([isActive, await host.knex('auth_sessions').where({ user_id: id }).whereNull('revoked_at')]).toEqual([true, []])
  }

  test('at a sign-up with autoActivate', async () => {
    const host = await startAsking({ settings: { autoActivate: true } })
    const email = 'new@claims.example.test'
    expect(tenantOf((await post(host, '/signup', { email, password })).body.access_token)).toBe(`of ${email}`)

    host.state.isDown = true
    const other = 'other@claims.example.test'
    expect(outcome(await post(host, '/signup', { email: other, password }))).toEqual(unavailable)
    await expectNoSession(host, other)
    host.state.isDown = false
    expect(outcome(await post(host, '/login', { email: other, password }))).toEqual([200, `of ${other}`])
  })

  test('at an activation, whose event is told all the same', async () => {
    const host = await startAsking()
    const told: string[] = []
    for (const name of ['activation', 'login'] as const) host.auth.events.on(name, () => told.push(name))
    const first = await pending(host)
    expect(outcome(await post(host, '/activate', { token: first.link, password }))).toEqual([200, `of ${first.email}`])
    expect(host.asked).toEqual([{ email: first.email, amr: ['email'], isActive: true }])

    const second = await pending(host)
    host.state.isDown = true
    expect(outcome(await post(host, '/activate', { token: second.link, password }))).toEqual(unavailable)
    await expectNoSession(host, second.email)
    expect(told).toEqual(['activation', 'login', 'activation'])
  })

  test('at a reset', async () => {
    const host = await startAsking()
    const { email } = await signedIn(host)
    const reset = async (newPassword: string) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: newPassword })
    expect(outcome(await reset(otherPassword))).toEqual([200, `of ${email}`])

    host.state.isDown = true
    expect(outcome(await reset(password))).toEqual(unavailable)
    await expectNoSession(host, email)
    host.state.isDown = false
    expect(outcome(await post(host, '/login', { email, password }))).toEqual([200, `of ${email}`])
  })

  test('a reset of an account with a factor is a challenge, and asks nobody', async () => {
    const host = await startAsking()
    const person = await enrolled(host)
    const token = await resetLink(host, person.email)
    host.asked.length = 0
    const answer = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })
    expect([answer.status, answer.body.mfa_required, host.asked]).toEqual([200, true, []])
  })

  test('at the first login by a provider, and where its word takes an account over', async () => {
    const host = await startAsking()
    const profile = newPerson()
    host.state.isDown = true
    expect(outcome(await signIn(host, host.browser(), { profile }))).toEqual(unavailable)
    await expectNoSession(host, profile.email)
    host.state.isDown = false
    expect(outcome(await signIn(host, host.browser(), { profile }))).toEqual([200, `of ${profile.email}`])

    const squatted = await signedIn(host, { emailVerifiedAt: null })
    const taken = await signIn(host, host.browser(), { profile: newPerson({ email: squatted.email }) })
    expect([...outcome(taken), taken.body.password_required]).toEqual([200, `of ${squatted.email}`, true])
  })

  test('an account that is deactivated while the host is asked gets no session', async () => {
    const host = await startAsking()
    const { email, link: token } = await pending(host)
    const { id } = await userOf(host, email)
    const original = host.asked.push.bind(host.asked)
    let closing: Promise<void> | undefined
    host.asked.push = (...entries) => {
      closing ??= host.auth.service.deactivate(id)
      return original(...entries)
    }
    const answer = await post(host, '/activate', { token, password })
    await closing
    expect(outcome(answer)).toEqual([401, 'UNAUTHORIZED'])
    expect(await host.knex('auth_sessions').where({ user_id: id })).toEqual([])
  })
})

describe('what it costs', () => {
  const statementsOf = async (host: LocalHost, send: () => PromiseLike<{ status: number }>) => {
    const statements = recordQueries(host.knex)
    expect((await send()).status).toBe(200)
    return statements.stop()
  }

  test('a refresh reads the user in one statement more; without claims nothing changes', async () => {
    const bare = await start()
    const asking = await start({ options: { accessTokenClaims: () => ({ tenant: 'one' }) } })
    const refreshed = async (host: LocalHost) => {
      const { refreshToken } = await signedIn(host)
      return statementsOf(host, () => post(host, '/refresh', { refresh_token: refreshToken }))
    }
    const [without, withClaims] = [await refreshed(bare), await refreshed(asking)]
    expect([without.length, withClaims.length]).toEqual([1, 2])
    expect([withClaims[0]?.startsWith('select'), withClaims[1]]).toEqual([true, without[0]])
  })

  test('a login costs the same statements', async () => {
    const bare = await start()
    const asking = await start({ options: { accessTokenClaims: () => ({ tenant: 'one' }) } })
    const loggedIn = async (host: LocalHost) => {
      const { email } = await signedIn(host)
      return statementsOf(host, () => post(host, '/login', { email, password }))
    }
    expect(await loggedIn(asking)).toEqual(await loggedIn(bare))
  })

  test('a used refresh token ends its session without asking the host', async () => {
    const host = await startAsking()
    const { email, refreshToken, userId } = await signedIn(host)
    expect(outcome(await post(host, '/refresh', { refresh_token: refreshToken }))).toEqual([200, `of ${email}`])
    host.state.isDown = true
    host.asked.length = 0
    expect(outcome(await post(host, '/refresh', { refresh_token: refreshToken }))).toEqual([401, 'INVALID_TOKEN'])
    expect(host.asked).toEqual([])
    expect(await host.knex('auth_sessions').where({ user_id: userId }).whereNull('revoked_at')).toEqual([])
  })

  test('within the grace window a used token gets its successor and the claims of now', async () => {
    const host = await startAsking({ settings: { refreshReuseGraceSeconds: 10 } })
    const { email, refreshToken } = await signedIn(host)
    await post(host, '/refresh', { refresh_token: refreshToken })
    await twice(host, () => post(host, '/refresh', { refresh_token: refreshToken }), email)
  })

  test('a login into a server-side session asks nobody', async () => {
    const host = await startAsking()
    const { email } = await signedIn(host)
    host.asked.length = 0
    const answer = await host.browser().post('/auth/session/login').set('Origin', 'https://app.example.test').send({ email, password })
    expect([answer.status, host.asked]).toEqual([200, []])
  })
})
