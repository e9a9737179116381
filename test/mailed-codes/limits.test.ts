import { describe, expect, test } from 'vitest'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, post, signedIn } from '../local/people'
import { outcome } from '../mfa/people'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { type Asked, byCode, byLink, onCodes, redeem, send, wrong } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const settings = { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } as const
const unhurried = { links: false, mail: false, routes: false } as const

describe('the limit of wrong codes of an address (30.1.10)', () => {
  const { start } = onCodes(sqlite)
  const open = (more: object = {}, codes?: object | false) =>
    start({
      settings: { ...settings, ...more },
      options: { throttle: { ...unhurried, ...(codes !== undefined && { codes: codes as false }) } },
    })

  interface Person {
    email: string
    userId: string
    token: string
  }
  const askReset = (host: LocalHost, { email, userId }: Person, browser?: Browser) =>
    send(host, 'PASSWORD_RESET', { path: '/password-reset/request', body: { email }, email, userId, headers: {} }, browser)
  const askVerification = (host: LocalHost, person: Person) =>
    send(host, 'EMAIL_VERIFICATION', { ...person, path: '/email-verify/request', body: {}, headers: bearerOf(person) })

  async function guess(host: LocalHost, asked: Asked, times = 5) {
    for (let by = 1; by <= times; by++)
      expect(outcome(await redeem(host, asked, asked.purpose, { ...byCode(asked), code: wrong(asked, by) }))).toBe('INVALID_TOKEN')
  }
  async function guessLogin(host: LocalHost, { email }: Person) {
    const { body } = await post(host, '/email-login/request', { email })
    const { code = '' } = await host.mails.next({ kind: 'email_login', to: email })
    for (let by = 1; by <= 5; by++)
      await post(host, '/email-login/confirm', { code: wrong({ code }, by), request_token: body.request_token }).expect(401)
    return { code, request_token: body.request_token }
  }
  /** Twenty wrong codes, over three purposes. */
  async function exhaust(host: LocalHost, person: Person) {
    await guess(host, await askReset(host, person))
    await guess(host, await askVerification(host, person))
    await guessLogin(host, person)
    await guess(host, await askReset(host, person))
  }

  test('after twenty wrong codes over several purposes the next mails have a link alone, which works (30.5)', async () => {
    const host = await open()
    const person = await signedIn(host, { emailVerifiedAt: null })
    const before = await askVerification(host, person)
    await exhaust(host, person)
    const reset = await askReset(host, person)
    expect(reset.code).toBe('')
    await post(host, '/email-login/request', { email: person.email })
    const login = await host.mails.next({ kind: 'email_login', to: person.email })
    expect([login.code, login.url]).toEqual([undefined, expect.any(String)])
    expect(outcome(await redeem(host, before, 'EMAIL_VERIFICATION', byCode(before)))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, reset, 'PASSWORD_RESET', byLink(reset)))).toBe(200)
  })

  test('guessing over purposes: the codes of an address that are open at once share its twenty guesses, and then not even the right ones work', async () => {
    const host = await open({ singleActiveToken: false })
    const person = await signedIn(host, { emailVerifiedAt: null })
    const opened = [await askReset(host, person), await askVerification(host, person), await askReset(host, person)]
    const [held, login] = [
      [await askReset(host, person), await askVerification(host, person)],
      await post(host, '/email-login/request', person),
    ]
    const { code } = await host.mails.next({ kind: 'email_login', to: person.email })
    for (let round = 1; round <= 5; round++) for (const asked of opened) await guess(host, asked, 1)
    await guess(host, await askReset(host, person))
    for (const asked of held) expect(outcome(await redeem(host, asked, asked.purpose, byCode(asked)))).toBe('INVALID_TOKEN')
    await post(host, '/email-login/confirm', { code, request_token: login.body.request_token }).expect(401)
    for (const asked of held.reverse()) expect(outcome(await redeem(host, asked, asked.purpose, byLink(asked)))).toBe(200) // a reset ends all others
  })

  test('guessing over addresses: one client asks and guesses no more often than the limits of its routes say, whoever is asked for', async () => {
    const [links, routes] = [
      { attempts: 6, windowSeconds: 60 },
      { attempts: 12, windowSeconds: 60 },
    ]
    const host = await start({ options: { throttle: { links, routes, mail: false } } })
    const answers = { asked: [] as number[], guessed: [] as number[] }
    for (let count = 0; count < 10; count++) {
      const { email } = await signedIn(host)
      const { status, body } = await post(host, '/password-reset/request', { email })
      answers.asked.push(status)
      if (status !== 202) continue
      for (let tries = 0; tries < 5; tries++) {
        const guess = { code: String(10_000_000 + tries), request_token: body.request_token, new_password: otherPassword }
        answers.guessed.push((await post(host, '/password-reset/confirm', guess)).status)
      }
    }
    const times = (all: number[], status: number) => all.filter((one) => one === status).length
    expect([times(answers.asked, 202), times(answers.asked, 429)]).toEqual([6, 4])
    expect([times(answers.guessed, 401), times(answers.guessed, 429)]).toEqual([12, 18])
  })

  test('an open code of a limited address is 401, also the right one, and works again when the window ends', async () => {
    const host = await open({}, { attempts: 5, windowSeconds: 300 })
    const person = await signedIn(host)
    await guess(host, await askReset(host, person))
    expect((await askReset(host, person)).code).toBe('')
    host.clock.advance(300)
    const after = await askReset(host, person)
    expect(outcome(await redeem(host, after, 'PASSWORD_RESET', byCode(after)))).toBe(200)
  })

  test('a login of the account ends it at once', async () => {
    const host = await open()
    const person = await signedIn(host, { emailVerifiedAt: null })
    await exhaust(host, person)
    expect((await askReset(host, person)).code).toBe('')
    await post(host, '/login', { email: person.email, password }).expect(200)
    expect((await askReset(host, person)).code).toMatch(/^\d{8}$/)
  })

  test('right codes do not count', async () => {
    const host = await open({ singleActiveToken: false }, { attempts: 2, windowSeconds: 300 })
    const person = await signedIn(host)
    for (let count = 0; count < 3; count++) {
      const asked = await askReset(host, person)
      expect(outcome(await redeem(host, asked, 'PASSWORD_RESET', { ...byCode(asked), new_password: 'short' }))).toBe('VALIDATION_ERROR')
    }
    expect((await askReset(host, person)).code).toMatch(/^\d{8}$/)
  })

  test('other addresses are not limited, and false turns the limit off', async () => {
    const host = await open()
    const person = await signedIn(host, { emailVerifiedAt: null })
    await exhaust(host, person)
    expect((await askReset(host, await signedIn(host))).code).toMatch(/^\d{8}$/)
    const unlimited = await open({ realm: 'other' }, false)
    const other = await signedIn(unlimited, { emailVerifiedAt: null })
    await exhaust(unlimited, other)
    expect((await askReset(unlimited, other)).code).toMatch(/^\d{8}$/)
  })

  test('strangers cannot use up the limit of a known device, whose own wrong codes count for devices alone', async () => {
    const host = await open({ tokenDelivery: 'both' })
    const person = await signedIn(host, { emailVerifiedAt: null })
    const home = host.browser()
    await home.post(`${host.prefix}/cookie/login`).send({ email: person.email, password }).expect(200)
    await exhaust(host, person)
    expect((await askReset(host, person)).code).toBe('')
    const own = await askReset(host, person, home)
    expect(own.code).toMatch(/^\d{8}$/)
    for (let round = 0; round < 4; round++) await guess(host, await askReset(host, person, home))
    expect((await askReset(host, person, home)).code).toBe('')
  })

  test('a mail with a login code alone has no such limit, because it has no other way in', async () => {
    const host = await open({ emailLogin: 'code' }, { attempts: 5, windowSeconds: 300 })
    const person = await signedIn(host)
    await guess(host, await askReset(host, person))
    const { code, request_token } = await guessLogin(host, person)
    await post(host, '/email-login/confirm', { code, request_token }).expect(401) // five tries
    const { body } = await post(host, '/email-login/request', { email: person.email })
    const mail = await host.mails.next({ kind: 'email_login', to: person.email })
    await post(host, '/email-login/confirm', { code: mail.code, request_token: body.request_token }).expect(200)
  })

  test('without mailedCodes, login by email counts as before', async () => {
    const host = await open({ mailedCodes: 'off' }, { attempts: 1, windowSeconds: 300 })
    const person = await signedIn(host)
    await guessLogin(host, person)
    await post(host, '/email-login/request', { email: person.email })
    expect((await host.mails.next({ kind: 'email_login', to: person.email })).code).toMatch(/^\d{8}$/)
  })

  test('wrong codes for a new address count for that address', async () => {
    const host = await open({}, { attempts: 5, windowSeconds: 300 })
    const person = await signedIn(host)
    const email = newAddress()
    const request = { path: '/email-change/request', body: { new_email: email }, email, userId: person.userId, headers: bearerOf(person) }
    await guess(host, await send(host, 'EMAIL_CHANGE', request))
    expect((await send(host, 'EMAIL_CHANGE', request)).code).toBe('')
    expect((await askReset(host, person)).code).toMatch(/^\d{8}$/)
  })
})
