import { describe, expect, test } from 'vitest'
import { errors } from '../../src'
import { type LocalHost, mailsTo, newAddress, onLocal, otherPassword, password, post, settled, signedIn, userOf } from '../local/people'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { tokenOf } from '../support/mailbox'

const unhurried = { login: false, links: false, mail: false, signup: false, routes: false } as const

describe.each(await databases())('a repeated sign-up for an account that nobody has activated, on $name', (database) => {
  const { start } = onLocal(database)

  const signUp = async (host: LocalHost, email: string, chosen = password, more: object = {}) => {
    const answer = await post(host, '/signup', { email, password: chosen, ...more })
    const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    return { answer, link, signupToken: String(answer.body.signup_token) }
  }
  const hasDuplicateSignups = async (host: LocalHost, email: string) =>
    (await host.knex('auth_user_tokens').where({ user_id: (await userOf(host, email)).id, purpose: 'CONTESTED' })).length > 0

  test('with the same password changes nothing, runs onSignup no second time, emits no event, and mails one more link (25.4.6)', async () => {
    const seen: unknown[] = []
    const host = await start({ options: { throttle: unhurried, signup: { onSignup: (user) => void seen.push(user.id) } } })
    host.auth.events.on('signup', ({ userId }) => void seen.push(userId))
    const email = newAddress()
    const first = await signUp(host, email, password, { name: 'Ana' })
    const before = await userOf(host, email)

    const second = await signUp(host, email, password, { name: 'Somebody Else' })

    expect([second.answer.status, Object.keys(second.answer.body)]).toEqual([201, Object.keys(first.answer.body)])
    expect(second.answer.body.user_id).not.toBe(first.answer.body.user_id)
    expect(await userOf(host, email)).toEqual(before)
    expect(seen).toEqual([before.id, before.id])
    expect(await hasDuplicateSignups(host, email)).toBe(false)
    expect((await post(host, '/activate', { token: first.link })).body.password_required).toBeUndefined()
    expect((await post(host, '/login', { email, password })).status).toBe(200)
  })

  test.each([
    ['older link with the newer token', 0, 1],
    ['newer link with the older token', 1, 0],
  ] as const)(
    'with the same password makes one sign-up: the %s keeps the password, and another token does not (25.4.6)',
    async (_title, link, token) => {
      const host = await start({ settings: { activationBinding: 'strict', singleActiveToken: true }, options: { throttle: unhurried } })
      const signups = async (email: string) => [await signUp(host, email), await signUp(host, email)]
      const email = newAddress()
      const [mine, others] = [await signups(email), await signups(newAddress())]

      const { body } = await post(host, '/activate', { token: mine[link]?.link, signup_token: mine[token]?.signupToken })
      const { body: taken } = await post(host, '/activate', { token: others[link]?.link, signup_token: mine[token]?.signupToken })

      expect([body.password_required, taken.password_required]).toEqual([undefined, true])
    },
  )

  test('with the same password past the mail limit mails nothing, and its token still counts for the link that was mailed (25.4.6)', async () => {
    const host = await start({
      settings: { activationBinding: 'strict' },
      options: { throttle: { ...unhurried, mail: { links: [{ attempts: 1, windowSeconds: 3_600 }] } } },
    })
    const email = newAddress()
    const { link } = await signUp(host, email)

    const again = await post(host, '/signup', { email, password })

    await settled(host)
    expect([again.status, mailsTo(host, email)]).toEqual([201, ['activation']])
    expect(await hasDuplicateSignups(host, email)).toBe(false)
    const { body } = await post(host, '/activate', { token: link, signup_token: again.body.signup_token })
    expect(body.password_required).toBeUndefined()
  })

  test('never gives two equal tokens, so that nobody learns from them that the address was free (25.4.6)', async () => {
    const host = await start({ options: { throttle: unhurried } })
    const [waiting, { email: taken }] = [newAddress(), await signedIn(host)]
    const tokens: unknown[] = []
    for (const email of [waiting, waiting, taken, taken]) tokens.push((await post(host, '/signup', { email, password })).body.signup_token)
    expect(new Set(tokens).size).toBe(4)
    expect(tokens).toEqual(Array(4).fill(expect.stringMatching(/^[\w-]{43}$/)))
  })

  test('with another password contests the account: the link alone is then a take-over (25.4.6)', async () => {
    const host = await start({ options: { throttle: unhurried } })
    const email = newAddress()
    const first = await signUp(host, email)
    const second = await signUp(host, email, otherPassword)
    expect((await post(host, '/activate', { token: first.link })).body.code).toBe('INVALID_TOKEN')
    expect((await post(host, '/activate', { token: second.link })).body.password_required).toBe(true)
  })

  test('costs one hash and one verification, like a sign-up with a free and with a taken address (25.4.6)', async () => {
    const work: string[] = []
    const hasher = fastHasher()
    const passwordHasher = {
      ...hasher,
      hash(chosen: string) {
        work.push('hash')
        return hasher.hash(chosen)
      },
      verify(hash: string, chosen: string) {
        work.push('verify')
        return hasher.verify(hash, chosen)
      },
    }
    const host = await start({ options: { throttle: unhurried, passwordHasher } })
    const [waiting, { email: taken }] = [newAddress(), await signedIn(host)]
    const cases = [
      [newAddress(), password],
      [waiting, password],
      [waiting, password],
      [waiting, otherPassword],
      [taken, password],
      [taken, otherPassword],
    ] as const
    for (const [email, chosen] of cases) {
      work.length = 0
      expect((await post(host, '/signup', { email, password: chosen })).status).toBe(201)
      expect(work).toEqual(['hash', 'verify'])
    }
  })

  test('with the same password contests nothing either where the answer calls the address taken (25.4.6)', async () => {
    const host = await start({ settings: { revealTakenEmail: true }, options: { throttle: unhurried } })
    const email = newAddress()
    await signUp(host, email)
    expect((await post(host, '/signup', { email, password })).status).toBe(409)
    await expect(host.auth.service.signUp({ email, password })).rejects.toBeInstanceOf(errors.EmailTakenError)
    expect(await hasDuplicateSignups(host, email)).toBe(false)
    await expect(host.auth.service.signUp({ email, password: otherPassword })).rejects.toBeInstanceOf(errors.EmailTakenError)
    expect(await hasDuplicateSignups(host, email)).toBe(true)
  })
})
