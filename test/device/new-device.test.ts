import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { ask, loginTemplate } from '../email-login/people'
import {
  type LocalHost,
  type LocalOptions,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  signedIn,
} from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { loginOptions, passkeyOwner, passkeySettings } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { type Browser, setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'

const unhurried = { login: false, signup: false, mfa: false, links: false, mail: false, routes: false } as const
const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** How each delivery's lines begin that set cookies. */
const deliveries = { cookie: '', both: '/cookie', session: '' } as const
type Delivery = keyof typeof deliveries

interface Member {
  email: string
  userId: string
  /** Signs in once more, in this browser. */
  enter(browser: Browser): Promise<supertest.Response>
}

type Door = (host: LocalHost, base: string) => Promise<Member>

/** An active account with a password and a proven address, in which nobody signed in by a request so far. */
async function member(host: LocalHost) {
  const { email, userId } = await signedIn(host, { emailVerifiedAt: new Date(0) })
  return { email, userId }
}

const send = (browser: Browser, path: string, body: object) => browser.post(`/auth${path}`).set('User-Agent', firefox).send(body)

const doors: Readonly<Record<string, Door>> = {
  async password(host, base) {
    const { email, userId } = await member(host)
    return { email, userId, enter: (browser) => send(browser, `${base}/login`, { email, password }) }
  },
  async 'a link by email'(host, base) {
    const { email, userId } = await member(host)
    return {
      email,
      userId,
      enter: async (browser) => send(browser, `${base}/email-login/confirm`, { token: (await ask(host, email)).token }),
    }
  },
  async 'a code by email'(host, base) {
    const { email, userId } = await member(host)
    const enter = async (browser: Browser) => {
      await send(browser, `${base}/email-login/request`, { email })
      const { code } = await host.mails.next({ kind: 'email_login', to: email })
      return send(browser, `${base}/email-login/confirm`, { code })
    }
    return { email, userId, enter }
  },
  async 'a provider'(host) {
    const { email, userId } = await member(host)
    const profile = newPerson()
    await addIdentity(host.knex, userId, { subject: String(profile['sub']) })
    return { email, userId, enter: (browser) => signIn(host, browser, { profile, headers: { 'User-Agent': firefox } }) }
  },
  async 'a passkey'(host, base) {
    const { email, userId, authenticator } = await passkeyOwner(host)
    const enter = async (browser: Browser) => {
      const options = await loginOptions(host)
      const proof = { credential: authenticator.get(options), challenge_token: options.challenge_token }
      return send(browser, `${base}/passkeys/login`, proof)
    }
    return { email, userId, enter }
  },
  async 'a second step'(host, base) {
    const { email, userId, app } = await enrolled(host)
    const enter = async (browser: Browser) => {
      const challenge = await send(browser, `${base}/login`, { email, password })
      return send(browser, `${base}/mfa/verify`, { mfa_token: challenge.body.mfa_token, code: app.nextCode() })
    }
    return { email, userId, enter }
  },
  async 'a server-side session'(host) {
    const { email, userId } = await member(host)
    return { email, userId, enter: (browser) => send(browser, '/session/login', { email, password }) }
  },
}

function watch({ auth }: LocalHost): string[] {
  const seen: string[] = []
  auth.events.on('login.new_device', ({ userId }) => seen.push(userId))
  return seen
}

const notices = ({ mails }: LocalHost) => mails.mails.filter(({ subject }) => subject === 'A new device signed in to your account')

describe.each(await databases())('unknownDevice: notice on $name', (database) => {
  const { start } = onLocal(database)
  const open = (tokenDelivery: Delivery = 'cookie', { settings, options, ...rest }: LocalOptions = {}) =>
    start({
      ...rest,
      settings: {
        unknownDevice: 'notice',
        tokenDelivery,
        emailLogin: 'both',
        ...loginTemplate,
        ...mfaSettings,
        ...passkeySettings,
        ...settings,
      },
      options: { throttle: unhurried, ...options },
    })
  const run = async (entering: Promise<supertest.Response>) => {
    const response = await entering
    expect([response.text, response.status]).toEqual([response.text, 200])
    return response
  }

  for (const [tokenDelivery, base] of Object.entries(deliveries) as [Delivery, string][]) {
    test.each(Object.entries(doors))(
      `in delivery ${tokenDelivery}, by %s: the first login only sets the cookie, one in another browser is told once`,
      async (_name, door) => {
        const host = await open(tokenDelivery)
        const told = watch(host)
        const { email, userId, enter } = await door(host, base)
        const [own, other] = [host.browser(), host.browser()]
        expect(setCookieOf(await run(enter(own)), 'auth_device')).not.toBeNull()
        host.clock.advance(60)
        await run(enter(own))
        expect(told).toEqual([])

        host.clock.advance(60)
        await run(enter(other))
        host.clock.advance(60)
        await run(enter(other))
        await run(enter(own))
        expect(told).toEqual([userId])
        await expect.poll(() => notices(host).length).toBe(1)
        const [mail] = notices(host)
        expect(mail?.to).toBe(email)
        expect(mail?.text).toMatch(/- Time: .+ UTC\n- Browser: Firefox, Linux\n- IP address: 127\.0\.0\.1\n/)
      },
    )
  }

  test('the login that makes or activates an account only sets the cookie', async () => {
    const host = await open('cookie', { settings: { autoActivate: true, emailLoginSignup: true } })
    const told = watch(host)
    const made = await send(host.browser(), '/signup', { email: newAddress(), password })
    const { token } = await ask(host, newAddress())
    const byMail = await send(host.browser(), '/email-login/confirm', { token })
    const byProvider = await signIn(host, host.browser(), { profile: newPerson() })
    const waiting = await open()
    const { link } = await pending(waiting)
    const activated = await send(waiting.browser(), '/activate', { token: link })
    expect([made.status, byMail.status, byProvider.status, activated.status]).toEqual([201, 200, 200, 200])
    for (const answer of [made, byMail, byProvider, activated]) expect(setCookieOf(answer, 'auth_device')).not.toBeNull()
    expect([told, watch(waiting)]).toEqual([[], []])
  })

  test('a challenge tells nobody: the device is told of when the second step is done', async () => {
    const host = await open()
    const told = watch(host)
    const { email, userId, app } = await enrolled(host)
    const step = async (browser: Browser) => {
      const { body } = await send(browser, '/login', { email, password })
      expect(told).toEqual([])
      return send(browser, '/mfa/verify', { mfa_token: body.mfa_token, code: app.nextCode() })
    }
    await run(step(host.browser()))
    await run(step(host.browser()))
    expect(told).toEqual([userId])
  })

  test('a cookie that has ended is none: by a new password, or by the end of its session from elsewhere', async () => {
    const host = await open('session')
    const told = watch(host)
    const { email, userId } = await member(host)
    const [own, other] = [host.browser(), host.browser()]
    await run(send(own, '/login', { email, password }))
    await run(send(other, '/login', { email, password }))
    await other.post('/auth/sessions/revoke-others').send({}).expect(204)
    await run(send(own, '/login', { email, password }))
    expect(told).toEqual([userId, userId])

    await host.auth.service.changePassword({ userId, currentPassword: password, newPassword: otherPassword })
    await run(send(other, '/login', { email, password: otherPassword }))
    expect(told).toEqual([userId, userId, userId])
  })

  test('a logout of this browser, and the purge of its session, do not make it new', async () => {
    const host = await open('session')
    const told = watch(host)
    const { email, userId } = await member(host)
    const own = host.browser()
    await run(send(own, '/login', { email, password }))
    await own.post('/auth/logout').send({}).expect(204)
    await run(send(own, '/login', { email, password }))
    await host.knex('auth_sessions').where({ user_id: userId }).delete()
    await run(send(own, '/login', { email, password }))
    expect(told).toEqual([])
  })

  test('a reset in a browser with the cookie is not told of, one in another browser is', async () => {
    const host = await open()
    const told = watch(host)
    const { email, userId } = await member(host)
    const own = host.browser()
    await run(send(own, '/login', { email, password }))
    await run(send(own, '/password-reset/confirm', { token: await resetLink(host, email), new_password: otherPassword }))
    expect(told).toEqual([])
    await run(send(host.browser(), '/password-reset/confirm', { token: await resetLink(host, email), new_password: password }))
    expect(told).toEqual([userId])
  })

  test('what a client writes into X-Forwarded-For is in no mail, unless it is an address', async () => {
    const host = await open('cookie', { host: (app) => app.set('trust proxy', true) })
    const { email } = await member(host)
    await run(send(host.browser(), '/login', { email, password }))
    await run(send(host.browser(), '/login', { email, password }).set('X-Forwarded-For', 'call 555 0100 now'))
    await expect.poll(() => notices(host).length).toBe(1)
    expect(notices(host)[0]?.text).not.toMatch(/555|IP address/)
  })

  test('off, as it is by default, it writes no row and tells nobody', async () => {
    const host = await open('cookie', { settings: { unknownDevice: 'off' } })
    const told = watch(host)
    const { email, userId } = await member(host)
    for (const browser of [host.browser(), host.browser()]) await run(send(browser, '/login', { email, password }))
    expect([told, await host.knex('auth_user_tokens').where({ user_id: userId })]).toEqual([[], []])
  })

  test('tokens in the body of delivery both tell nobody, because such a client keeps no cookie', async () => {
    const host = await open('both')
    const told = watch(host)
    const { email } = await member(host)
    for (const _ of [1, 2]) expect((await post(host, '/login', { email, password })).status).toBe(200)
    expect(told).toEqual([])
  })

  test('boot refuses it with tokens in bodies alone', async () => {
    await expect(start({ settings: { unknownDevice: 'notice' } })).rejects.toThrow(
      "unknownDevice (AUTH_UNKNOWN_DEVICE) 'notice' needs tokenDelivery",
    )
  })
})
