import { describe, expect, test } from 'vitest'
import { amrOf, bearerOf, type LocalHost, password, post } from '../local/people'
import { challengeOf, enrolled, verify } from '../mfa/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import {
  age,
  codeOf,
  loginOptions,
  newAuthenticator,
  onPasskeys,
  ownerWithFactor,
  type PasskeyOwner,
  passkeyOwner,
  presented,
  rejected,
  rowsOf,
  withFactors,
} from './people'

const stepOf = (host: LocalHost, { authenticator }: Pick<PasskeyOwner, 'authenticator'>, mfaToken: string) =>
  presented(host, authenticator, { path: '/mfa/passkey/options', body: { mfa_token: mfaToken } })

describe.each(await databases())('the second step of a login by a passkey on $name', (database) => {
  const { start: begin } = onPasskeys(database)
  const start = (settings: object = {}) => begin({ settings: { ...withFactors, ...settings } })

  test('a password, then a passkey: the session knows both; the step is good once', async () => {
    const host = await start()
    const owner = await ownerWithFactor(host)
    const login = await post(host, '/login', { email: owner.email, password })
    expect(login.body).toMatchObject({ mfa_required: true, mfa_methods: ['otp', 'passkey'], access_token: null })
    const { mfa_token } = login.body
    const options = await post(host, '/mfa/passkey/options', { mfa_token })
    expect(options.status, options.text).toBe(200)
    expect(options.body).toMatchObject({ rpId: 'app.example.test', userVerification: 'required', timeout: 300_000 })
    expect(options.body.allowCredentials).toEqual([
      { id: owner.authenticator.credentialIds[0], type: 'public-key', transports: ['hybrid', 'internal'] },
    ])
    const answer = { mfa_token, credential: owner.authenticator.get(options.body), challenge_token: options.body.challenge_token }
    const done = await post(host, '/mfa/verify', answer)
    expect(done.status, done.text).toBe(200)
    expect([amrOf(done.body.access_token), done.body.mfa_required, 'mfa_methods' in done.body]).toEqual([['pwd', 'passkey'], false, false])

    const before = await rowsOf(host, owner.userId)
    expect(codeOf(await post(host, '/mfa/verify', answer))).toEqual([401, 'MFA_TOKEN_INVALID'])
    expect(codeOf(await verify(host, mfa_token, owner.app.nextCode()))).toEqual([401, 'MFA_TOKEN_INVALID'])
    expect(codeOf(await post(host, '/mfa/passkey/options', { mfa_token: 'x' }))).toEqual([401, 'MFA_TOKEN_INVALID'])
    expect(await rowsOf(host, owner.userId)).toEqual(before)
  })

  test('two at once with one challenge: one is in', async () => {
    const host = await start()
    const owner = await ownerWithFactor(host)
    const mfaToken = await challengeOf(host, owner)
    const step = { mfa_token: mfaToken, ...(await stepOf(host, owner, mfaToken)) }
    const answers = await Promise.all([1, 2, 3].map(() => post(host, '/mfa/verify', step)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
  })

  test('an account without a passkey hears of no such step, and its code goes on as before', async () => {
    const host = await start()
    const person = await enrolled(host)
    const login = await post(host, '/login', { email: person.email, password })
    expect(login.body.mfa_methods).toEqual(['otp'])
    const { mfa_token } = login.body
    expect(codeOf(await post(host, '/mfa/passkey/options', { mfa_token }))).toEqual([422, 'MFA_NOT_ENROLLED'])
    expect(codeOf(await post(host, '/mfa/verify', { mfa_token }))).toEqual([422, 'VALIDATION_ERROR'])
    expect((await verify(host, mfa_token, person.app.nextCode())).status).toBe(200)
    const off = await start({ passkeysEnabled: false })
    expect('mfa_methods' in (await post(off, '/login', { email: person.email, password })).body).toBe(false)
    expect((await post(off, '/mfa/passkey/options', { mfa_token })).status).toBe(404)
  })

  test('the challenge is of this step and of this first step: any other is refused, and changes nothing', async () => {
    const host = await start()
    const [owner, other] = [await ownerWithFactor(host), await ownerWithFactor(host)]
    const [mfaToken, otherToken, third] = [await challengeOf(host, owner), await challengeOf(host, owner), await challengeOf(host, owner)]
    const own = await stepOf(host, owner, mfaToken)
    const ofLogin = await loginOptions(host)
    const reauthenticating = { path: '/reauthenticate/passkey/options', headers: bearerOf(owner) }
    const mixed = [
      await stepOf(host, owner, otherToken),
      await stepOf(host, other, await challengeOf(host, other)),
      { credential: owner.authenticator.get(ofLogin), challenge_token: ofLogin.challenge_token },
      await presented(host, owner.authenticator, reauthenticating),
    ]
    // One first step takes five bad ones.
    const ofThird = [
      { ...(await stepOf(host, owner, third)), challenge_token: (await stepOf(host, owner, third)).challenge_token },
      { credential: (await stepOf(host, owner, third)).credential },
      await presented(host, owner.authenticator, {
        path: '/mfa/passkey/options',
        body: { mfa_token: third },
        lies: { isUserVerified: false },
      }),
    ]
    const before = [await rowsOf(host, owner.userId), await rowsOf(host, other.userId)]
    for (const answer of mixed) expect(codeOf(await post(host, '/mfa/verify', { mfa_token: mfaToken, ...answer }))).toEqual(rejected)
    for (const answer of ofThird) expect(codeOf(await post(host, '/mfa/verify', { mfa_token: third, ...answer }))).toEqual(rejected)
    const both = { mfa_token: mfaToken, code: owner.app.nextCode(), ...own }
    expect(codeOf(await post(host, '/mfa/verify', both))).toEqual([422, 'VALIDATION_ERROR'])
    expect([await rowsOf(host, owner.userId), await rowsOf(host, other.userId)]).toEqual(before)
    expect((await post(host, '/mfa/verify', { mfa_token: mfaToken, ...own })).status).toBe(200)
  })

  test('it ends in every delivery', async () => {
    const host = await start({ tokenDelivery: 'both' })
    const owner = await ownerWithFactor(host)
    for (const [path, cookie] of [
      ['/cookie/mfa/verify', 'refresh_token'],
      ['/session/mfa/verify', 'auth_session'],
    ] as const) {
      const mfaToken = await challengeOf(host, owner)
      const answer = await post(host, path, { mfa_token: mfaToken, ...(await stepOf(host, owner, mfaToken)) })
      expect(answer.status, answer.text).toBe(200)
      expect(setCookieOf(answer, cookie)?.value).toBeTruthy()
    }
  })

  test('a passkey of less than a day takes the step, and the session is fresh by the password (25.9.4)', async () => {
    const host = await start()
    const owner = await ownerWithFactor(host)
    await host.knex('auth_passkeys').where({ id: owner.passkeyId }).delete()
    const begun = await host.auth.service.passkeyRegistrationOptions({ userId: owner.userId })
    const authenticator = newAuthenticator()
    const { id } = await host.auth.service.registerPasskey({
      userId: owner.userId,
      credential: authenticator.create(begun.options),
      challenge: begun.challenge,
    })
    const finish = async () => {
      const mfaToken = await challengeOf(host, owner)
      const { body } = await post(host, '/mfa/verify', { mfa_token: mfaToken, ...(await stepOf(host, { authenticator }, mfaToken)) })
      return post(host, '/passkeys/register/options', {}, bearerOf({ token: body.access_token }))
    }
    expect((await finish()).status).toBe(200)
    await age(host, id)
    expect((await finish()).status).toBe(200)
  })

  test('a host does the same by its service', async () => {
    const host = await start()
    const owner = await ownerWithFactor(host)
    const mfaToken = await challengeOf(host, owner)
    const { options, challenge } = await host.auth.service.passkeyStepOptions({ mfaToken })
    const credential = owner.authenticator.get(options)
    expect(await host.auth.service.verifyMfa({ mfaToken, credential, challenge })).toMatchObject({
      kind: 'session',
      amr: ['pwd', 'passkey'],
    })
    await expect(host.auth.service.verifyMfa({ mfaToken, credential, challenge })).rejects.toMatchObject({ code: 'MFA_TOKEN_INVALID' })
  })
})

describe.each(await databases())('POST /reauthenticate by a passkey on $name', (database) => {
  const { start: begin } = onPasskeys(database)
  const start = (settings: object = {}) => begin({ settings: { ...withFactors, ...settings } })
  const optionsPath = '/reauthenticate/passkey/options'
  const shownIn = (host: LocalHost, owner: PasskeyOwner, lies = {}) =>
    presented(host, owner.authenticator, { path: optionsPath, headers: bearerOf(owner), lies })
  const confirm = (host: LocalHost, owner: { token: string }, answer: object) => post(host, '/reauthenticate', answer, bearerOf(owner))

  /** In a session that is not fresh, of an account whose passkey is old. */
  async function stale(host: LocalHost): Promise<PasskeyOwner> {
    const owner = await passkeyOwner(host, { isYoung: true })
    const options = await loginOptions(host)
    const login = await post(host, '/passkeys/login', {
      credential: owner.authenticator.get(options),
      challenge_token: options.challenge_token,
    })
    await age(host, owner.passkeyId)
    return { ...owner, token: login.body.access_token, refreshToken: login.body.refresh_token }
  }

  test('a passkey makes the session fresh, once, and is among its methods', async () => {
    const host = await start()
    const owner = await stale(host)
    const refused = await post(host, '/passkeys/register/options', {}, bearerOf(owner))
    expect([...codeOf(refused), refused.body.details.methods]).toEqual([403, 'REAUTHENTICATION_REQUIRED', ['password', 'passkey', 'email']])
    const answer = await shownIn(host, owner)
    const fresh = await confirm(host, owner, answer)
    expect(fresh.status, fresh.text).toBe(200)
    expect([fresh.body.refresh_token, amrOf(fresh.body.access_token)]).toEqual([null, ['passkey']])
    expect((await post(host, '/passkeys/register/options', {}, bearerOf({ token: fresh.body.access_token }))).status).toBe(200)
    const before = await rowsOf(host, owner.userId)
    expect(codeOf(await confirm(host, owner, answer))).toEqual(rejected)
    expect(await rowsOf(host, owner.userId)).toEqual(before)
  })

  test('where a factor is older than a day a password is not enough, and a passkey is', async () => {
    const host = await start()
    const owner = await ownerWithFactor(host)
    expect(codeOf(await confirm(host, owner, { password }))).toEqual([403, 'MFA_REQUIRED'])
    const fresh = await confirm(host, owner, await shownIn(host, owner))
    expect([fresh.status, amrOf(fresh.body.access_token)]).toEqual([200, expect.arrayContaining(['passkey'])])
  })

  test('a passkey of less than a day confirms nobody, and says from when on it does', async () => {
    const host = await start()
    const young = await passkeyOwner(host, { isYoung: true })
    const before = await rowsOf(host, young.userId)
    const refused = await confirm(host, young, await shownIn(host, young))
    expect([...codeOf(refused), refused.body.details]).toEqual([
      403,
      'MFA_FACTOR_TOO_NEW',
      { usable_at: new Date(host.clock.now().getTime() + 86_400_000).toISOString() },
    ])
    expect(await rowsOf(host, young.userId)).toEqual(before)
  })

  test('the challenge is of this session, this ceremony and this account, and lives 300 s', async () => {
    const host = await start()
    const [owner, other] = [await passkeyOwner(host), await passkeyOwner(host)]
    const elsewhere = { ...owner, ...(await passkeyOwner(host)), authenticator: owner.authenticator }
    const ofLogin = await loginOptions(host)
    const options = await post(host, optionsPath, {}, bearerOf(owner))
    const { allowCredentials: _, ...anyPasskey } = options.body
    const answers = [
      { credential: owner.authenticator.get(ofLogin), challenge_token: ofLogin.challenge_token },
      { credential: other.authenticator.get(anyPasskey), challenge_token: options.body.challenge_token },
      await shownIn(host, owner, { isUserVerified: false }),
      await shownIn(host, owner, { origin: 'https://evil.example' }),
    ]
    const before = await rowsOf(host, owner.userId)
    for (const answer of answers) expect(codeOf(await confirm(host, owner, answer))).toEqual(rejected)
    const own = await shownIn(host, owner)
    expect(codeOf(await confirm(host, elsewhere, own))).toEqual(rejected)
    expect(await rowsOf(host, owner.userId)).toEqual(before)
    const late = await shownIn(host, owner)
    host.clock.advance(299)
    expect((await confirm(host, owner, own)).status).toBe(200)
    host.clock.advance(1)
    expect(codeOf(await confirm(host, owner, late))).toEqual(rejected)
  })

  test('two sessions of one account do not lend each other their challenges', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const second = await post(host, '/login', { email: owner.email, password })
    const answer = await shownIn(host, owner)
    expect(codeOf(await confirm(host, { token: second.body.access_token }, answer))).toEqual(rejected)
    expect((await confirm(host, owner, answer)).status).toBe(200)
  })

  test('without a passkey there are no options; by cookie there is a twin', async () => {
    const host = await start({ tokenDelivery: 'both' })
    const owner = await passkeyOwner(host)
    await host.knex('auth_passkeys').where({ id: owner.passkeyId }).delete()
    expect(codeOf(await post(host, optionsPath, {}, bearerOf(owner)))).toEqual([422, 'MFA_NOT_ENROLLED'])
    const another = await passkeyOwner(host)
    const headers = bearerOf(another)
    const answer = await presented(host, another.authenticator, { path: `/cookie${optionsPath}`, headers })
    const fresh = await post(host, '/cookie/reauthenticate', answer, headers)
    expect([fresh.status, fresh.body.access_token]).toEqual([200, null])
    expect(setCookieOf(fresh, 'access_token')?.value).toBeTruthy()
  })

  test('a host does the same by its service, for the session it names', async () => {
    const host = await start()
    const { userId, authenticator } = await passkeyOwner(host)
    const [session] = await host.auth.service.listSessions(userId)
    const { options, challenge } = await host.auth.service.passkeyStepOptions({ userId, sessionId: String(session?.id) })
    const input = { userId, sessionId: String(session?.id), credential: authenticator.get(options), challenge }
    expect(await host.auth.service.reauthenticate(input)).toMatchObject({ kind: 'session', userId })
    await expect(host.auth.service.reauthenticate(input)).rejects.toMatchObject({ code: 'PASSKEY_REJECTED' })
  })
})
