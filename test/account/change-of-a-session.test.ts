import { describe, expect, test } from 'vitest'
import { type AuthStore, createKnexStore } from '../../src'
import {
  bearerOf,
  type LocalHost,
  type LocalMember,
  newAddress,
  onLocal,
  openAs,
  password,
  post,
  resetLink,
  signedIn,
  userOf,
} from '../local/people'
import { outcome } from '../mfa/people'
import { userById } from '../social/accounts-at-hand'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

/** A change of address that the session of `person` requested. */
async function asked(host: LocalHost, person: Pick<LocalMember, 'token'>) {
  const to = newAddress()
  await post(host, '/email-change/request', { new_email: to }, bearerOf(person)).expect(202)
  const mail = await host.mails.next({ kind: 'email_change', to })
  return { to, token: tokenOf(mail) }
}

const confirm = (host: LocalHost, body: object, headers: Record<string, string> = {}) => post(host, '/email-change/confirm', body, headers)
const addressOf = async (host: LocalHost, { userId }: LocalMember) => (await userById(host.knex, userId)).email

describe.each(await databases())('a change of address belongs to the session that asked (25.3.1), on $name', (database) => {
  const { start } = onLocal(database)

  test('the session that asked redeems the link without the password (25.3.1)', async () => {
    const host = await start()
    const person = await signedIn(host)
    const { token, to } = await asked(host, person)
    expect(outcome(await confirm(host, { token }, bearerOf(person)))).toBe(200)
    expect(await addressOf(host, person)).toBe(to)
  })

  test('another session of the account is 401 UNAUTHORIZED, and the link stays valid for the password (25.3.1)', async () => {
    const host = await start()
    const person = await signedIn(host)
    const other = await openAs(host, person.userId)
    const { token, to } = await asked(host, person)
    const byOther = [
      await confirm(host, { token }, bearerOf(other)),
      await confirm(host, { token, refresh_token: other.refreshToken }),
      await confirm(host, { token, password: 'not this one' }, bearerOf(other)),
      await confirm(host, { token }),
    ]
    expect(byOther.map(outcome)).toEqual(Array(4).fill('UNAUTHORIZED'))
    expect(await addressOf(host, person)).toBe(person.email)
    expect(outcome(await confirm(host, { token, password }, bearerOf(other)))).toBe(200)
    expect(await addressOf(host, person)).toBe(to)
  })

  const endings: Readonly<Record<string, (host: LocalHost, person: LocalMember) => Promise<unknown>>> = {
    'a logout': (host, { refreshToken }) => post(host, '/logout', { refresh_token: refreshToken }).expect(204),
    async 'its removal from the list'(host, person) {
      const other = await openAs(host, person.userId)
      const { body } = await host.browser().get(`${host.prefix}/sessions`).set(bearerOf(person))
      const own = body.find((session: { is_current: boolean }) => session.is_current)
      await host.browser().delete(`${host.prefix}/sessions/${own.id}`).set(bearerOf(other)).expect(204)
    },
    'the limit of sessions': async (host, { userId }) => {
      for (let count = 0; count < 2; count++) {
        host.clock.advance(61)
        await openAs(host, userId)
      }
    },
    'its lifetime': async (host) => host.clock.advance(1_801),
    'the removal of its row': (host, { userId }) => host.knex('auth_sessions').where({ user_id: userId }).delete(),
    async 'a reset'(host, { email }) {
      await post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: password })
    },
  }

  test.each(Object.entries(endings))(
    'after %s of the session that asked, the link is 401 INVALID_TOKEN for everybody, with the password too (25.3.1)',
    async (_name, end) => {
      const settings = { maxSessionsPerUser: 2, refreshTokenTtlSeconds: 1_800, emailChangeTtlSeconds: 7_200 }
      const host = await start({ settings })
      const person = await signedIn(host)
      const { token } = await asked(host, person)
      await end(host, person)
      const another = await openAs(host, person.userId)
      const answers = [
        await confirm(host, { token, password }),
        await confirm(host, { token, password: 'not this one' }),
        await confirm(host, { token }, bearerOf(another)),
        await confirm(host, { token, password }, bearerOf(another)),
      ]
      expect(answers.map(outcome)).toEqual(Array(4).fill('INVALID_TOKEN'))
      await expect(host.auth.service.changeEmail(token)).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
      expect(await addressOf(host, person)).toBe(person.email)
    },
  )

  test('the transaction decides on the locked session: a session that ends after the check moves no address (25.3.1)', async () => {
    const before = { unit: null as null | (() => Promise<unknown>) }
    const real = createKnexStore({ knex: (await start()).knex })
    const transaction: AuthStore['transaction'] = async (work, options) => {
      const end = before.unit
      before.unit = null
      await end?.()
      return real.transaction(work, options)
    }
    const host = await start({ options: { store: { ...real, transaction } } })
    const person = await signedIn(host)
    const { token } = await asked(host, person)
    for (const [body, headers] of [
      [{ token, password }, {}],
      [{ token }, bearerOf(person)],
    ] as const) {
      const revoked = () => host.knex('auth_sessions').where({ user_id: person.userId })
      const instant = database.name === 'sqlite' ? host.clock.now().getTime() : host.clock.now()
      before.unit = () => revoked().update({ revoked_at: instant })
      expect(outcome(await confirm(host, body, headers))).toBe('INVALID_TOKEN')
      expect(before.unit).toBeNull()
      await revoked().update({ revoked_at: null })
    }
    expect(await addressOf(host, person)).toBe(person.email)
    expect(outcome(await confirm(host, { token, password }))).toBe(200)
  })
})

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('the link of a change of address', () => {
  const { start } = onLocal(sqlite)
  const pages = { backendLinks: true, emailChangeUrlTemplate: null, publicUrl: 'https://app.example.test', loginUrl: '/sign-in' }

  test('mail and page name the new address, in both languages (25.3.1)', async () => {
    const host = await start({ settings: pages })
    for (const lang of ['en-US', 'pt-BR']) {
      const person = await signedIn(host)
      const to = newAddress()
      const ask = { ...bearerOf(person), 'Accept-Language': lang }
      await post(host, '/email-change/request', { new_email: to }, ask).expect(202)
      const mail = await host.mails.next({ kind: 'email_change', to })
      expect([mail.locale, mail.text.includes(to), mail.html.includes(to)]).toEqual([lang, true, true])
      const page = await host
        .browser()
        .get(new URL(String(mail.url)).pathname)
        .set({ 'Accept-Language': lang })
      expect([page.status, page.text.includes(to)]).toEqual([200, true])
    }
  })

  async function signedInBrowser(host: LocalHost): Promise<{ browser: Browser; person: LocalMember }> {
    const person = await signedIn(host)
    const browser = host.browser()
    const { status } = await browser.post(`${host.prefix}/login`).send({ email: person.email, password })
    expect(status).toBe(200)
    return { browser, person }
  }

  async function askedBy(host: LocalHost, browser: Browser) {
    const to = newAddress()
    const { status } = await browser.post(`${host.prefix}/email-change/request`).send({ new_email: to })
    expect(status).toBe(202)
    return { to, path: new URL(String((await host.mails.next({ kind: 'email_change', to })).url)).pathname }
  }

  test.each(['cookie', 'session'] as const)(
    'with %s delivery, the page of a finished change has a sign-in link for a person who is signed out, and none for one who is signed in (25.3.1)',
    async (tokenDelivery) => {
      const host = await start({ settings: { ...pages, tokenDelivery } })
      const { browser, person } = await signedInBrowser(host)
      const mine = await askedBy(host, browser)
      const finished = await browser.post(mine.path).type('form').send({})
      expect([finished.status, finished.text.includes(mine.to), finished.text.includes('/sign-in')]).toEqual([200, true, false])
      expect(await addressOf(host, person)).toBe(mine.to)

      await browser.post(`${host.prefix}/login`).send({ email: mine.to, password })
      const again = await askedBy(host, browser)
      const elsewhere = await host.browser().post(again.path).type('form').send({ password })
      expect([elsewhere.status, elsewhere.text.includes(again.to), elsewhere.text.includes('/sign-in')]).toEqual([200, true, true])
    },
  )

  test('cookies in a form of another site do not count as the session that asked (25.3.1)', async () => {
    const host = await start({ settings: { ...pages, tokenDelivery: 'cookie' } })
    const { browser, person } = await signedInBrowser(host)
    const { path } = await askedBy(host, browser)
    const foreign = await browser.post(path).set({ Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }).type('form').send({})
    expect(foreign.status).toBe(400)
    expect(await addressOf(host, person)).toBe(person.email)
  })

  test('a person with another session of the account is asked for the password, and a signed-out browser too (25.3.1)', async () => {
    const host = await start({ settings: { ...pages, tokenDelivery: 'cookie' } })
    const { browser, person } = await signedInBrowser(host)
    const { path } = await askedBy(host, browser)
    const second = host.browser()
    await second.post(`${host.prefix}/login`).send({ email: person.email, password })
    for (const [who, isAsked] of [
      [browser, false],
      [second, true],
      [host.browser(), true],
    ] as const)
      expect((await who.get(path)).text.includes('type="password"')).toBe(isAsked)
    expect((await second.post(path).type('form').send({})).status).toBe(400)
    expect(await addressOf(host, person)).toBe(person.email)
  })

  test('without a session table, any access token of the account or its password redeems the link, as before (25.3.1)', async () => {
    const knex = (await start()).knex
    const { sessions: _none, ...store } = createKnexStore({ knex })
    const host = await start({ options: { store } })
    const person = await signedIn(host)
    host.clock.advance(2)
    const other = await openAs(host, person.userId)
    const { token, to } = await asked(host, person)
    expect(outcome(await confirm(host, { token }))).toBe('UNAUTHORIZED')
    expect(outcome(await confirm(host, { token }, bearerOf(other)))).toBe(200)
    expect(await addressOf(host, person)).toBe(to)
    expect((await userOf(host, to)).id).toBe(person.userId)
  })
})
