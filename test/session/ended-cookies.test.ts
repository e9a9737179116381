import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import type { Route } from '../../src/http/routes'
import { loginAs } from '../../src/testing'
import { bearerOf, type LocalHost, password, post, resetLink } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, type EnrolledMember, enrolled, onMfa, verify } from '../mfa/people'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { mountedRoutes } from '../support/mounted-routes'
import { changePassword, undoTokenOf } from '../undo/people'

const newPassword = 'nine green bicycles uphill'

/** What a browser brings: a session of tokens and one of a cookie, both of this person. `bearer` is of a third session. */
interface Browser {
  readonly host: LocalHost
  readonly person: EnrolledMember
  readonly cookies: string
  readonly access: string
  readonly refresh: string
  readonly session: string
  readonly bearer: Record<string, string>
  readonly send: (path: string, body?: object, headers?: Record<string, string>) => supertest.Test
}

type Ending = (browser: Browser) => Promise<supertest.Response>

/** Every route that may end a session whose cookie comes along, and how it does. */
const endings: Readonly<Record<string, Ending>> = {
  'POST /logout': async ({ send, refresh }) => send('/logout', { refresh_token: refresh, all_sessions: true }),
  'POST /cookie/logout': async ({ send }) => send('/cookie/logout', { all_sessions: true }),
  'POST /session/logout': async ({ send }) => send('/session/logout', { all_sessions: true }),
  'DELETE /session/:id': async ({ host, cookies }) => {
    const list = await host.browser().get(`${host.prefix}/session/list`).set('Cookie', cookies)
    const { id } = list.body.find((one: { is_current: boolean }) => one.is_current)
    return host.browser().delete(`${host.prefix}/session/${id}`).set('Cookie', cookies)
  },
  'DELETE /sessions/:id': async (browser) => endListed(browser, ''),
  'POST /sessions/revoke-others': async ({ send, bearer }) => send('/sessions/revoke-others', {}, bearer),
  'POST /cookie/sessions/revoke-others': async ({ send, bearer }) => send('/cookie/sessions/revoke-others', {}, bearer),
  async 'POST /cookie/refresh'({ host, send, refresh }) {
    await host.auth.service.refresh(refresh)
    return send('/cookie/refresh')
  },
  'POST /security/undo': async (browser) => browser.send('/security/undo', { token: await changed(browser) }),
  'POST /security/undo/:token': async (browser) =>
    browser
      .send(`/security/undo/${await changed(browser)}`)
      .type('form')
      .send({}),
  'POST /password-reset/confirm': async (browser) =>
    browser.send('/password-reset/confirm', { token: await resetting(browser), new_password: newPassword }),
  'POST /cookie/password-reset/confirm': async (browser) =>
    browser.send('/cookie/password-reset/confirm', { token: await resetting(browser), new_password: newPassword }),
  'POST /password-reset/:token': async (browser) =>
    browser
      .send(`/password-reset/${await resetting(browser)}`)
      .type('form')
      .send({ new_password: newPassword, confirm_password: newPassword }),
  'POST /password-change': async ({ send, bearer }) =>
    send('/password-change', { current_password: password, new_password: newPassword }, bearer),
  'POST /cookie/password-change': async ({ send, bearer }) =>
    send('/cookie/password-change', { current_password: password, new_password: newPassword }, bearer),
  'POST /password-change/mfa': async ({ send, bearer, person }) =>
    send('/password-change/mfa', { code: person.app.nextCode(), new_password: newPassword }, bearer),
  'POST /cookie/password-change/mfa': async ({ send, bearer, person }) =>
    send('/cookie/password-change/mfa', { code: person.app.nextCode(), new_password: newPassword }, bearer),
  'POST /mfa/disable': async ({ send, bearer, person }) => send('/mfa/disable', { password, code: person.app.nextCode() }, bearer),
  'POST /mfa/confirm': async (browser) => browser.send('/mfa/confirm', { code: await replacing(browser) }, browser.bearer),
  'POST /cookie/mfa/confirm': async (browser) => browser.send('/cookie/mfa/confirm', { code: await replacing(browser) }, browser.bearer),
  'POST /admin/users/:id/revoke-sessions': async ({ send, person, bearer }) =>
    send(`/admin/users/${person.userId}/revoke-sessions`, {}, bearer),
  async 'POST /email-verify/confirm'(browser) {
    const token = await verifying(browser)
    return browser.send('/email-verify/confirm', { token }, foreign)
  },
  'POST /email-verify/:token': async (browser) =>
    browser
      .send(`/email-verify/${await verifying(browser)}`)
      .set(foreign)
      .type('form')
      .send({ forgot: '1' }),
}

/** Writing routes after which every session that was alive is alive, or whose session no cookie can name. */
const endNothing: readonly RegExp[] = [
  / \/(cookie\/|session\/)?login$/, // a login sets the cookie of the session that it opens in the place of the one that it ends
  / \/(cookie\/|session\/)?mfa\/verify$/,
  / \/(cookie\/)?oauth\//, // the callback's login: the same. Linking ends nothing
  / \/(cookie\/)?(signup|activate|activate\/:token|reauthenticate(\/email)?|password\/first)$/, // an account that waits has no session
  / \/(refresh|me|mfa\/enroll|mfa\/recovery-codes)$/,
  / \/(activation|email-verify|email-change|password-reset)\/request$/,
  / \/(cookie\/)?email-change\/(confirm|:token)$/,
  / \/admin\/users\/:id(\/(deactivate|activate|reset-mfa))?$/, // of oneself refused with 409
]

