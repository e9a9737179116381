import type { Express } from 'express'
import { expect, test } from 'vitest'
import { bearerOf, password, post, settled, signedIn } from '../local/people'
import { onPages, problemOf, signInByPage } from '../page-routes/people'
import { addIdentity } from '../social/accounts-at-hand'
import { type Mounted, startLogin } from '../support/app'
import { databases } from '../support/databases'

/** What docs/admin.md says under "What the person notices". */
const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

function guarded(app: Express, { guards }: Mounted['auth']): void {
  const all = {
    auth: guards.requireAuth(),
    login: guards.requireLogin(),
    user: guards.requireUser(),
    live: guards.requireLiveSession(),
  }
  for (const [name, guard] of Object.entries(all)) app.get(`/${name}`, guard, (_req, res) => void res.json({}))
}

const emailLogin = { emailLogin: 'code' } as const

test('a deactivated person with tokens: every login is refused, and the running token only where the account or session is read', async () => {
  const host = await start({ host: guarded, settings: { ...emailLogin, tokenDelivery: 'both' } })
  const person = await signedIn(host)
  const { email, userId, refreshToken } = person
  const { subject } = await addIdentity(host.knex, userId)
  const browser = host.browser()
  await signInByPage(browser, { email, password })

  await host.auth.service.deactivate(userId)

  const asked = async (path: string) => {
    const { status, body } = await host.browser().get(path).set(bearerOf(person))
    return [status, body.code]
  }
  expect(await asked('/auth')).toEqual([200, undefined])
  expect(await asked('/login')).toEqual([200, undefined])
  for (const path of ['/user', '/live', '/auth/me', '/auth/sessions'])
    expect([path, ...(await asked(path))]).toEqual([path, 403, 'ACCOUNT_INACTIVE'])
  const refreshed = await post(host, '/refresh', { refresh_token: refreshToken })
  expect([refreshed.status, refreshed.body.code]).toEqual([401, 'INVALID_TOKEN'])

  const login = await post(host, '/login', { email, password })
  expect([login.status, login.body.code]).toEqual([401, 'UNAUTHORIZED'])
  const byPage = await signInByPage(host.browser(), { email, password })
  expect([byPage.status, problemOf(byPage.text)]).toEqual([400, 'The email address or the password is not correct.'])

  const visitor = host.browser()
  const { callbackQuery } = await startLogin(host, visitor, { profile: { sub: subject } })
  const { headers } = await visitor.get('/auth/oauth/corp/callback').query(callbackQuery)
  expect(headers['location']).toBe('/auth/login?error=OAUTH_ACCOUNT_INACTIVE')
  expect(problemOf((await visitor.get(headers['location'] ?? '')).text)).toBe('This account is not active.')

  const page = await browser.get('/auth/account')
  expect([page.status, page.headers['location']]).toEqual([302, '/auth/login?return_to=%2Fauth%2Faccount'])
  for (const path of ['/password-reset/request', '/activation/request', '/email-login/request'])
    expect((await post(host, path, { email })).status).toBe(202)
  await settled(host)
  expect(host.mails.mails.filter(({ to }) => to === email)).toEqual([])

  host.clock.advance(901)
  const late = await browser.get('/login').set('Accept', 'text/html')
  const on = await browser.get(String(late.headers['location']))
  expect([late.status, on.status, on.headers['location']]).toEqual([302, 302, '/auth/login?return_to=%2Flogin'])
})

test('a deactivated person with a session cookie: the next request is that of nobody', async () => {
  const host = await start({ host: guarded, settings: { tokenDelivery: 'session' } })
  const { email, userId } = await signedIn(host)
  for (const path of ['/auth', '/user', '/live', '/auth/me']) {
    const browser = host.browser()
    await host.auth.service.activateUser(userId)
    await signInByPage(browser, { email, password })
    expect([path, (await browser.get(path)).status]).toEqual([path, 200])
    await host.auth.service.deactivate(userId)
    const { status, body } = await browser.get(path)
    expect([path, status, body.code]).toEqual([path, 401, 'UNAUTHORIZED'])
  }
})
