import type { Response } from 'supertest'
import { describe, expect, test } from 'vitest'
import { descriptionOf } from '../../src/http/description'
import type { Route } from '../../src/http/routes'
import type { OpenedServerSession, TokenPair } from '../../src/sessions/login'
import { bearerOf, credentialsOf, type LocalHost, type LocalOptions, openAs, signedIn } from '../local/people'
import { ageFactor, enrolled, onMfa, outcome } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'
import { needs } from './needs'

/** Behind a guard, writing, and no way into an account. */
const exceptions: Readonly<Record<string, string>> = {
  'PATCH /me': 'a name and the fields of the host',
  'POST /email-verify/request': 'a mail to the address that the account has',
  'DELETE /session/:id': 'its guard reads the session itself',
}

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/cookie(?=\/)/, '')}`
const stepsOf = ({ before = [] }: Route) => before.map(descriptionOf)
const isGuarded = (route: Route) => stepsOf(route).some((step) => step?.credential !== undefined)
const needOf = (route: Route) => {
  const asked = stepsOf(route).map((step) => step?.needs)
  return (['fresh_session', 'alive_session'] as const).find((need) => asked.includes(need))
}

/** A provider does not stand in for the second factor that this person has. */
const isRefused = ({ status, body }: Response) => (status === 403 && body.code !== 'MFA_REQUIRED') || body?.code === 'INVALID_TOKEN'

/** The admin routes need another person, and these two a second factor: without it they answer 422 before they look at the session's age. */
const isOwn = (path: string) => !path.startsWith('/admin/') && path !== '/mfa/disable' && path !== '/mfa/recovery-codes'

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('the session that a route needs, in delivery %s', async (tokenDelivery) => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  /** A cookie whose session is over counts as no cookie. */
  const deadIs = tokenDelivery === 'session' ? 'UNAUTHORIZED' : 'INVALID_TOKEN'

  async function mounted(options: LocalOptions['options'] = {}) {
    mountedRoutes.length = 0
    const settings = { tokenDelivery, accessTokenTtlSeconds: 7_200 }
    const host = await start({ settings, options: { throttle: { routes: false, mfa: false }, ...options }, providers: { corp: {} } })
    const [routes = []] = mountedRoutes
    return { host, routes, named: routes.filter((route) => nameOf(route) in needs) }
  }

  const ask = (host: LocalHost, { method, path }: Route, headers: Record<string, string>) => {
    const url = `${host.prefix}${path.replace(':provider', 'corp').replace(':id', '00000000-0000-4000-8000-000000000000')}`
    const verb = method.toLowerCase() as 'get' | 'post' | 'patch' | 'delete'
    const request = host.browser()[verb](url).set(headers)
    return method === 'GET' ? request : request.send({})
  }
  const cookieName = tokenDelivery === 'session' ? 'auth_session' : 'access_token'
  const presented = (token: string) => (tokenDelivery === 'bearer' ? bearerOf({ token }) : { Cookie: `${cookieName}=${token}` })

  test('every guarded route that writes declares it, or stands among the exceptions', async () => {
    const { routes } = await mounted()
    const writing = routes.filter((route) => route.method !== 'GET' && isGuarded(route))
    const undeclared = writing.filter((route) => !needOf(route)).map(nameOf)
    expect(undeclared.filter((name) => !(name in exceptions))).toEqual([])
    for (const route of routes.filter(needOf)) expect([nameOf(route), needOf(route)]).toEqual([nameOf(route), needs[nameOf(route)]])
    expect(Object.keys(needs).filter((name) => !routes.some((route) => nameOf(route) === name))).toEqual([])
  })

  test('no session and a dead session are 401; a stale one is 403 where it has to be fresh; a fresh one passes', async () => {
    const { host, named } = await mounted()
    const person = await enrolled(host, { isAdmin: true })
    const dead = await openAs(host, person.userId)
    let stale = person.token
    await (tokenDelivery === 'session' ? host.auth.service.logOutSession(dead.token) : host.auth.service.logOut(dead.refreshToken))
    host.clock.advance(901)

    for (const route of named) {
      const name = nameOf(route)
      expect([name, outcome(await ask(host, route, {}))]).toEqual([name, 'UNAUTHORIZED'])
      expect([name, outcome(await ask(host, route, presented(dead.token)))]).toEqual([name, deadIs])
      const old = await ask(host, route, presented(stale))
      stale = setCookieOf(old, 'auth_session')?.value ?? stale // a route that revokes the other sessions gives this one a new value
      if (needs[name] === 'alive_session') {
        expect([name, isRefused(old)]).toEqual([name, false])
        continue
      }
      expect([name, old.status, old.body.code, old.body.details]).toEqual([name, 403, 'REAUTHENTICATION_REQUIRED', { methods: ['otp'] }])
      expect(old.headers['www-authenticate']).toBe('Bearer error="insufficient_user_authentication", max_age="900"')
      const { token: fresh } = await openAs(host, person.userId)
      expect([name, isRefused(await ask(host, route, presented(fresh)))]).toEqual([name, false])
    }
  })

  test('a password and a young factor open a session that is fresh by the password, and the young factor stands in for no password (25.9.4)', async () => {
    const { host, named } = await mounted()
    const person = await enrolled(host, { isAdmin: true }, { isYoung: true })
    host.clock.advance(1)
    const login = await host.auth.service.logIn({ email: person.email, password: 'a quiet harbour in winter' })
    if (login.kind !== 'challenge') throw new Error('a factor is active')
    const session = await host.auth.service.verifyMfa({ mfaToken: login.mfaToken, code: person.app.nextCode() })
    const { token } = credentialsOf(session as OpenedServerSession | TokenPair) // its challenge is met
    for (const route of named.filter((line) => needs[nameOf(line)] === 'fresh_session')) {
      const answer = await ask(host, route, presented(token))
      if (nameOf(route) === 'POST /password-change/mfa') expect(outcome(answer)).toBe('MFA_FACTOR_TOO_NEW')
      else expect([nameOf(route), isRefused(answer)]).toEqual([nameOf(route), false])
    }
    await ageFactor(host, person)
    const { token: later } = await openAs(host, person.userId)
    const change = named.find((route) => route.path === '/password-change/mfa')
    if (change) expect((await ask(host, change, presented(later))).status).toBe(422)
  })

  test('what makes no session fresh leaves every route as stale as before: a password where a factor is a day old, and no method at all', async () => {
    const { host, named } = await mounted()
    const person = await enrolled(host, { isAdmin: true })
    host.clock.advance(901)
    const reauthenticate = named.find((route) => route.path === '/reauthenticate')
    if (!reauthenticate) throw new Error('the route is mounted')
    const wrong = { password: 'MFA_REQUIRED', code: 'MFA_CODE_INVALID', nothing: 'VALIDATION_ERROR' }
    for (const [method, refusal] of Object.entries(wrong)) {
      const body = { password: { password: 'a quiet harbour in winter' }, code: { code: '000000' }, nothing: {} }[method] ?? {}
      const answer = await ask(host, reauthenticate, presented(person.token)).send(body)
      expect([method, answer.body.code]).toEqual([method, refusal])
      for (const route of named.filter((line) => needs[nameOf(line)] === 'fresh_session'))
        expect([nameOf(route), outcome(await ask(host, route, presented(person.token)))]).toEqual([
          nameOf(route),
          'REAUTHENTICATION_REQUIRED',
        ])
    }
  })

  test('an account of a provider alone, whose session is stale, confirms by that provider; its own password route and no code help', async () => {
    const { host, named } = await mounted()
    const member = await signedIn(host)
    await addIdentity(host.knex, member.userId, { provider: 'corp' })
    await host
      .knex('auth_users')
      .where({ id: member.userId })
      .update({ hashed_password: `!${'a'.repeat(43)}` })
    host.clock.advance(901)
    const own = named.filter(({ path }) => isOwn(path) && needs[nameOf({ method: 'POST', path })] === 'fresh_session')
    for (const route of own) {
      const { status, body } = await ask(host, route, presented(member.token))
      expect([nameOf(route), status, body.details]).toEqual([nameOf(route), 403, { methods: ['email', 'provider:corp'] }])
    }
    for (const route of named.filter(({ path }) => path.endsWith('/reauthenticate') && !path.includes(':provider')))
      for (const body of [{ password: 'a quiet harbour in winter' }, { code: '123456' }])
        expect((await ask(host, route, presented(member.token)).send(body)).status).toBeGreaterThanOrEqual(400)
  })

  test('an account of a provider alone that takes no mails, whose session is stale, is told that no method is left but to sign in again', async () => {
    const { host, named } = await mounted({ refusesEmailLink: () => true })
    const member = await signedIn(host)
    await host
      .knex('auth_users')
      .where({ id: member.userId })
      .update({ hashed_password: `!${'a'.repeat(43)}` })
    host.clock.advance(901)
    const own = named.filter(({ path }) => isOwn(path) && needs[nameOf({ method: 'POST', path })] === 'fresh_session')
    for (const route of own) expect((await ask(host, route, presented(member.token))).body.details).toEqual({ methods: [] })
  })
})
