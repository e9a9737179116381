import Joi from 'joi'
import { describe, expect, test } from 'vitest'
import { createKnexStore, purgeExpired } from '../../src'
import { bearerOf, mailsTo, newAddress, password, post, settled, tokenRows, userOf } from '../local/people'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { handMade } from './hand-made'
import { activate, newcomer, onSignups, shownPasskey, signUp, signupBody, signupOptions } from './newcomers'
import { codeOf, logIn, newAuthenticator, passkeyOwner, rejected } from './people'

const invalid = [422, 'PASSKEY_INVALID'] as const

describe.each(await databases())('sign-up with a passkey, on $name', (database) => {
  const { start } = onSignups(database)

  const passkeysOf = (host: Awaited<ReturnType<typeof start>>, userId: string) => host.knex('auth_passkeys').where({ user_id: userId })

  test('a person signs up, clicks the link in the same browser, and signs in with the passkey', async () => {
    const host = await start()
    const events: unknown[] = []
    for (const name of ['signup', 'activation', 'passkey.added', 'account.taken_over'] as const)
      host.auth.events.on(name, (payload) => events.push([name, payload]))
    const email = newAddress()
    const [authenticator, browser] = [newAuthenticator({ aaguid: 'ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4' }), host.browser()]

    const options = await signupOptions(host, email, browser)
    expect(options).toMatchObject({ rp: { id: 'app.example.test', name: 'Example' }, user: { name: email, displayName: email } })
    expect(options).toMatchObject({ excludeCredentials: [], timeout: 300_000, authenticatorSelection: { userVerification: 'required' } })
    expect(Buffer.from(options.user.id, 'base64url')).toHaveLength(32)
    expect((await signupOptions(host, email)).user.id).not.toBe(options.user.id)
    const body = { email, name: 'Ana', credential: authenticator.create(options as never), challenge_token: options.challenge_token }
    const signedUp = await signUp(host, body, browser)
    const user = await userOf(host, email)
    expect([signedUp.status, signedUp.body]).toEqual([
      201,
      {
        user_id: user.id,
        activation_required: true,
        activation_url: null,
        signup_token: expect.any(String),
        access_token: null,
        refresh_token: null,
      },
    ])
    expect(user).toMatchObject({ name: 'Ana', isActive: false, passwordSetAt: null, hashedPassword: expect.stringMatching(/^!/) })
    expect(await passkeysOf(host, user.id)).toEqual([]) // pending
    expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)

    const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    const activated = await activate(host, link, {}, browser)
    expect([activated.status, activated.body.user_id, activated.body.password_required]).toEqual([200, user.id, undefined])
    const [passkey, ...others] = await passkeysOf(host, user.id)
    expect(others).toEqual([])
    expect(passkey).toMatchObject({ user_handle: options.user.id, name: 'Google Password Manager', last_used_at: null })
    const login = await logIn(host, authenticator)
    expect([login.status, login.body.user_id]).toEqual([200, user.id])
    expect(events).toEqual([
      ['signup', { userId: user.id, by: 'passkey' }],
      ['activation', { userId: user.id }],
      ['passkey.added', { userId: user.id, passkeyId: passkey.id }],
    ])
    expect(mailsTo(host, email)).toEqual(['activation'])
  })

  test('the passkey of the sign-up is not young: it makes a session fresh and adds another passkey; the user handle stays', async () => {
    const host = await start()
    const { email, authenticator, browser, link } = await newcomer(host)
    await activate(host, link, {}, browser)
    const [{ id }, login] = [await userOf(host, email), await logIn(host, authenticator)]
    const person = { token: login.body.access_token }

    const options = await post(host, '/passkeys/register/options', {}, bearerOf(person))
    expect([options.status, options.text]).toEqual([200, expect.any(String)])
    expect(options.body.user.id).toBe((await passkeysOf(host, id))[0].user_handle)
    const second = newAuthenticator()
    const added = { credential: second.create(options.body), challenge_token: options.body.challenge_token }
    expect((await post(host, '/passkeys/register', added, bearerOf(person))).status).toBe(201)
    const again = await post(host, '/reauthenticate/passkey/options', {}, bearerOf(person))
    const proof = { credential: authenticator.get(again.body), challenge_token: again.body.challenge_token }
    expect((await post(host, '/reauthenticate', proof, bearerOf(person))).status).toBe(200)
    // The second one was added to an existing account.
    host.clock.advance(60)
    const later = await post(
      host,
      '/passkeys/register/options',
      {},
      bearerOf({ token: (await logIn(host, authenticator)).body.access_token }),
    )
    expect(later.status).toBe(200)
  })

  test('a passkey that is added later is young, as on every account', async () => {
    const host = await start()
    const { authenticator, browser, link } = await newcomer(host)
    await activate(host, link, {}, browser)
    host.clock.advance(60)
    const person = { token: (await logIn(host, authenticator)).body.access_token }
    const options = await post(host, '/passkeys/register/options', {}, bearerOf(person))
    const second = newAuthenticator()
    const added = { credential: second.create(options.body), challenge_token: options.body.challenge_token }
    expect((await post(host, '/passkeys/register', added, bearerOf(person))).status).toBe(201)
    const young = { token: (await logIn(host, second)).body.access_token }
    expect((await post(host, '/passkeys/register/options', {}, bearerOf(young))).status).toBe(403)
  })

  test.each(['lenient', 'strict'] as const)(
    'with activationBinding %s, the passkey is evidence in any browser, by either route, and is used then',
    async (activationBinding) => {
      const host = await start({ settings: { activationBinding } })
      for (const path of ['/activate', '/activate/:token']) {
        const { email, authenticator, link } = await newcomer(host)
        const proof = await shownPasskey(host, authenticator)
        const answer = await post(host, path.replace(':token', link), { ...proof, ...(path === '/activate' && { token: link }) })
        expect([answer.status, answer.text]).toEqual([200, expect.not.stringContaining('password_required')])
        const { id } = await userOf(host, email)
        expect(await passkeysOf(host, id)).toHaveLength(1)
        // The challenge was used: it signs nobody in.
        expect(codeOf(await post(host, '/passkeys/login', proof))).toEqual(rejected)
        expect((await logIn(host, authenticator)).status).toBe(200)
      }
    },
  )

  test('a passkey that does not verify is 401 PASSKEY_REJECTED, and the link stays', async () => {
    const host = await start()
    const { email, authenticator, browser, link } = await newcomer(host)
    const stranger = newAuthenticator()
    stranger.create((await signupOptions(host, newAddress())) as never)
    const { challenge_token, credential } = await shownPasskey(host, authenticator)
    const proofs: Record<string, object> = {
      'of another authenticator': await shownPasskey(host, stranger),
      'of another origin': await shownPasskey(host, authenticator, { origin: 'https://evil.example' }),
      'without a verified user': await shownPasskey(host, authenticator, { isUserVerified: false }),
      'with another user handle': await shownPasskey(host, authenticator, { userHandle: 'AAAA' }),
      'without its token': { credential },
      'with a token of a sign-up': { credential, challenge_token: (await signupOptions(host, email)).challenge_token },
      'that is no credential': { credential: {}, challenge_token },
    }
    for (const [what, proof] of Object.entries(proofs))
      expect([what, ...codeOf(await activate(host, link, proof))]).toEqual([what, ...rejected])
    const late = await shownPasskey(host, authenticator)
    host.clock.advance(901)
    expect(codeOf(await activate(host, link, late))).toEqual(rejected)
    // In the browser of the sign-up too.
    expect(codeOf(await activate(host, link, proofs['of another origin'], browser))).toEqual(rejected)
    expect((await userOf(host, email)).isActive).toBe(false)
    expect((await activate(host, link, await shownPasskey(host, authenticator))).status).toBe(200)
  })

  test('a credential in the activation of a sign-up by password is 401', async () => {
    const host = await start()
    const email = newAddress()
    await post(host, '/signup', { email, password })
    const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    const stranger = newAuthenticator()
    stranger.create((await signupOptions(host, email)) as never)
    expect(codeOf(await activate(host, link, await shownPasskey(host, stranger)))).toEqual(rejected)
    expect((await activate(host, link)).status).toBe(200)
  })

  test('a resent activation carries the passkey, also one after "I forgot my password"', async () => {
    const host = await start()
    for (const path of ['/activation/request', '/password-reset/request']) {
      const { email, authenticator } = await newcomer(host)
      await post(host, path, { email })
      const resent = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      expect((await activate(host, resent, await shownPasskey(host, authenticator))).status).toBe(200)
      expect((await logIn(host, authenticator)).status).toBe(200)
    }
  })

  test('if the host must be asked for each link, the mailed link carries the passkey too', async () => {
    const host = await start({ options: { refusesEmailLink: async () => false } })
    const { authenticator, browser, link } = await newcomer(host)
    expect((await activate(host, link, {}, browser)).status).toBe(200)
    expect((await logIn(host, authenticator)).status).toBe(200)
  })

  test('of two sign-ups of which one is by passkey, the newest counts, and the link alone keeps nothing', async () => {
    const host = await start({ settings: { activationBinding: 'lenient' } })
    // A passkey, then a password.
    const first = await newcomer(host)
    await post(host, '/signup', { email: first.email, password })
    expect(codeOf(await activate(host, first.link, await shownPasskey(host, first.authenticator)))).toEqual([401, 'INVALID_TOKEN'])
    const byPassword = tokenOf(await host.mails.next({ kind: 'activation', to: first.email }))
    expect(codeOf(await activate(host, byPassword, await shownPasskey(host, first.authenticator)))).toEqual(rejected)
    const alone = await activate(host, byPassword)
    expect([alone.status, alone.body.password_required]).toEqual([200, true]) // contested
    expect(codeOf(await logIn(host, first.authenticator))).toEqual(rejected)

    // A password, then a passkey.
    const email = newAddress()
    await post(host, '/signup', { email, password })
    await host.mails.next({ kind: 'activation', to: email })
    const second = await newcomer(host, { email })
    expect((await activate(host, second.link, {}, second.browser)).status).toBe(200)
    expect((await logIn(host, second.authenticator)).status).toBe(200)
    expect((await post(host, '/login', { email, password })).status).toBe(401)

    // Two passkeys: the binding of the older one counts for nothing.
    const older = await newcomer(host)
    const last = await newcomer(host, { email: older.email })
    const taken = await activate(host, last.link, {}, older.browser)
    expect([taken.status, taken.body.password_required]).toEqual([200, true])
    for (const { authenticator } of [older, last]) expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
  })

  test('an id that a live passkey has by the time of the activation: activated without it, and a mail says so', async () => {
    const host = await start()
    const shared = handMade()
    const signUpShared = async () => {
      const [email, browser] = [newAddress(), host.browser()]
      expect((await signUp(host, await signupBody(host, email, shared), browser)).status).toBe(201)
      return { email, browser, link: tokenOf(await host.mails.next({ kind: 'activation', to: email })) }
    }
    const [one, other] = [await signUpShared(), await signUpShared()] // one id in many pending sign-ups
    const added: unknown[] = []
    host.auth.events.on('passkey.added', (payload) => added.push(payload))
    expect((await activate(host, one.link, {}, one.browser)).status).toBe(200)
    const second = await activate(host, other.link, {}, other.browser)
    expect(second.status).toBe(200)
    expect((await userOf(host, other.email)).isActive).toBe(true)
    expect(await passkeysOf(host, (await userOf(host, other.email)).id)).toEqual([])
    expect((await host.mails.next({ kind: 'notice', to: other.email })).subject).toBe('Your account has no passkey yet')
    expect(added).toHaveLength(1)
    // From now on it is refused at the sign-up, for every address.
    const owner = await passkeyOwner(host)
    for (const email of [newAddress(), owner.email])
      expect(codeOf(await signUp(host, await signupBody(host, email, shared)))).toEqual(invalid)
  })

  test('the purge removes a pending passkey with its account', async () => {
    const host = await start()
    const { email, authenticator } = await newcomer(host)
    const { id } = await userOf(host, email)
    host.clock.advance(40 * 86_400)
    await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now() })
    expect(await tokenRows(host, id)).toEqual([])
    expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
  })

  test('schema, admit and onSignup are asked as at a sign-up by password, and get no credential', async () => {
    const seen: unknown[] = []
    const host = await start({
      options: {
        signup: {
          schema: Joi.object({ plan: Joi.string().required() }).unknown(),
          admit: (body) => {
            seen.push(['admit', body])
            return body.email.startsWith('local')
          },
          onSignup: (_user, body) => void seen.push(['onSignup', body]),
        },
        guardRequest: (req, { action }) => void seen.push([action, Object.keys(req.body)]),
      },
    })
    const email = newAddress()
    const body = await signupBody(host, email, newAuthenticator())
    expect((await signUp(host, body)).status).toBe(422)
    const whole = { ...(await signupBody(host, email, newAuthenticator())), plan: 'free', name: 'Ana', password }
    expect((await signUp(host, whole)).status).toBe(201)
    const outsider = await signupBody(host, `outsider-${email}`, newAuthenticator(), { plan: 'free' })
    expect(codeOf(await signUp(host, outsider))).toEqual([403, 'FORBIDDEN'])
    const given = { plan: 'free', name: 'Ana', email }
    expect(seen).toEqual([
      ['signup', Object.keys(body)],
      ['signup', Object.keys(whole)],
      ['admit', given],
      ['onSignup', given],
      ['signup', Object.keys(outsider)],
      ['admit', { plan: 'free', name: null, email: `outsider-${email}` }],
    ])
  })

  test('an email login in the browser of the sign-up keeps the passkey; in another it is a take-over', async () => {
    const host = await start({ settings: { emailLogin: 'code' } })
    for (const isSame of [true, false]) {
      const { email, authenticator, browser } = await newcomer(host)
      const other = isSame ? browser : host.browser()
      const asked = await other.post('/auth/email-login/request').send({ email })
      const { code } = await host.mails.next({ kind: 'email_login', to: email })
      const login = await other.post('/auth/email-login/confirm').send({ code, request_token: asked.body.request_token })
      expect([login.status, login.text]).toEqual([200, expect.any(String)])
      expect([isSame, (await logIn(host, authenticator)).status]).toEqual([isSame, isSame ? 200 : 401])
    }
  })

  test('a provider that verified the address activates the account; only in the browser of the sign-up the passkey stays', async () => {
    const host = await start({ settings: { oauthLinkByVerifiedEmail: true } })
    for (const isSame of [true, false]) {
      const { email, authenticator, browser } = await newcomer(host)
      const profile = newPerson({ email })
      const login = await signIn(host, isSame ? browser : host.browser(), { key: 'corp', profile })
      expect([login.status, login.text]).toEqual([200, expect.any(String)])
      expect([isSame, (await logIn(host, authenticator)).status]).toEqual([isSame, isSame ? 200 : 401])
    }
  })

  test('an account that onSignup activates has its passkey at once, and the event says so', async () => {
    const told: unknown[] = []
    const host = await start({
      options: {
        signup: {
          onSignup: async ({ id, createdAt }, _body, store) =>
            void (await store.users.update(id, { isActive: true, activatedAt: createdAt })),
        },
      },
    })
    host.auth.events.on('passkey.added', (payload) => told.push(payload))
    const [email, authenticator] = [newAddress(), newAuthenticator()]
    const answer = await signUp(host, await signupBody(host, email, authenticator))
    expect([answer.status, answer.body.activation_required]).toEqual([201, false])
    expect((await logIn(host, authenticator)).status).toBe(200)
    expect(told).toEqual([{ userId: (await userOf(host, email)).id, passkeyId: expect.any(String) }])
  })

  test('a link that the host refuses ends, and the link that it allows later still has the passkey and the browser', async () => {
    let refuses = false
    const host = await start({ options: { refusesEmailLink: () => refuses } })
    const { email, authenticator, browser, link } = await newcomer(host)
    refuses = true
    expect(codeOf(await activate(host, link, {}, browser))).toEqual([403, 'EMAIL_LINK_FORBIDDEN'])
    refuses = false
    expect(codeOf(await activate(host, link, {}, browser))).toEqual([401, 'INVALID_TOKEN'])
    await browser.post('/auth/activation/request').send({ email })
    const later = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    const activated = await activate(host, later, {}, browser)
    expect([activated.status, activated.body.password_required]).toEqual([200, undefined])
    expect((await logIn(host, authenticator)).status).toBe(200)
  })

  test('an administrator who activates the account does not bring the passkey to life', async () => {
    const host = await start()
    const { email, authenticator, browser, link } = await newcomer(host)
    await host.auth.service.activateUser((await userOf(host, email)).id)
    expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
    expect(codeOf(await activate(host, link, {}, browser))).toEqual([401, 'INVALID_TOKEN'])
  })

  test('an app that has switched passkeys off: the link alone is a take-over; with evidence a mail says that the passkey is left out', async () => {
    const host = await start()
    const off = await start({ settings: { passkeysEnabled: false, signupWith: ['password'] } })
    const [one, other] = [await newcomer(host), await newcomer(host)]
    const alone = await activate(off, one.link)
    expect([alone.status, alone.body.password_required]).toEqual([200, true])
    const bound = await activate(off, other.link, { signup_token: other.answer.body.signup_token })
    expect([bound.status, bound.body.password_required]).toEqual([200, undefined])
    expect((await off.mails.next({ kind: 'notice', to: other.email })).subject).toBe('Your account has no passkey yet')
    for (const { authenticator } of [one, other]) expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
  })

  test('a taken address: the same 201, nothing else is stored, the owner is told', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const before = await tokenRows(host, owner.userId)
    const answer = await signUp(host, await signupBody(host, owner.email, newAuthenticator(), { name: 'Mallory' }))
    expect(answer.status).toBe(201)
    await settled(host)
    const texts = host.mails.mails.filter(({ to }) => to === owner.email).map(({ text }) => text)
    expect(texts.at(-1)).toContain('there is already one')
    const added = (await tokenRows(host, owner.userId)).filter(({ token_hash }) => !before.some((row) => row.token_hash === token_hash))
    expect(added).toMatchObject([{ purpose: 'PASSKEY_CHALLENGE', isUsed: true }])
    expect(await passkeysOf(host, owner.userId)).toHaveLength(1)
  })
})
