import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { type AuthRouterOptions, type AuthStore, createKnexStore, OidcClient, type PasswordHasher, type SessionStore } from '../../src'
import { loginAs } from '../../src/testing'
import { bearerOf, type LocalHost, otherPassword, password, pending, post, resetLink, signedIn, userOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, onMfa, verify } from '../mfa/people'
import { appSettings, browse, exchange } from '../oauth-code/apps'
import { logIn as logInByPasskey, loginOptions, passkeyOwner, passkeySettings } from '../passkeys/people'
import { member } from '../social/link-steps'
import { callBack, cookiePair, newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onMfa(database)

/**
 * A host whose claims come from its own database, through the one connection that the pool has; they fail while `isDown`. `meanwhile` runs
 * once, while the host is asked.
 */
async function startAsking({ settings = {}, ...options }: { settings?: object } & Partial<Omit<AuthRouterOptions, 'settings'>> = {}) {
  const asked: { email: string; amr: readonly string[]; isActive: boolean }[] = []
  const state = { isDown: false, meanwhile: null as (() => Promise<unknown>) | null }
  const host = await start({
    settings: { oauthLinkByVerifiedEmail: true, ...settings },
    providers: {
      corp: {},
      acme: {},
      shop: (provider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })),
    },
    options: {
      ...options,
      accessTokenClaims: async ({ id, email, isActive }, { amr }) => {
        const row = await opened().knex('auth_users').where({ id }).first('email')
        asked.push({ email, amr, isActive })
        const { meanwhile } = state
        state.meanwhile = null
        await meanwhile?.()
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

/** The store with another verb of its sessions. */
function withSessions(changes: (real: SessionStore) => Partial<SessionStore>): AuthStore {
  const real = createKnexStore({ knex: opened().knex })
  const changed = (store: AuthStore): AuthStore => ({
    ...store,
    ...(store.sessions && { sessions: { ...store.sessions, ...changes(store.sessions) } }),
    transaction: (work, options) => store.transaction((inside) => work(changed(inside)), options),
  })
  return changed(real)
}

/** Fails once, then works: whatever the request shows was not used up, or can be used many times. */
async function twice(host: Asking, send: () => PromiseLike<Parameters<typeof outcome>[0]>, email: string) {
  host.state.isDown = true
  expect(outcome(await send())).toEqual(unavailable)
  host.state.isDown = false
  expect(outcome(await send())).toEqual([200, `of ${email}`])
}

describe('the host’s claims fail, and then work', () => {
  test('at a login by password, whose attempt is not counted', async () => {
    const host = await startAsking()
    const { email } = await signedIn(host)
    host.state.isDown = true
    for (let count = 0; count < 7; count += 1) expect(outcome(await post(host, '/login', { email, password }))).toEqual(unavailable)
    host.state.isDown = false
    expect(outcome(await post(host, '/login', { email, password }))).toEqual([200, `of ${email}`])
  })

  test('at a login by password, which leaves no session that lives', async () => {
    const host = await startAsking()
    const { email, userId, refreshToken } = await signedIn(host)
    const living = () => host.knex('auth_sessions').where({ user_id: userId }).whereNull('revoked_at')
    const [first] = await living()
    host.state.isDown = true
    expect(outcome(await post(host, '/login', { email, password }))).toEqual(unavailable)
    expect((await living()).map(({ id }) => id)).toEqual([first.id]) // the other sessions of the account stay
    host.state.isDown = false
    expect(outcome(await post(host, '/refresh', { refresh_token: refreshToken }))).toEqual([200, `of ${email}`])
  })

  test('at a login beyond the limit of sessions, which tells of the session that it ended', async () => {
    const host = await startAsking({ settings: { maxSessionsPerUser: 1 } })
    const { email, userId } = await signedIn(host)
    const told: unknown[] = []
    host.auth.events.on('session.revoked', (event) => told.push(event))
    host.state.isDown = true
    expect(outcome(await post(host, '/login', { email, password }))).toEqual(unavailable)
    expect(told).toEqual([expect.objectContaining({ userId, count: 1, reason: 'limit' })])
  })

  test('at a login whose session cannot be revoked either: the same answer, and one line in the log', async () => {
    const log = logTap()
    const store = withSessions(() => ({ revoke: () => Promise.reject(new Error('the connection is gone')) }))
    const host = await startAsking({ store, logger: log })
    const { email } = await signedIn(host)
    host.state.isDown = true
    expect(outcome(await post(host, '/login', { email, password }))).toEqual(unavailable)
    expect(log.text()).toContain('could not be revoked')
  })

  test('at a login that stores a better hash: the database fails after the commit, and the password is not checked again', async () => {
    const log = logTap()
    const checked: string[] = []
    const fast = fastHasher()
    const passwordHasher: PasswordHasher = {
      hash: async (text) => `better$${await fast.hash(text)}`,
      needsRehash: (stored) => !stored.startsWith('better$'),
      verify: (stored, text) => {
        checked.push(stored)
        return fast.verify(stored.replace('better$', ''), text)
      },
    }
    const state = { isGone: false }
    const store = withSessions(({ find }) => ({
      find: (wanted) => (state.isGone ? Promise.reject(new Error('the connection is gone')) : find(wanted)),
    }))
    const host = await startAsking({ store, logger: log, passwordHasher })
    const { email, userId } = await signedIn(host)
    await host
      .knex('auth_users')
      .where({ id: userId })
      .update({ hashed_password: await fast.hash(password) })
    const before = await host.knex('auth_sessions').where({ user_id: userId })
    checked.length = 0
    state.isGone = true
    expect((await post(host, '/login', { email, password })).status).toBe(500)
    expect(await host.knex('auth_sessions').where({ user_id: userId })).toHaveLength(before.length + 1)
    expect([checked.length, log.text()]).toEqual([1, expect.not.stringContaining('a new password hash could not be stored')])
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

  test('at the second step, whose challenge and code are used then; the first step asks nobody', async () => {
    const host = await startAsking()
    const person = await enrolled(host)
    host.asked.length = 0
    const challenge = await challengeOf(host, person)
    expect(host.asked).toEqual([])
    host.state.isDown = true
    expect(outcome(await verify(host, challenge, person.app.nextCode()))).toEqual(unavailable)
    host.state.isDown = false
    expect(outcome(await verify(host, challenge, person.app.nextCode()))).toEqual([401, 'MFA_TOKEN_INVALID'])
    const again = await challengeOf(host, person)
    expect(outcome(await verify(host, again, person.app.nextCode()))).toEqual([200, `of ${person.email}`])
    expect(host.asked.map(({ amr }) => amr)).toEqual([
      ['pwd', 'otp'],
      ['pwd', 'otp'],
    ])
  })

  test('at the second step by a recovery code, whose use the owner is told of all the same', async () => {
    const host = await startAsking()
    const person = await enrolled(host)
    const challenge = await challengeOf(host, person)
    const told: string[] = []
    for (const name of ['recovery_code.used', 'login'] as const) host.auth.events.on(name, () => told.push(name))
    host.state.isDown = true
    expect(outcome(await verify(host, challenge, person.recoveryCodes[0]))).toEqual(unavailable)
    expect(told).toEqual(['recovery_code.used'])
  })

  test('at a login with a passkey, whose response is used then', async () => {
    const host = await startAsking({ settings: passkeySettings })
    const { email, authenticator } = await passkeyOwner(host)
    const options = await loginOptions(host)
    const response = { credential: authenticator.get(options), challenge_token: options.challenge_token }
    host.state.isDown = true
    expect(outcome(await post(host, '/passkeys/login', response))).toEqual(unavailable)
    host.state.isDown = false
    expect(outcome(await post(host, '/passkeys/login', response))).toEqual([401, 'PASSKEY_REJECTED'])
    expect(outcome(await logInByPasskey(host, authenticator))).toEqual([200, `of ${email}`])
  })

  test('at the confirmation of a factor, in the session that goes on', async () => {
    const host = await startAsking()
    const person = await signedIn(host)
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf(person))
    const code = authenticator(body.secret, host.clock).code()
    await twice(host, () => post(host, '/mfa/confirm', { code }, bearerOf(person)), person.email)
  })

  test('at the confirmation of a factor by the service, which is active then', async () => {
    const host = await startAsking()
    const { userId } = await signedIn(host)
    const { secret } = await host.auth.service.enrollTotp(userId)
    const app = authenticator(secret, host.clock)
    host.state.isDown = true
    await expect(host.auth.service.confirmTotp({ userId, amr: ['pwd'], code: app.code() })).rejects.toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
    })
    expect(await host.knex('auth_sessions').where({ user_id: userId }).whereNull('revoked_at')).toEqual([])
    host.state.isDown = false
    const challenge = await challengeOf(host, await host.knex('auth_users').where({ id: userId }).first('email'))
    expect((await verify(host, challenge, app.nextCode())).status).toBe(200)
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
    expect(await host.knex('auth_identities').where({ user_id: proven.userId })).toHaveLength(1) // the link stays
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

  test('at the exchange of an app’s code, which is used then', async () => {
    const host = await startAsking({ settings: appSettings })
    const { code, verifier, profile } = await browse(host)
    expect(host.asked).toEqual([]) // the session begins at the exchange
    host.state.isDown = true
    expect(outcome(await exchange(host, { code, verifier }))).toEqual(unavailable)
    host.state.isDown = false
    expect(outcome(await exchange(host, { code, verifier }))).toEqual([401, 'OAUTH_CODE_INVALID']) // used by the first exchange
    const next = await browse(host, { profile })
    expect(outcome(await exchange(host, next))).toEqual([200, `of ${profile.email}`])
  })

  test('at loginAs() of a host’s tests', async () => {
    const host = await startAsking()
    const { email } = await signedIn(host)
    expect(tenantOf((await loginAs(host.auth, { email })).accessToken)).toBe(`of ${email}`)
  })
})

describe('an account that is made, activated or reset stays so when the host’s claims fail', () => {
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
})

describe('what happens to the account while the host is asked', () => {
  const stateless = () => createKnexStore({ knex: opened().knex, sessions: false })

  test.each<[string, (host: Asking, userId: string) => Promise<unknown>]>([
    ['deactivation', (host, userId) => host.auth.service.deactivate(userId)],
    ['logout of every session', (host, userId) => host.auth.service.revokeSessions(userId)],
    ['reset', async (host, userId) => resetNow(host, userId)],
  ])('a %s ends the login, and leaves no session', async (_what, change) => {
    const host = await startAsking()
    const { email, userId } = await signedIn(host)
    const told: unknown[] = []
    host.auth.events.on('login', (event) => told.push(event))
    host.state.meanwhile = () => change(host, userId)
    const answer = await post(host, '/login', { email, password })
    expect(outcome(answer)).toEqual([401, 'UNAUTHORIZED'])
    expect(told).toHaveLength(_what === 'reset' ? 1 : 0) // the login of the reset itself
    const living = await host.knex('auth_sessions').where({ user_id: userId }).whereNull('revoked_at')
    expect(living).toHaveLength(_what === 'reset' ? 1 : 0)
  })

  test.each<[string, (host: Asking, userId: string) => Promise<unknown>]>([
    ['deactivation', (host, userId) => host.auth.service.deactivate(userId)],
    ['reset', async (host, userId) => resetNow(host, userId)],
  ])('without a table of sessions a %s ends the login too', async (_what, change) => {
    const host = await startAsking({ store: stateless() })
    const { email, userId } = await signedIn(host)
    host.state.meanwhile = () => change(host, userId)
    const answer = await post(host, '/login', { email, password })
    expect(outcome(answer)).toEqual([401, 'UNAUTHORIZED'])
  })

  test('an account that is deactivated during its activation gets no session', async () => {
    const host = await startAsking()
    const { email, link: token } = await pending(host)
    const { id } = await userOf(host, email)
    host.state.meanwhile = () => host.auth.service.deactivate(id)
    const answer = await post(host, '/activate', { token, password })
    expect(outcome(answer)).toEqual([401, 'UNAUTHORIZED'])
    expect(await host.knex('auth_sessions').where({ user_id: id }).whereNull('revoked_at')).toEqual([])
  })

  async function resetNow(host: Asking, userId: string) {
    const { email } = await host.knex('auth_users').where({ id: userId }).first('email')
    return host.auth.service.resetPassword({ token: await resetLink(host, email), newPassword: otherPassword })
  }
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

  test('a login reads the user for the host, and its new session after the host’s answer; without claims nothing changes', async () => {
    const bare = await start()
    const asking = await start({ options: { accessTokenClaims: () => ({ tenant: 'one' }) } })
    const loggedIn = async (host: LocalHost) => {
      const { email } = await signedIn(host)
      return statementsOf(host, () => post(host, '/login', { email, password }))
    }
    const [without, withClaims] = [await loggedIn(bare), await loggedIn(asking)]
    const more = withClaims.filter((statement) => !without.includes(statement))
    expect(withClaims).toHaveLength(without.length + 2)
    expect(more.map((statement) => statement.split(' ')[0])).toEqual(['select', 'select'])
    expect(withClaims.at(-1)).toBe(more.at(-1)) // after the commit
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
