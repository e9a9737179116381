import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { type LocalHost, newAddress, onLocal, otherPassword, password, post, userOf } from '../local/people'
import { cookiePair, type HttpResponse, newPerson } from '../social/redirect-steps'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

const settings = {
  autoActivate: true,
  backendLinks: true,
  cookieSecure: true,
  oauthLinkByVerifiedEmail: true,
  tokenDelivery: 'cookie',
} as const
const device = '__Host-auth_device'

describe.each(await databases())('a session cookie at the first proof of an address, on $name', (database) => {
  const { start } = onLocal(database)
  const open = () => start({ settings, options: { throttle: { login: false, signup: false, links: false, mail: false, routes: false } } })

  /** Signs up with an address and keeps every cookie. */
  async function squatter(host: LocalHost, email = newAddress()) {
    const signup = await post(host, '/signup', { email, password })
    const session = await post(host, '/session/login', { email, password })
    const pair = (response: HttpResponse, name: string) => cookiePair(response, name) ?? 'missing=1'
    return {
      email,
      access: pair(signup, 'access_token'),
      refresh: pair(signup, 'refresh_token'),
      session: pair(session, 'auth_session'),
      device: pair(signup, device),
      deviceOfSession: pair(session, device),
    }
  }

  type Squatter = Awaited<ReturnType<typeof squatter>>

  /** What a sibling subdomain can set with `Domain=`: everything but a `__Host-` cookie. */
  const planted: Record<string, (host: LocalHost, held: Squatter) => Promise<string>> = {
    'an access cookie': async (_host, { access }) => access,
    'a refresh cookie': async (_host, { refresh }) => refresh,
    'a session cookie': async (_host, { session }) => session,
    'all of them, in a browser that is known to another account': async (host, held) => {
      const owner = await post(host, '/signup', { email: newAddress(), password })
      return [held.access, held.refresh, held.session, cookiePair(owner, device)].join('; ')
    },
    'a device cookie under the name of other settings': async (_host, held) =>
      [held.access, held.device.replace(device, 'auth_device')].join('; '),
    'an access cookie, behind a proxy that asks for Basic credentials': async (_host, { access }) => access,
  }

  const headersOf = (name: string, cookie: string) => ({ Cookie: cookie, ...(name.includes('Basic') && { Authorization: 'Basic dTpw' }) })

  test.each(Object.keys(planted))('%s that a sibling subdomain planted is no evidence: the click takes the account over', async (name) => {
    const host = await open()
    const held = await squatter(host)
    const cookie = (await planted[name]?.(host, held)) ?? ''
    const link = await host.auth.service.requestEmailVerification((await userOf(host, held.email)).id)

    const { status, body } = await post(host, '/email-verify/confirm', { token: link?.token }, headersOf(name, cookie))

    expect([status, body.password_required]).toEqual([200, true])
    expect((await post(host, '/login', { email: held.email, password })).status).toBe(401)
  })

  test('a planted cookie is no evidence at a reset or at a sign-in by a provider either', async () => {
    const host = await open()
    const told: unknown[] = []
    host.auth.events.on('account.taken_over', (payload) => told.push(payload))
    const [one, other] = [await squatter(host), await squatter(host)]
    const link = await host.auth.service.requestPasswordReset(one.email)
    const body = { token: link?.token, new_password: otherPassword }
    expect((await post(host, '/password-reset/confirm', body, { Cookie: one.session })).status).toBe(200)
    await signInWith(host, other.email, { Cookie: other.session })
    expect(told).toEqual([{ userId: (await userOf(host, one.email)).id }, { userId: (await userOf(host, other.email)).id }])
    expect((await post(host, '/login', { email: other.email, password })).status).toBe(401)
  })

  const own: Record<string, (held: Squatter) => string> = {
    'the device cookie beside the session cookie': ({ session, deviceOfSession }) => [session, deviceOfSession].join('; '),
    'the device cookie alone': ({ device }) => device,
  }

  test.each(Object.keys(own))(
    '%s, whose session is live, is evidence at the first verification: the owner stays in (25.1.6)',
    async (name) => {
      const host = await open()
      const owner = await squatter(host)
      const link = await host.auth.service.requestEmailVerification((await userOf(host, owner.email)).id)

      const answer = await post(host, '/email-verify/confirm', { token: link?.token }, { Cookie: own[name]?.(owner) ?? '' })

      expect([answer.status, answer.body.password_required]).toEqual([200, undefined])
      expect((await post(host, '/login', { email: owner.email, password })).status).toBe(200)
    },
  )

  test('a planted cookie confirms no change of the address that the attacker began in his own account (25.3.1)', async () => {
    const host = await open()
    for (const name of ['access_token', 'refresh_token']) {
      const attacker = await squatter(host)
      const { id } = await userOf(host, attacker.email)
      await createKnexStore({ knex: host.knex }).users.update(id, { emailVerifiedAt: host.clock.now() })
      host.clock.advance(2)
      const login = await post(host, '/login', { email: attacker.email, password }).expect(200)
      const pair = (cookie: string) => cookiePair(login, cookie) ?? 'missing=1'
      const planted = pair(name)
      const asking = [pair('access_token'), pair('refresh_token'), pair(device)].join('; ')
      const victim = newAddress()
      await post(host, '/email-change/request', { new_email: victim }, { Cookie: asking }).expect(202)
      const token = tokenOf(await host.mails.next({ kind: 'email_change', to: victim }))
      const page = await host.browser().get(`/auth/email-change/${token}`).set('Cookie', planted)
      expect([page.status, /type="password"/.test(page.text)]).toEqual([200, true])
      const answer = await post(host, '/email-change/confirm', { token }, { Cookie: planted })
      expect([answer.status, answer.body.code]).toEqual([401, 'UNAUTHORIZED'])
      expect((await post(host, '/email-change/confirm', { token }, { Cookie: asking })).status).toBe(200)
    }
  })

  test('the device cookie is no evidence in a request of another site, after the end of its session, or for another account (25.1.6)', async () => {
    const host = await open()
    const foreign = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site', ...oldBrowser }
    for (const [headers, isEnded, isOther] of [
      [foreign, false, false],
      [{}, true, false],
      [{}, false, true],
    ] as const) {
      const owner = await squatter(host)
      const { id } = await userOf(host, owner.email)
      const link = await host.auth.service.requestEmailVerification(id)
      if (isEnded) await host.auth.service.revokeSessions(id)
      const cookie = isOther ? (await squatter(host)).device : owner.device
      const answer = await post(host, '/email-verify/confirm', { token: link?.token }, { Cookie: cookie, ...headers })
      expect([answer.status, answer.body.password_required]).toEqual([200, true])
    }
  })

  test('the owner verifies her address after the end of the access cookie, without a take-over, in the deliveries cookie and both (25.1.6)', async () => {
    for (const tokenDelivery of ['cookie', 'both'] as const) {
      const host = await start({ settings: { ...settings, tokenDelivery } })
      const browser = host.browser()
      const email = newAddress()
      const base = tokenDelivery === 'both' ? '/cookie' : ''
      expect((await browser.post(`/auth${base}/signup`).send({ email, password })).status).toBe(201)
      host.clock.advance(901)
      const link = await host.auth.service.requestEmailVerification((await userOf(host, email)).id)
      const { status, body } = await browser.post('/auth/email-verify/confirm').send({ token: link?.token })
      expect([tokenDelivery, status, body.password_required]).toEqual([tokenDelivery, 200, undefined])
    }
  })

  test('a refresh token in the body needs no device cookie, whatever cookies were planted beside it', async () => {
    const host = await open()
    const owner = await squatter(host)
    const planted = await squatter(host)
    const link = await host.auth.service.requestEmailVerification((await userOf(host, owner.email)).id)
    const body = { token: link?.token, refresh_token: owner.refresh.replace('refresh_token=', '') }

    const answer = await post(host, '/email-verify/confirm', body, { Cookie: planted.access })

    expect([answer.status, answer.body.password_required]).toEqual([200, undefined])
  })

  async function signInWith(host: LocalHost, email: string, headers: Record<string, string>): Promise<void> {
    const login = await host.browser().get('/auth/oauth/corp/login')
    const { callbackQuery } = host.provider.authorize(String(login.headers['location']), { profile: newPerson({ email }) })
    const cookie = [cookiePair(login), headers['Cookie']].join('; ')
    await host.browser().get('/auth/oauth/corp/callback').set('Cookie', cookie).query(callbackQuery)
  }
})
