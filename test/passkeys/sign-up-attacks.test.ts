import Joi from 'joi'
import { beforeAll, describe, expect, test } from 'vitest'
import { dialectOf } from '../../src/store/knex/dialect-of'
import { createMembers, memberOptions } from '../account/members'
import { type LocalHost, mailsTo, newAddress, password, post, settled, signedIn, userOf } from '../local/people'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { recordQueries } from '../support/record-queries'
import { forgedRegistrations, handMade } from './hand-made'
import { activate, newcomer, onSignups, shownPasskey, signUp, signupBody, signupOptions } from './newcomers'
import { codeOf, logIn, newAuthenticator, passkeyOwner, register, registrationOptions, rejected } from './people'

const invalid = [422, 'PASSKEY_INVALID'] as const

/** What `/signup/passkey` costs more than `/signup`: one read and one insert. */
const more = 2

describe.each(await databases())('attacks on the sign-up with a passkey, on $name', { timeout: 60_000 }, (database) => {
  const { start } = onSignups(database)

  const rows = ({ knex }: LocalHost) =>
    Promise.all(['auth_users', 'auth_passkeys', 'auth_user_tokens', 'auth_sessions'].map((table) => knex(table).orderBy('id')))
  const passkeysOf = (host: LocalHost, userId: string) => host.knex('auth_passkeys').where({ user_id: userId })

  /** An answer without what is random in every answer, and without the time. */
  function shapeOf({ status, body, headers }: Awaited<ReturnType<typeof signUp>>) {
    const { date: _date, 'set-cookie': cookies = [], ...others } = headers as Record<string, unknown>
    const named = (cookies as string[]).map((line) => line.replace(/=[^;]*/, '').replace(/Expires=[^;]+/, ''))
    const members = Object.entries(body as object).map(([name, value]) => [
      name,
      value === null ? null : typeof value,
      String(value).length,
    ])
    return { status, members, cookies: named, headers: { ...others, etag: null } }
  }

  test.each(['password', 'passkey'] as const)(
    'sign-up of a taken and of a free address, by %s: the same status, members, types and cookies',
    async (by) => {
      const host = await start()
      const owner = await signedIn(host)
      const pendingOwner = await newcomer(host)
      const shapes = []
      for (const email of [newAddress(), owner.email, pendingOwner.email]) {
        const answer =
          by === 'password'
            ? await post(host, '/signup', { email, password })
            : await signUp(host, await signupBody(host, email, newAuthenticator()))
        expect(answer.status).toBe(201)
        shapes.push(shapeOf(answer))
      }
      expect(shapes[1]).toEqual(shapes[0])
      expect(shapes[2]).toEqual(shapes[0])
    },
  )

  test('the options of a taken and of a free address are the same, without a query', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const queries = recordQueries(host.knex)
    const answers = []
    for (const email of [newAddress(), owner.email]) answers.push(await post(host, '/signup/passkey/options', { email, name: 'Somebody' }))
    expect(queries.stop()).toEqual([])
    const [free, taken] = answers.map(({ body }) => {
      const { user, challenge, challenge_token, ...others } = body
      return { others, user: [user.id.length, user.displayName], challenge: challenge.length, token: challenge_token.split('.').length }
    })
    expect(taken).toEqual(free)
    expect((await post(host, '/signup/passkey/options', { email: 'no address' })).status).toBe(422)
  })

  test.each(['lenient', 'strict'] as const)(
    'an attacker signs up the address of a victim with his passkey; she clicks the link: a take-over with activationBinding %s',
    async (activationBinding) => {
      const host = await start({ settings: { activationBinding } })
      const takeOvers: unknown[] = []
      host.auth.events.on('account.taken_over', (payload) => takeOvers.push(payload))
      for (const route of ['/activate', '/activate/:token']) {
        const { email, authenticator, link } = await newcomer(host)
        const { id } = await userOf(host, email)
        const clicked = await post(host, route.replace(':token', link), route === '/activate' ? { token: link } : {})
        expect([clicked.status, clicked.body.user_id, clicked.body.password_required]).toEqual([200, id, true])
        expect(takeOvers.at(-1)).toEqual({ userId: id })
        expect(await passkeysOf(host, id)).toEqual([])
        expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
        const mail = await host.mails.next({ kind: 'notice', to: email })
        expect([mail.subject, mail.text]).toEqual(['Your account was secured', expect.stringContaining('all passkeys')])
        // She adds her own passkey, which gets another user handle than his.
        const hers = newAuthenticator()
        const token = clicked.body.access_token
        const options = await registrationOptions(host, { token })
        expect((await register(host, { token }, hers)).status).toBe(201)
        expect((await logIn(host, hers)).body.user_id).toBe(id)
        expect(options.user.id).toHaveLength(43)
      }
    },
  )

  test('neither a resent link nor a link after "I forgot my password" is evidence', async () => {
    const host = await start({ settings: { activationBinding: 'lenient' } })
    for (const path of ['/activation/request', '/password-reset/request']) {
      const { email, authenticator } = await newcomer(host)
      await post(host, path, { email })
      const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      expect((await activate(host, link)).body.password_required).toBe(true)
      expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
    }
  })

  test('a passkey on a pending account whose address counts as verified needs evidence too', async () => {
    const host = await start()
    const { email, authenticator, link } = await newcomer(host)
    const at = dialectOf(host.knex).instantToColumn(host.clock.now())
    await host.knex('auth_users').where({ email }).update({ email_verified_at: at })
    expect((await activate(host, link)).status).toBe(200)
    expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
  })

  test('the signup_token of a taken address, and of another sign-up, is no evidence', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const [victim, other] = [await newcomer(host), await newcomer(host)]
    const taken = await signUp(host, await signupBody(host, owner.email, newAuthenticator()))
    const again = await newcomer(host)
    for (const token of [taken.body.signup_token, other.answer.body.signup_token]) {
      const clicked = await activate(host, (await newcomer(host)).link, { signup_token: token })
      expect([clicked.status, clicked.body.password_required]).toEqual([200, true])
    }
    expect((await activate(host, victim.link, { signup_token: victim.answer.body.signup_token })).body.password_required).toBe(undefined)
    expect((await activate(host, again.link, {}, again.browser)).body.password_required).toBe(undefined)
  })

  test('one passkey, for a taken and for a free address: equal answers', async () => {
    const host = await start()
    const [owner, hand] = [await signedIn(host), handMade()]
    const answers = []
    for (const email of [newAddress(), owner.email, newAddress(), owner.email])
      answers.push(shapeOf(await signUp(host, await signupBody(host, email, hand))))
    expect(answers[0]?.status).toBe(201)
    for (const answer of answers) expect(answer).toEqual(answers[0])
    // Of an account: 422 for every address.
    const known = handMade()
    const begun = await host.auth.service.passkeyRegistrationOptions({ userId: owner.userId })
    await host.auth.service.registerPasskey({ userId: owner.userId, credential: known.create(begun.options), challenge: begun.challenge })
    for (const email of [newAddress(), owner.email])
      expect(codeOf(await signUp(host, await signupBody(host, email, known)))).toEqual(invalid)
  })

  test('one body twice, for a taken and for a free address: equal answers, one after the other and at once', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const pendingOwner = await newcomer(host)
    for (const email of [newAddress(), owner.email, pendingOwner.email]) {
      const body = await signupBody(host, email, newAuthenticator())
      expect((await signUp(host, body)).status).toBe(201)
      expect(codeOf(await signUp(host, body))).toEqual(invalid)
    }
    for (const email of [newAddress(), owner.email, pendingOwner.email]) {
      const body = await signupBody(host, email, newAuthenticator())
      const answers = await Promise.all([1, 2, 3, 4].map(() => signUp(host, body)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422, 422])
    }
  })

  test.each(['lenient', 'strict'] as const)(
    'a mailed code is no evidence either: it takes over, but with the request_token of the sign-up or with the passkey; %s',
    async (activationBinding) => {
      const host = await start({ settings: { activationBinding, mailedCodes: 'both', publicUrl: 'https://app.example.test' } })
      const foreign = (await passkeyOwner(host)).authenticator
      const resent = async (email: string) => {
        const { request_token } = (await post(host, '/activation/request', { email })).body
        return { request_token, code: (await host.mails.next({ kind: 'activation', to: email })).code }
      }

      const own = newAddress()
      const authenticator = newAuthenticator()
      const { request_token } = (await signUp(host, await signupBody(host, own, authenticator))).body
      const { code } = await host.mails.next({ kind: 'activation', to: own })
      const kept = await post(host, '/activate', { code, request_token })
      expect([kept.status, kept.body.password_required, (await logIn(host, authenticator)).status]).toEqual([200, undefined, 200])

      const elsewhere = await newcomer(host)
      const proof = await resent(elsewhere.email)
      expect(codeOf(await post(host, '/activate', { ...proof, ...(await shownPasskey(host, foreign)) }))).toEqual(rejected)
      const shown = await post(host, '/activate', { ...proof, ...(await shownPasskey(host, elsewhere.authenticator)) })
      expect([shown.status, shown.body.password_required, (await logIn(host, elsewhere.authenticator)).status]).toEqual([
        200,
        undefined,
        200,
      ])

      const victim = await newcomer(host)
      const taken = await post(host, '/activate', await resent(victim.email))
      expect([taken.status, taken.body.password_required]).toEqual([200, true])
      expect(codeOf(await logIn(host, victim.authenticator))).toEqual(rejected)
    },
  )

  test('a sign-up passkey without UP or UV, of another origin, RP id, type or frame, or damaged: 422; nothing stored, nothing mailed', async () => {
    const host = await start()
    const email = newAddress()
    const before = await rows(host)
    const hand = handMade()
    for (const [what, damage] of Object.entries(forgedRegistrations)) {
      const options = await signupOptions(host, email)
      const body = { email, credential: hand.create(options, damage), challenge_token: options.challenge_token }
      expect([what, ...codeOf(await signUp(host, body))]).toEqual([what, ...invalid])
    }
    expect(await rows(host)).toEqual(before)
    expect(mailsTo(host, email)).toEqual([])
  })

  test('a sign-up passkey for another address, of another ceremony, too late, or without its token: 422; nothing stored, nothing mailed', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const [email, other] = [newAddress(), newAddress()]
    await settled(host)
    const [before, mails] = [await rows(host), host.mails.mails.length]
    const { challenge_token, ...body } = await signupBody(host, email, newAuthenticator())
    for (const foreign of [other, owner.email])
      expect(codeOf(await signUp(host, { ...body, challenge_token, email: foreign }))).toEqual(invalid)
    expect((await signUp(host, body)).status).toBe(422)
    expect(codeOf(await signUp(host, { ...body, challenge_token: '' }))).toEqual(invalid)
    const registering = await registrationOptions(host, owner)
    const made = { credential: newAuthenticator().create(registering), challenge_token: registering.challenge_token }
    expect(codeOf(await signUp(host, { email, ...made }))).toEqual(invalid)
    // And the other way round: a token of a sign-up adds no passkey to an account.
    const begun = await signupBody(host, owner.email, newAuthenticator())
    const added = await post(host, '/passkeys/register', begun, { Authorization: `Bearer ${owner.token}` })
    expect(codeOf(added)).toEqual(invalid)
    host.clock.advance(301)
    expect(codeOf(await signUp(host, { ...body, challenge_token }))).toEqual(invalid)
    expect(await rows(host)).toEqual(before)
    expect(host.mails.mails).toHaveLength(mails)
  })

  test('ten activations at once: one 200, one passkey', async () => {
    const host = await start()
    const racers: Record<string, (one: Awaited<ReturnType<typeof newcomer>>) => Promise<[object, Browser]>> = {
      'the browser': async ({ browser }) => [{}, browser],
      'one proof': async () => [{}, host.browser()],
      'a proof each': async ({ authenticator }) => [await shownPasskey(host, authenticator), host.browser()],
    }
    for (const [what, racer] of Object.entries(racers)) {
      const one = await newcomer(host)
      const shared = what === 'one proof' ? await shownPasskey(host, one.authenticator) : {}
      const ways = await Promise.all(Array.from({ length: 10 }, () => racer(one)))
      const answers = await Promise.all(ways.map(([body, browser]) => activate(host, one.link, { ...shared, ...body }, browser)))
      expect([what, answers.filter(({ status }) => status === 200).length]).toEqual([what, 1])
      for (const answer of answers.filter(({ status }) => status !== 200)) expect([401]).toContain(answer.status)
      expect(await passkeysOf(host, (await userOf(host, one.email)).id)).toHaveLength(1)
      expect((await logIn(host, one.authenticator)).status).toBe(200)
    }
  })

  test('two sign-ups with one passkey, activated at once: both are active, and one has it', async () => {
    const host = await start()
    for (let round = 0; round < 3; round += 1) {
      const hand = handMade()
      const signedUp = []
      for (const email of [newAddress(), newAddress()]) {
        const browser = host.browser()
        await signUp(host, await signupBody(host, email, hand), browser)
        signedUp.push({ email, browser, link: tokenOf(await host.mails.next({ kind: 'activation', to: email })) })
      }
      const answers = await Promise.all(signedUp.map(({ link, browser }) => activate(host, link, {}, browser)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      const ids = await Promise.all(signedUp.map(async ({ email }) => (await userOf(host, email)).id))
      expect(await host.knex('auth_passkeys').whereIn('user_id', ids)).toHaveLength(1)
    }
  })

  test('it costs one read and one insert more than a sign-up by password', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const statementsOf = async (deed: () => PromiseLike<{ status: number }>) => {
      await settled(host)
      const queries = recordQueries(host.knex)
      expect((await deed()).status).toBe(201)
      await settled(host)
      return queries.stop()
    }
    for (const address of [newAddress, () => owner.email]) {
      const [one, other] = [address(), address()]
      const body = await signupBody(host, other, newAuthenticator())
      const byPassword = await statementsOf(() => post(host, '/signup', { email: one, password }))
      const byPasskey = await statementsOf(() => signUp(host, body))
      expect(byPasskey.length - byPassword.length, byPasskey.join('\n')).toBe(more)
    }
  })
})

describe.each(await databases())('a sign-up with a passkey whose fields the database refuses, on $name', (database) => {
  const { start, opened } = onSignups(database)
  beforeAll(async () => {
    await createMembers(opened().knex)
    await opened().knex.schema.alterTable('members', (table) => table.unique(['phone']))
  })

  test('one body twice, for a taken and for a free address: equal answers, although the free one leaves no account', async () => {
    const schema = Joi.object({ firstName: Joi.string().required(), phone: Joi.string(), wantsNews: Joi.boolean() })
    const host = await start({ options: memberOptions(opened().knex, { signup: { schema } }) })
    const [taken, free] = [newAddress(), newAddress()]
    const fields = { firstName: 'Ana', phone: '+55 11 5555' }
    expect((await signUp(host, await signupBody(host, taken, newAuthenticator(), fields))).status).toBe(201)
    for (const email of [taken, free]) {
      const body = await signupBody(host, email, newAuthenticator(), fields)
      expect((await signUp(host, body)).status).toBe(201)
      expect(codeOf(await signUp(host, body))).toEqual(invalid)
    }
    expect(await host.knex('members').where({ email: free })).toEqual([])
  })
})