const foreign = { Origin: 'https://elsewhere.example', 'Sec-Fetch-Site': 'cross-site', ...oldBrowser }
const nameOf = ({ method, path }: Route) => `${method} ${path}`

/** The session of the cookie, by another session of the same person. */
async function endListed({ host, cookies, bearer }: Browser, base: string): Promise<supertest.Response> {
  const list = await host.browser().get(`${host.prefix}${base}/sessions`).set(bearer).expect(200)
  const { id } = list.body.find((one: { kind: string }) => one.kind === 'session')
  return host
    .browser()
    .delete(`${host.prefix}${base}/sessions/${id}`)
    .set({ Cookie: cookies, ...bearer })
}

async function changed({ host, person, bearer }: Browser): Promise<string> {
  await host.mails.next({ kind: 'notice', to: person.email }) // of the factor
  await changePassword(host, { token: bearer['Authorization']?.slice(7) ?? '', refreshToken: person.refreshToken }).expect(204)
  return undoTokenOf(host, person.email)
}

const resetting = ({ host, person }: Browser) => resetLink(host, person.email)

async function replacing({ host, person, bearer }: Browser): Promise<string> {
  const { body } = await post(host, '/mfa/enroll', { code: person.app.nextCode() }, bearer).expect(200)
  return authenticator(body.secret, host.clock).code()
}

/** As if the address had never been proven: cookies that another site's form brings are no evidence, so the account is taken over. */
async function verifying({ host, person, bearer }: Browser): Promise<string> {
  await createKnexStore({ knex: host.knex }).users.update(person.userId, { emailVerifiedAt: null })
  await post(host, '/email-verify/request', undefined, bearer).expect(202)
  return tokenOf(await host.mails.next({ kind: 'email_verification', to: person.email }))
}

describe('answers that end the session whose cookie came along clear its cookies', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  async function browse(): Promise<Browser & { routes: Route[] }> {
    mountedRoutes.length = 0
    const settings = { tokenDelivery: 'both', backendLinks: true, publicUrl: 'https://app.example.test' } as const
    const host = await start({ settings, providers: { corp: {} }, options: { throttle: { routes: false } } })
    const [routes = []] = mountedRoutes
    const person = await enrolled(host, { isAdmin: true })
    const { accessToken: access, refreshToken: refresh } = await loginAs(host.auth, { id: person.userId })
    const login = await post(host, '/session/login', { email: person.email, password })
    const opened = await host
      .browser()
      .post(`${host.prefix}/session/mfa/verify`)
      .send({ mfa_token: login.body.mfa_token, code: person.app.nextCode() })
      .expect(200)
    const session = /auth_session=([^;]+)/.exec(String(opened.headers['set-cookie']))?.[1] ?? ''
    host.clock.advance(60)
    const cookies = `access_token=${access}; refresh_token=${refresh}; auth_session=${session}`
    const bearer = bearerOf({ token: (await verify(host, await challengeOf(host, person), person.app.nextCode())).body.access_token })
    const send = (path: string, body?: object, headers: Record<string, string> = {}) =>
      post(host, path, body, { Cookie: cookies, ...headers })
    return { host, routes, person, cookies, access, refresh, session, bearer, send }
  }

  test('every writing route is in one of the two tables', async () => {
    const { routes } = await browse()
    const writing = routes.filter(({ method }) => method !== 'GET').map(nameOf)
    const unknown = writing.filter((name) => !(name in endings) && !endNothing.some((known) => known.test(name)))
    expect(unknown).toEqual([])
    expect(Object.keys(endings).filter((name) => !writing.includes(name))).toEqual([])
  })

  test.each(Object.entries(endings))('%s', async (_name, end) => {
    const browser = await browse()
    const { host, access, session } = browser
    const answer = await end(browser)
    const set = [answer.headers['set-cookie'] ?? []].flat() as string[]
    const isReplaced = (name: string, value: string) =>
      set.some((line) => line.startsWith(`${name}=`) && !line.startsWith(`${name}=${value}`))

    const isAlive = {
      access_token: await isTokenAlive(host, access),
      auth_session: (await host.auth.service.findSession(session)) !== null,
    }
    expect(Object.values(isAlive), answer.text).toContain(false)
    expect({ access_token: isReplaced('access_token', access), auth_session: isReplaced('auth_session', session) }, set.join('\n')).toEqual(
      {
        access_token: !isAlive.access_token,
        auth_session: !isAlive.auth_session,
      },
    )
  })

  async function isTokenAlive(host: LocalHost, access: string): Promise<boolean> {
    const { sid } = JSON.parse(Buffer.from(access.split('.')[1] ?? '', 'base64url').toString()) as { sid: string }
    const found = await createKnexStore({ knex: host.knex }).sessions?.find({ id: sid })
    return found?.session.revokedAt === null
  }
})
