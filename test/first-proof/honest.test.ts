import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, type LocalHost, newAddress, onLocal, otherPassword, password, post, userOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { type Browser, signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

const providers = { corp: {}, github: {} }
const unhurried = { login: false, links: false, mail: false, signup: false, routes: false } as const

interface Owner {
  email: string
  userId: string
  token: string
  refreshToken: string
  profile: ReturnType<typeof newPerson>
  hasFactor: boolean
  hasIdentity: boolean
}

const belongings = {
  'a password': { hasFactor: false, hasIdentity: false },
  'a password and a linked identity of another address': { hasFactor: false, hasIdentity: true },
  'a password and a factor': { hasFactor: true, hasIdentity: false },
  'a password, a factor and a linked identity': { hasFactor: true, hasIdentity: true },
}

/** How the request tells that the owner is in. */
const evidence: Record<string, (owner: Owner) => { body?: object; headers?: Record<string, string> }> = {
  'the access token': ({ token }) => ({ headers: bearerOf({ token }) }),
  'the refresh token': ({ refreshToken }) => ({ body: { refresh_token: refreshToken } }),
  'the password': () => ({ body: { password } }),
}

describe.each(await databases())('an owner who proves the own address, on $name', (database) => {
  const { start } = onLocal(database)
  const open = (settings: object = {}) =>
    start({
      providers,
      settings: { ...mfaSettings, activationBinding: 'strict', oauthLinkByVerifiedEmail: true, backendLinks: true, ...settings },
      options: { throttle: unhurried },
    })

  /** Signed in, and the address not proven: auto-activated, or imported. */
  async function owner(host: LocalHost, { hasFactor, hasIdentity }: { hasFactor: boolean; hasIdentity: boolean }): Promise<Owner> {
    const email = newAddress()
    const { body } = await post(host, '/signup', { email, password })
    const profile = newPerson()
    const { user_id: userId } = body
    if (hasIdentity)
      await addIdentity(host.knex, userId, { provider: 'github', subject: profile.sub, email: profile.email, emailVerified: null })
    if (!hasFactor) return { email, userId, token: body.access_token, refreshToken: body.refresh_token, profile, hasFactor, hasIdentity }
    const { secret } = await host.auth.service.enrollTotp(userId)
    const code = authenticator(secret, host.clock).code()
    const confirmed = await host.auth.service.confirmTotp({ userId, amr: ['pwd'], code })
    if (confirmed.kind !== 'session') throw new Error('confirming ends in a session')
    return { email, userId, token: confirmed.accessToken, refreshToken: confirmed.refreshToken, profile, hasFactor, hasIdentity }
  }

  async function expectAllOfIt(host: LocalHost, { email, profile, userId, hasFactor, hasIdentity }: Owner, chosen = password) {
    const login = await post(host, '/login', { email, password: chosen })
    expect([login.status, login.body.mfa_required]).toEqual([200, hasFactor])
    if (hasIdentity) expect((await signIn(host, host.browser(), { key: 'github', profile })).body.user_id).toBe(userId)
    expect((await userOf(host, email)).emailVerifiedAt).toEqual(host.clock.now())
    expect(host.mails.mails.filter(({ subject }) => subject === 'Your account was secured')).toEqual([])
  }

  describe.each(Object.entries(belongings))('with %s', (_has, having) => {
    test.each(Object.entries(evidence))('by a verification with %s keeps all of it', async (_name, presented) => {
      const host = await open({ autoActivate: true })
      const person = await owner(host, having)
      const link = await host.auth.service.requestEmailVerification(person.userId)
      const { body, headers } = presented(person)

      const answer = await post(host, '/email-verify/confirm', { token: link?.token, ...body }, headers)

      expect([answer.status, Object.keys(answer.body)]).toEqual([200, ['message']])
      await expectAllOfIt(host, person)
    })

    test.each(Object.entries(evidence))(
      'by a reset with %s keeps all of it but the password that it replaces',
      async (_name, presented) => {
        const host = await open({ autoActivate: true })
        const person = await owner(host, having)
        const link = await host.auth.service.requestPasswordReset(person.email)
        const { body, headers } = presented(person)

        const answer = await post(host, '/password-reset/confirm', { token: link?.token, new_password: otherPassword, ...body }, headers)

        expect([answer.status, answer.body.password_required]).toEqual([200, undefined])
        await expectAllOfIt(host, person, otherPassword)
      },
    )
  })

  const doors: Record<
    string,
    (host: LocalHost, browser: Browser, email: string) => Promise<{ status: number; body: Record<string, unknown> }>
  > = {
    'signs in by a provider that verified the address': (host, browser, email) =>
      signIn(host, browser, { key: 'corp', profile: newPerson({ email }) }),
    async 'clicks a reset that a stranger asked for'(host, browser, email) {
      await post(host, '/password-reset/request', { email })
      const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
      return browser.post('/auth/password-reset/confirm').send({ token, new_password: password })
    },
    async 'clicks a verification'(host, browser, email) {
      const link = await host.auth.service.requestEmailVerification((await userOf(host, email)).id)
      const { status, body } = await browser.post('/auth/email-verify/confirm').send({ token: link?.token })
      return { status, body: { ...body, mfa_required: true } } // it signs nobody in
    },
  }

  test.each(Object.entries(doors))(
    'X18: signed in by cookies, with a factor and an unproven address, who %s loses nothing',
    async (_name, enter) => {
      const host = await open({ autoActivate: true, tokenDelivery: 'cookie' })
      const browser = host.browser()
      const email = newAddress()
      const { body: account } = await browser.post('/auth/signup').send({ email, password }).expect(201)
      await browser.post('/auth/login').send({ email, password }).expect(200)
      const { secret } = await host.auth.service.enrollTotp(account.user_id)
      const code = authenticator(secret, host.clock).code()
      await host.auth.service.confirmTotp({ userId: account.user_id, amr: ['pwd'], code, revokeSessions: false })

      const { status, body } = await enter(host, browser, email)

      expect([status, body['password_required'], body['mfa_required']]).toEqual([200, undefined, true])
      expect((await userOf(host, email)).totpEnabledAt).not.toBeNull()
      expect((await post(host, '/login', { email, password })).body.mfa_required).toBe(true)
      expect(host.mails.mails.filter(({ subject }) => subject === 'Your account was secured')).toEqual([])
    },
  )

  const signedUp = async (host: LocalHost, browser: Browser = host.browser(), email = newAddress()) => {
    const { body } = await browser.post('/auth/signup').set('User-Agent', firefox).send({ email, password })
    const mail = await host.mails.next({ kind: 'activation', to: email })
    return { email, mail, link: tokenOf(mail), signupToken: body.signup_token }
  }
  const firefox = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
  const isIn = async (host: LocalHost, email: string) => (await post(host, '/login', { email, password })).status === 200

  test('signs up on the desktop and clicks on the phone: lenient keeps the password', async () => {
    const host = await open({ activationBinding: 'lenient' })
    const { email, link } = await signedUp(host)
    expect((await post(host, '/activate', { token: link })).status).toBe(200)
    expect(await isIn(host, email)).toBe(true)
  })

  test('signs up and clicks in the same browser: strict keeps the password', async () => {
    const host = await open()
    const browser = host.browser()
    const { email, link } = await signedUp(host, browser)
    const { body } = await browser.post('/auth/activate').send({ token: link })
    expect([body.password_required, await isIn(host, email)]).toEqual([undefined, true])
  })

  test('signs up in an app, which sends its signup_token: strict keeps the password', async () => {
    const host = await open()
    const { email, link, signupToken } = await signedUp(host)
    const { body } = await post(host, `/activate/${link}`, { signup_token: signupToken })
    expect([body.password_required, await isIn(host, email)]).toEqual([undefined, true])
  })

  test('clicks on the phone and knows the password: strict keeps it, and a typing mistake costs nothing', async () => {
    const host = await open()
    const { email, link } = await signedUp(host)
    const wrong = await post(host, '/activate', { token: link, password: otherPassword })
    expect([wrong.status, wrong.body.code]).toEqual([401, 'UNAUTHORIZED'])
    const { body } = await post(host, '/activate', { token: link, password })
    expect([body.password_required, await isIn(host, email)]).toEqual([undefined, true])
  })

  test('types the password into the page of another browser: strict keeps it', async () => {
    const host = await open()
    const { email, link } = await signedUp(host)
    expect((await host.browser().post(`/auth/activate/${link}`).type('form').send({ password })).status).toBe(200)
    expect(await isIn(host, email)).toBe(true)
  })

  test('signs up twice because the mail was late: the older link works in the same browser, and keeps the password', async () => {
    const host = await open()
    const browser = host.browser()
    const first = await signedUp(host, browser)
    await signedUp(host, browser, first.email)
    const { body } = await browser.post('/auth/activate').send({ token: first.link })
    expect([body.password_required, await isIn(host, first.email)]).toEqual([undefined, true])
  })

  test('signs up and, before the mail comes, comes by Google in the same browser: the password stays', async () => {
    const host = await open()
    const browser = host.browser()
    const { email } = await signedUp(host, browser)
    const { status, body } = await signIn(host, browser, { key: 'corp', profile: newPerson({ email }) })
    expect([status, body.password_required]).toEqual([200, undefined])
    expect(await isIn(host, email)).toBe(true)
  })

  test('comes by GitHub, whose address nobody verified, and verifies where nobody is signed in: a mail says what went, and there is a way back', async () => {
    const host = await open()
    const profile = newPerson({ email_verified: null })
    const { body: account } = await signIn(host, host.browser(), { key: 'github', profile })
    const link = await host.auth.service.requestEmailVerification(account.user_id)

    const { body } = await post(host, '/email-verify/confirm', { token: link?.token })

    const notice = await host.mails.next({ kind: 'notice', to: profile.email })
    expect([notice.subject, notice.text]).toEqual(['Your account was secured', expect.stringContaining('“github”')])
    const back = await post(host, '/password-reset/confirm', { token: body.reset_token, new_password: password })
    expect([back.status, back.body.user_id]).toEqual([200, account.user_id])
  })

  test('comes by GitHub and verifies while signed in: the identity stays', async () => {
    const host = await open()
    const profile = newPerson({ email_verified: null })
    const { body: account } = await signIn(host, host.browser(), { key: 'github', profile })
    const link = await host.auth.service.requestEmailVerification(account.user_id)
    await post(host, '/email-verify/confirm', { token: link?.token }, bearerOf({ token: account.access_token }))
    expect((await signIn(host, host.browser(), { key: 'github', profile })).body.user_id).toBe(account.user_id)
  })

  test('links a provider of another address on purpose, proven, and resets later: the identity stays', async () => {
    const host = await open()
    const { email, link, signupToken } = await signedUp(host)
    const { body } = await post(host, '/activate', { token: link, signup_token: signupToken })
    const profile = newPerson()
    await addIdentity(host.knex, body.user_id, { provider: 'corp', subject: profile.sub, email: profile.email, emailVerified: true })
    const reset = await host.auth.service.requestPasswordReset(email)
    await post(host, '/password-reset/confirm', { token: reset?.token, new_password: otherPassword })
    expect((await signIn(host, host.browser(), { key: 'corp', profile })).body.user_id).toBe(body.user_id)
  })

  test('an expired access token of a living session is refused, and not taken for a stranger: refreshed, it keeps everything', async () => {
    const host = await open({ autoActivate: true })
    const person = await owner(host, belongings['a password and a linked identity of another address'])
    host.clock.advance(901)
    const link = await host.auth.service.requestEmailVerification(person.userId)
    const late = await post(host, '/email-verify/confirm', { token: link?.token }, bearerOf(person))
    expect([late.status, late.body.code]).toEqual([401, 'TOKEN_EXPIRED'])
    const { body } = await post(host, '/refresh', { refresh_token: person.refreshToken })
    expect((await post(host, '/email-verify/confirm', { token: link?.token }, bearerOf({ token: body.access_token }))).status).toBe(200)
    await expectAllOfIt(host, person)
  })

  test('cookies that another site’s form brings along are no evidence', async () => {
    const host = await open({ autoActivate: true, tokenDelivery: 'cookie' })
    const browser = host.browser()
    const { body } = await browser.post('/auth/signup').send({ email: newAddress(), password })
    const link = await host.auth.service.requestEmailVerification(body.user_id)
    const own = await browser.post(`/auth/email-verify/${link?.token}`).set('Origin', 'https://evil.example').type('form').send({})
    expect(own.status).toBe(400)
    expect((await browser.post(`/auth/email-verify/${link?.token}`).type('form').send({})).status).toBe(200)
  })

  test.each([
    ['an Authorization header of another scheme', { Authorization: 'Basic YTpi' }, {}],
    ['an access token that is none', { Authorization: 'Bearer none' }, {}],
    ['a refresh token that is none', {}, { refresh_token: 'none' }],
  ])('nor are they with %s, which says nothing of who is in', async (_name, header, body) => {
    const host = await open({ autoActivate: true, tokenDelivery: 'cookie' })
    const browser = host.browser()
    const email = newAddress()
    const { body: account } = await browser.post('/auth/signup').send({ email, password })
    await browser.post('/auth/login').send({ email, password }).expect(200)
    const confirm = async (from: object) => {
      const link = await host.auth.service.requestEmailVerification(account.user_id)
      return browser
        .post('/auth/email-verify/confirm')
        .set({ ...header, ...from })
        .send({ token: link?.token, ...body })
    }
    const foreign = await confirm({ Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' })
    expect([foreign.status, foreign.body.password_required]).toEqual([200, true])
  })

  test('without a table of sessions the access token says that the owner is in, until the password changes', async () => {
    const { knex } = await open()
    const host = await start({
      settings: { autoActivate: true },
      options: { throttle: unhurried, store: createKnexStore({ knex, sessions: false }) },
    })
    const own = await owner(host, belongings['a password'])
    const stranger = await owner(host, belongings['a password'])
    const verify = async (headers: Record<string, string>, person = own) => {
      const link = await host.auth.service.requestEmailVerification(person.userId)
      return post(host, '/email-verify/confirm', { token: link?.token }, headers)
    }
    expect((await verify(bearerOf(own))).body.password_required).toBeUndefined()
    await expectAllOfIt(host, own)

    host.clock.advance(1)
    const { body } = await post(host, '/login', { email: own.email, password })
    const fresh = bearerOf({ token: body.access_token })
    const newEmail = newAddress()
    await post(host, '/email-change/request', { new_email: newEmail }, fresh).expect(202)
    const token = tokenOf(await host.mails.next({ kind: 'email_change', to: newEmail }))
    const change = (headers: Record<string, string>) => post(host, '/email-change/confirm', { token }, headers)
    for (const headers of [{}, bearerOf(stranger)]) expect((await change(headers)).status).toBe(401)
    expect((await change(fresh)).status).toBe(200)

    expect((await verify(fresh, stranger)).body.password_required).toBe(true)
    const late = await owner(host, belongings['a password'])
    host.clock.advance(901)
    expect((await verify(bearerOf(late), late)).body.code).toBe('TOKEN_EXPIRED')
  })

  test('the activation mail names the time and the browser of its signup, in words of ours', async () => {
    const host = await open()
    const { mail, email } = await signedUp(host)
    expect(mail.text).toContain('March 1, 2026 at 12:00 PM UTC, with Firefox, Windows.')
    await post(host, '/activation/request', { email })
    expect((await host.mails.next({ kind: 'activation', to: email })).text).toContain('with Firefox, Windows.')
  })

  test('a proven address is asked for before a factor or an identity, and then both are there', async () => {
    const host = await open({ autoActivate: true })
    const person = await owner(host, belongings['a password'])
    for (const path of ['/mfa/enroll', '/oauth/corp/link']) {
      const refused = await post(host, path, {}, bearerOf(person))
      expect([refused.status, refused.body.code, refused.body.details.request]).toEqual([
        403,
        'EMAIL_NOT_VERIFIED',
        '/auth/email-verify/request',
      ])
    }
    const link = await host.auth.service.requestEmailVerification(person.userId)
    await post(host, '/email-verify/confirm', { token: link?.token }, bearerOf(person))
    host.clock.advance(1)
    const { body } = await post(host, '/login', { email: person.email, password })
    for (const path of ['/mfa/enroll', '/oauth/corp/link'])
      expect((await post(host, path, {}, bearerOf({ token: body.access_token }))).status).toBe(200)
  })

  test('a first password is set once, in a fresh session', async () => {
    const host = await open()
    const { body } = await signIn(host, host.browser(), { key: 'corp', profile: newPerson() })
    const first = (headers: Record<string, string>) => post(host, '/password/first', { new_password: password }, headers)
    expect((await first({})).status).toBe(401)
    host.clock.advance(901)
    const { body: refreshed } = await post(host, '/refresh', { refresh_token: body.refresh_token })
    expect((await first(bearerOf({ token: refreshed.access_token }))).body.code).toBe('REAUTHENTICATION_REQUIRED')
    const { body: again } = await signIn(host, host.browser(), { key: 'corp', profile: newPerson() })
    expect((await first(bearerOf({ token: again.access_token }))).status).toBe(204)
    const twice = await first(bearerOf({ token: again.access_token }))
    expect([twice.status, twice.body.code]).toEqual([409, 'PASSWORD_ALREADY_SET'])
  })

  test('admit is asked before the address is looked up, and a throw of onSignup leaves the older signup as it was', async () => {
    const seen: unknown[] = []
    const refusing = { admits: true, throws: false }
    const host = await start({
      providers,
      options: {
        throttle: unhurried,
        signup: {
          admit: (input) => {
            seen.push(input)
            return refusing.admits
          },
          onSignup: (_user, _body, _store, { isRepeat }) => {
            seen.push(isRepeat)
            if (refusing.throws) throw new Error('the host says no')
          },
        },
      },
    })
    const { email, link } = await signedUp(host)
    refusing.throws = true
    expect((await post(host, '/signup', { email, password: otherPassword })).status).toBe(500)
    refusing.throws = false
    refusing.admits = false
    for (const address of [email, newAddress()])
      expect((await post(host, '/signup', { email: address, password: otherPassword })).body.code).toBe('FORBIDDEN')
    expect(seen.filter((one) => typeof one === 'boolean')).toEqual([false, true])
    expect(seen[0]).toEqual({ email, name: null })
    expect((await post(host, '/activate', { token: link })).status).toBe(200)
    expect(await isIn(host, email)).toBe(true)
  })

  test('onTakeOver runs in the same transaction: what it throws leaves everything as it was', async () => {
    const hook = { throws: true, told: [] as string[] }
    const host = await start({
      providers,
      settings: { activationBinding: 'strict' },
      options: {
        onTakeOver: async (user, store) => {
          hook.told.push(user.id)
          await store.users.update(user.id, { name: 'Granted Nothing' })
          if (hook.throws) throw new Error('not now')
        },
      },
    })
    const { email, link } = await signedUp(host)
    expect((await post(host, '/activate', { token: link })).status).toBe(500)
    expect([(await userOf(host, email)).isActive, (await userOf(host, email)).name]).toEqual([false, null])
    hook.throws = false
    expect((await post(host, '/activate', { token: link })).body.password_required).toBe(true)
    const user = await userOf(host, email)
    expect([user.name, hook.told]).toEqual(['Granted Nothing', [user.id, user.id]])
  })
})
