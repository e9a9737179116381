import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { unusablePassword } from '../../src/passwords/verify-password'
import { bearerOf, type LocalHost, onLocal, otherPassword, password, post, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { member } from '../server-session/devices'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

const publicHost = 'app.example.test'

const deliveries = [
  { tokenDelivery: 'cookie', base: '', name: 'refresh_token' },
  { tokenDelivery: 'both', base: '/cookie', name: 'refresh_token' },
  { tokenDelivery: 'session', base: '', name: 'auth_session' },
] as const

for (const database of await databases()) {
  const { start: startOn } = onLocal(database)

  describe.each(deliveries)(
    `a session that survives a change, on ${database.name}, delivery $tokenDelivery`,
    ({ tokenDelivery, base, name }) => {
      const settings = { ...mfaSettings, tokenDelivery, refreshReuseGraceSeconds: tokenDelivery === 'session' ? 0 : 10 }
      const start = () => startOn({ settings, options: { throttle: { routes: false } } })
      const way = (path: string) => `/auth${base}${path}`

      type Person = { email: string; userId: string; code?: () => string }
      const logIn = async (browser: Browser, { email, code }: Person) => {
        const { body } = await browser.post(way('/login')).send({ email, password })
        if (code) await browser.post(way('/mfa/verify')).send({ mfa_token: body.mfa_token, code: code() })
      }

      const changes: Record<
        string,
        { person?: (host: LocalHost) => Promise<Person>; change: (browser: Browser, host: LocalHost, who: Person) => Promise<number> }
      > = {
        '/password-change': {
          change: async (browser) =>
            (await browser.post(way('/password-change')).send({ current_password: password, new_password: otherPassword })).status,
        },
        '/password-change/mfa': {
          person: async (host) => {
            const { email, userId, app } = await enrolled(host)
            return { email, userId, code: () => app.nextCode() }
          },
          change: async (browser, _host, { code }) =>
            (await browser.post(way('/password-change/mfa')).send({ code: code?.(), new_password: otherPassword })).status,
        },
        '/password/first': {
          change: async (browser, host, { userId }) => {
            await host.knex('auth_users').where({ id: userId }).update({ hashed_password: unusablePassword() })
            return (await browser.post(way('/password/first')).send({ new_password: otherPassword })).status
          },
        },
        '/email-change/confirm': {
          change: async (browser, host, { email }) => {
            const new_email = `moved-${email}`
            await browser.post('/auth/email-change/request').send({ new_email })
            const token = tokenOf(await host.mails.next({ kind: 'email_change', to: new_email }))
            const { status } = await browser.post(way('/email-change/confirm')).send({ token })
            return status === 200 ? 204 : status
          },
        },
        '/sessions/revoke-others': { change: async (browser) => (await browser.post(way('/sessions/revoke-others')).send({})).status },
      }

      test.each(Object.keys(changes))('gets a new cookie value at %s, and the old one is dead without grace (25.3.3)', async (path) => {
        const host = await start()
        const { person = member, change } = changes[path] ?? never()
        const who = await person(host)
        const browser = host.browser()
        await logIn(browser, who)
        const cookieValue = () => browser.cookies.kept().find(({ key }) => key === name)?.value
        const old = browser.cookies.header({ host: publicHost, path: way('/refresh') }) ?? ''
        const before = cookieValue()
        expect(await change(browser, host, who)).toBe(204)
        expect(cookieValue()).toEqual(expect.any(String))
        expect(cookieValue()).not.toBe(before)
        expect((await browser.get('/auth/sessions')).status).toBe(200)

        const reused: object[] = []
        host.auth.events.on('refresh.reused', (payload) => reused.push(payload))
        if (tokenDelivery === 'session') {
          expect((await host.browser().get('/auth/sessions').set('Cookie', old)).status).toBe(401)
          expect((await browser.get('/auth/sessions')).status).toBe(200)
          return
        }
        const { status, body } = await host.browser().post(way('/refresh')).set('Cookie', old).send({})
        expect([status, body.code, reused.length, (await browser.get('/auth/sessions')).status]).toEqual([401, 'INVALID_TOKEN', 1, 401])
      })

      test('a change of the password keeps its own browser a known device (25.4.2)', async () => {
        const host = await start()
        const who = await member(host)
        const browser = host.browser()
        await logIn(browser, who)
        const change = { current_password: password, new_password: otherPassword }
        expect((await browser.post(way('/password-change')).send(change)).status).toBe(204)
        for (let count = 0; count < 6; count++) await post(host, '/login', { email: who.email, password: 'wrong' })
        const known = await browser.post(way('/login')).send({ email: who.email, password: otherPassword })
        const stranger = await host.browser().post(way('/login')).send({ email: who.email, password: otherPassword })
        expect([known.status, stranger.status]).toEqual([200, 429])
      })
    },
  )

  test(`a request that was let in by an old session cookie, and whose body comes late, gets no new value, on ${database.name} (25.3.3)`, async () => {
    const host = await startOn({ settings: { tokenDelivery: 'session' }, options: { throttle: { routes: false } } })
    const who = await member(host)
    const browser = host.browser()
    await browser.post('/auth/login').send({ email: who.email, password })
    const copy = browser.cookies.header({ host: publicHost, path: '/' }) ?? ''
    const server = host.app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const headers = { Cookie: copy, 'Content-Type': 'application/json', 'Content-Length': '2' }
      const late = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/auth/sessions/revoke-others', headers })
      const answered = once(late, 'response')
      late.write('{')
      await new Promise((resolve) => setTimeout(resolve, 200)) // the guard has let the request in by now
      expect((await browser.post('/auth/sessions/revoke-others').send({})).status).toBe(204)
      late.end('}')
      const [response] = (await answered) as [IncomingMessage]
      response.resume()
      expect([response.statusCode, String(response.headers['set-cookie'] ?? '')]).toEqual([
        401,
        expect.not.stringMatching(/auth_session=[^;]/),
      ])
      expect((await browser.get('/auth/sessions')).status).toBe(200)
    } finally {
      server.close()
    }
  })

  test(`an address that is changed by the password alone renews no session, on ${database.name} (25.3.3)`, async () => {
    const host = await startOn({ settings: { tokenDelivery: 'cookie' }, options: { throttle: { routes: false } } })
    const { email } = await member(host)
    const [asking, other] = [host.browser(), host.browser()]
    for (const browser of [asking, other]) await browser.post('/auth/login').send({ email, password })
    const new_email = `moved-${email}`
    await asking.post('/auth/email-change/request').send({ new_email })
    const token = tokenOf(await host.mails.next({ kind: 'email_change', to: new_email }))
    const { status, headers } = await other.post('/auth/email-change/confirm').send({ token, password })
    expect([status, String(headers['set-cookie'] ?? '')]).toEqual([200, expect.not.stringContaining('refresh_token')])
  })

  test(`a client with its tokens in the body keeps its refresh token at a change, on ${database.name} (25.3.3)`, async () => {
    const host = await startOn({ options: { throttle: { routes: false } } })
    const owner = await signedIn(host)
    const change = { current_password: password, new_password: otherPassword, refresh_token: owner.refreshToken }
    expect((await post(host, '/password-change', change, bearerOf(owner))).status).toBe(204)
    expect((await post(host, '/refresh', { refresh_token: owner.refreshToken })).status).toBe(200)
  })
}

function never(): never {
  throw new Error('there is one')
}
