import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import type { AuthMail } from '../../src'
import { type LocalHost, settled } from '../local/people'
import { setCookies } from '../social/redirect-steps'
import { type Browser, setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { ask, confirm, newAddress, onEmailLogin, person, request } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onEmailLogin(sqlite)
const unhurried = { login: false, links: false, mail: false, routes: false } as const

const pageOn = { settings: { backendLinks: true, emailLoginUrlTemplate: null } } as const

/** Who is signed in in this browser; null: nobody. */
async function whoIs(browser: Browser): Promise<string | null> {
  const { status, body } = await browser.get('/auth/me')
  return status === 200 ? body.id : null
}

const click = (browser: Browser, token: string) =>
  browser.post(`/auth/email-login/${token}`).set('Origin', 'https://app.example.test').type('form').send({})

describe('attacks on login by email', () => {
  test('session fixation: a session that an attacker planted never becomes the owner’s, by link and by code', async () => {
    const host = await start({ options: { throttle: unhurried } })
    const [attacker, owner] = [await person(host), await person(host)]
    for (const by of ['token', 'code'] as const) {
      const planted = await confirm(host, { token: (await ask(host, attacker.email)).token })
      const cookie = `auth_session=${setCookieOf(planted, 'auth_session')?.value}`
      const browser = host.browser()
      browser.cookies.take({ 'set-cookie': [`${cookie}; Path=/`] }, { host: 'app.example.test', path: '/' })
      expect(await whoIs(browser)).toBe(attacker.id)
      const mail = await ask(host, owner.email, { browser })
      const login = await confirm(host, { [by]: mail[by] }, browser)

      expect([login.status, login.body.user_id, await whoIs(browser)]).toEqual([200, owner.id, owner.id])
      expect((await host.browser().get('/auth/me').set('Cookie', cookie)).status).toBe(401) // its session has ended
    }
  })

  test('a link that an attacker asked for and the owner clicks signs the owner’s browser in, and nobody else', async () => {
    const host = await start(pageOn)
    const owner = await person(host)
    const [hers, his] = [host.browser(), host.browser()]
    const { token, code } = await ask(host, owner.email, { browser: his, body: { return_to: '/transfer?to=him' } })

    const page = await hers.get(`/auth/email-login/${token}`)
    expect([page.status, page.text.includes(owner.email), page.text.includes('This was requested in another browser')]).toEqual([
      200,
      true,
      true,
    ])
    const clicked = await click(hers, token)
    expect([clicked.status, clicked.headers['location']]).toEqual([303, '/auth'])
    expect([await whoIs(hers), await whoIs(his)]).toEqual([owner.id, null])
    expect((await confirm(host, { code }, his)).status).toBe(401) // the link has spent it
    expect(await whoIs(his)).toBeNull()
  })

  test('a code relayed from another browser opens nothing, in the one that asked nothing and in the one that asked for another', async () => {
    const host = await start()
    const owner = await person(host)
    const [hers, his] = [host.browser(), host.browser()]
    const mine = await ask(host, owner.email, { browser: hers })
    expect((await confirm(host, { code: mine.code }, his)).status).toBe(401)
    await ask(host, owner.email, { browser: his })
    expect((await confirm(host, { code: mine.code }, his)).status).toBe(401)
    expect((await confirm(host, { code: mine.code, request_token: mine.requestToken }, his)).status).toBe(401) // only in delivery bearer
    expect(await whoIs(his)).toBeNull()
    expect((await confirm(host, { code: mine.code }, hers)).status).toBe(200)
  })

  test('a mail scanner: GET and HEAD of the link, and the code sent without the cookie, open and spend nothing', async () => {
    const host = await start(pageOn)
    const { email } = await person(host)
    const { browser, token, code } = await ask(host, email)
    const scanner = host.browser()
    for (let visit = 0; visit < 10; visit += 1) {
      expect((await scanner.get(`/auth/email-login/${token}`)).status).toBe(200)
      expect((await scanner.head(`/auth/email-login/${token}`)).status).toBe(200)
      expect((await confirm(host, { code }, scanner)).status).toBe(401)
    }
    expect(await whoIs(scanner)).toBeNull()
    expect((await confirm(host, { code }, browser)).status).toBe(200)
  })

  test('where codes alone are mailed, a scanner finds nothing to press: the mail has no link and the page is not there', async () => {
    const host = await start({ settings: { emailLogin: 'code', backendLinks: true, emailLoginUrlTemplate: null } })
    const { email } = await person(host)
    await request(host, email)
    const mail = await host.mails.next({ kind: 'email_login', to: email })
    expect([mail.url, /https?:/.test(mail.text + mail.html)]).toEqual([null, false])
    expect((await host.browser().get(`/auth/email-login/${'a'.repeat(43)}`)).status).toBe(404)
  })

  test('an address with and without an account: status, body, cookies and headers are the same, at the request and at the code', async () => {
    const host = await start({ options: { throttle: unhurried } })
    const known = await person(host)
    const answers = async (email: string) => {
      const browser = host.browser()
      const requested = await request(host, email, { browser })
      return [requested, await confirm(host, { code: '12345678' }, browser), await confirm(host, { code: 'no code' }, browser)].map(plain)
    }
    expect(await answers(newAddress())).toEqual(await answers(known.email))
  })

  test('at most five stay open for an address; the oldest ends, and never the one of a known device', async () => {
    const host = await start({ options: { throttle: unhurried } })
    const { email } = await person(host)
    const own = host.browser()
    await confirm(host, { token: (await ask(host, email, { browser: own })).token }, own)
    const known = await ask(host, email, { browser: own })
    const strangers: string[] = []
    for (let asked = 0; asked < 8; asked += 1) {
      host.clock.advance(1) // so that one is the oldest
      strangers.push((await ask(host, email)).token)
    }
    const open = await host.knex('auth_email_logins').where({ email, used_at: null })
    expect(open).toHaveLength(5)
    expect((await confirm(host, { token: strangers[0] })).status).toBe(401)
    expect((await confirm(host, { token: known.token })).status).toBe(200)
  })

  test('100 clients ask for an hour: the owner’s browser gets every mail it asks for, at once', async () => {
    const { host, knocking, owner } = await besieged()
    const own = host.browser()
    await confirm(host, { token: (await ask(host, owner.email, { browser: own })).token }, own)
    for (let minute = 0; minute < 60; minute += 1) {
      await knocking(owner.email)
      if (minute % 15 === 7) {
        const [mail, ...more] = await mailsOf(host, owner.email, async () => {
          expect([minute, (await request(host, owner.email, { browser: own })).status]).toEqual([minute, 202])
        })
        expect([minute, more]).toEqual([minute, []])
        expect([minute, (await confirm(host, { code: mail?.code }, own)).status]).toEqual([minute, 200])
      }
      host.clock.advance(60)
    }
  })

  test('without a known device the owner has five of the mails that 100 clients ask for in an hour, and each link signs in', async () => {
    const { host, knocking, owner } = await besieged()
    const entered: number[] = []
    for (let minute = 0; minute < 60; minute += 1) {
      const fresh = await mailsOf(host, owner.email, () => knocking(owner.email))
      for (const mail of fresh) {
        expect((await confirm(host, { token: tokenOf(mail) })).status).toBe(200)
        entered.push(minute)
      }
      host.clock.advance(60)
    }
    expect(entered.length).toBeGreaterThanOrEqual(5)
  })

  async function besieged() {
    const host = await start({ host: (app) => app.set('trust proxy', true) })
    const owner = await person(host)
    let asked = 0
    /** Five of the hundred a minute: each of them three times in the hour. */
    const knocking = async (email: string) => {
      for (let client = 0; client < 5; client += 1) {
        asked += 1
        const from = `203.0.113.${asked % 100}`
        await host.browser().post('/auth/email-login/request').set('X-Forwarded-For', from).send({ email })
      }
    }
    return { host, owner, knocking }
  }
})

/** The logins by email that were mailed to an address because of what happens here. */
async function mailsOf(host: LocalHost, email: string, happening: () => Promise<void>): Promise<AuthMail[]> {
  const before = host.mails.mails.length
  await happening()
  await settled(host)
  return host.mails.mails.slice(before).filter(({ kind, to }) => kind === 'email_login' && to === email)
}

/** What of an answer is to be the same for everybody. */
function plain(response: supertest.Response) {
  const { date: _date, etag: _etag, ...headers } = response.headers
  const cookies = setCookies(response).map((line) => line.replace(/^(email_login=)[^;]+/, '$1…').replace(/Expires=[^;]+/, 'Expires=…'))
  const body = { ...response.body, ...('request_token' in response.body && { request_token: '…' }) }
  return { status: response.status, body, headers: { ...headers, 'set-cookie': cookies } }
}
