import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { type AuthRouterOptions, createAuthRouter, createKnexStore, type ProviderClient } from '../../src'
import { bearerOf, type LocalHost, newAddress, onLocal, password, post, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { documentOf } from '../openapi/document-of'
import { baseUrl, signIn, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { mailbox } from '../support/mailbox'
import { addIdentity } from './accounts-at-hand'
import { newPerson } from './redirect-steps'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start, opened } = onLocal(sqlite)
const corp: ProviderClient = {
  providerName: 'corp',
  clientId: 'client',
  authorizeUrl: 'https://id.example.test/authorize',
  tokenUrl: 'https://id.example.test/token',
  scopes: ['openid'],
  exchangeCode: () => Promise.reject(new Error('nobody comes here')),
  fetchUser: () => Promise.reject(new Error('nobody comes here')),
}
const withoutTemplates = {
  activationUrlTemplate: null,
  passwordResetUrlTemplate: null,
  emailVerificationUrlTemplate: null,
  emailChangeUrlTemplate: null,
}

describe('localAccountsEnabled: false', () => {
  const settings = { ...withoutTemplates, localAccountsEnabled: false, tokenDelivery: 'both', backendLinks: true } as const
  /** What has to do with an email and a password. */
  const local = [
    ...['/signup', '/login', '/session/login', '/activate', '/activate/token', '/activation/request'],
    ...['/password-reset/request', '/password-reset/confirm', '/password-change', '/password-change/mfa', '/password/first'],
    ...['/email-change/request', '/email-change/confirm'],
  ]
  const pages = ['/activate/token', '/password-reset/token', '/email-change/token']
  const verification = ['/email-verify/request', '/email-verify/confirm']

  test('has no route and no page of signup, login by password, activation, reset, password and change of address', async () => {
    const host = await start({ links: 'shown', settings: { ...settings, ...mfaSettings } })
    for (const path of [...local, ...local.map((path) => `/cookie${path}`), ...verification])
      expect([path, (await post(host, path, {})).status]).toEqual([path, path === '/session/login' ? 405 : 404]) // DELETE /session/:id is there
    for (const path of [...pages, '/email-verify/token'])
      expect([path, (await host.browser().get(`${host.prefix}${path}`)).status]).toEqual([path, 404])
    const { paths } = await documentOf(host)
    expect(
      Object.keys(paths).filter((path) => /sign.?up|(?<!\}\/)login|activ|password|email/.test(path) && !path.startsWith('/admin')),
    ).toEqual([])
  })

  test('the routes are there by default', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    for (const path of [...local.filter((path) => !/token|mfa|first/.test(path)), ...verification, '/cookie/login'])
      expect([path, (await post(host, path, {})).status]).not.toEqual([path, 404])
  })

  test('a social login works, and its account refreshes, is shown, changes its name and logs out', async () => {
    const host = await start({ links: 'shown', settings: { ...settings, tokenDelivery: 'bearer' } })
    const { status, body } = await signIn(host, host.browser(), { profile: newPerson() })
    expect(status).toBe(200)
    const refreshed = await post(host, '/refresh', { refresh_token: body.refresh_token })
    const bearer = { Authorization: `Bearer ${refreshed.body.access_token}` }
    expect((await host.browser().patch('/auth/me').set(bearer).send({ name: 'Ana' })).body.name).toBe('Ana')
    expect((await post(host, '/logout', { refresh_token: refreshed.body.refresh_token })).status).toBe(204)
  })

  test('with a mailer the address can be verified, and without a template the mail leads to our page', async () => {
    const host = await start({ settings: { ...settings, backendLinks: false } })
    const member = await signedIn(host, { emailVerifiedAt: null })

    expect((await post(host, '/email-verify/request', {}, bearerOf(member))).body.verify_url).toBeNull()

    const { url = '' } = (await host.mails.next({ kind: 'email_verification', to: member.email })) as { url?: string }
    expect(url.startsWith(`${baseUrl}/auth/email-verify/`)).toBe(true)
    const { pathname } = new URL(url)
    expect((await host.browser().get(pathname)).text).toContain('<form')
    expect((await host.browser().post(pathname).type('form').send({})).status).toBe(200)
    expect((await host.auth.service.findUser(member.userId))?.emailVerifiedAt).not.toBeNull()
  })

  test('a password that is still there is no way to log in: the last provider stays', async () => {
    const unlinked = async (isLocal: boolean) => {
      const host = await start({ settings: { ...settings, localAccountsEnabled: isLocal, oauthKeepLastLoginMethod: true } })
      const member = await signedIn(host)
      await addIdentity(host.knex, member.userId)
      return (await post(host, '/oauth/accounts/unlink', { provider: 'corp' }, bearerOf(member))).status
    }
    expect([await unlinked(true), await unlinked(false)]).toEqual([204, 409])
  })

  test('and nobody is asked for it to disable the second factor or to add one', async () => {
    const host = await start({ settings: { ...settings, ...mfaSettings } })
    const member = await enrolled(host as LocalHost)
    const answer = await post(host, '/mfa/disable', { code: member.app.nextCode() }, bearerOf(member))
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect((await post(host, '/mfa/enroll', {}, bearerOf(await signedIn(host)))).status).toBe(200)
  })

  test('auth.service keeps its verbs for jobs of the host', async () => {
    const host = await start({ links: 'shown', settings: { ...settings, autoActivate: true } })
    const email = newAddress()
    await host.auth.service.signUp({ email, password })
    expect((await host.auth.service.logIn({ email, password })).kind).toBe('session')
  })
})

describe('at boot', () => {
  const create = (changes: Partial<AuthRouterOptions> = {}, settings: object = {}) => {
    const logs = logTap()
    const { providers = {} } = changes
    const auth = createAuthRouter({
      store: createKnexStore({ knex: opened().knex }),
      environment: 'production',
      checkTables: false, // nobody waits for the check of a router that is only made
      logger: logs,
      ...changes,
      providers,
      settings: { jwtSecret: testSecret, localAccountsEnabled: false, ...settings },
    })
    return { auth, logs }
  }
  const social = { oauthEnabled: true, publicUrl: baseUrl }

  test('an app with social logins alone opens in production with a secret and a provider, and without a warning', async () => {
    const host = await start()
    const { auth, logs } = create({ providers: { corp } }, social)
    expect(logs.entries.filter(({ level }) => level !== 'info')).toEqual([])
    expect((await supertest(host.app.use('/social', auth)).post('/social/login').send({})).status).toBe(404)
  })

  test('a mailer is taken without any template, and needs the public address for its one link', async () => {
    const mailer = mailbox()
    const own = { ...corp, redirectUri: `${baseUrl}/auth/oauth/corp/callback` }
    expect(() => create({ mailer, providers: { corp: own } }, social)).not.toThrow()
    expect(() => create({ mailer, providers: { corp: own } }, { oauthEnabled: true })).toThrow(
      /publicUrl .*is empty, and verification links need it; .*emailVerificationUrlTemplate/,
    )
    expect(() => create({ providers: { corp: own } }, { oauthEnabled: true })).not.toThrow()
  })

  test('links in bodies stay refused in production where a mailer makes them', () => {
    expect(() => create({ mailer: mailbox() }, { publicUrl: baseUrl, returnTokenInResponse: true })).toThrow(/returnTokenInResponse/)
  })

  test('without providers one warning says that nobody can sign in', () => {
    const { logs } = create()
    expect(logs.entries.map(({ message }) => message)).toEqual([expect.stringContaining('nobody can sign in: localAccountsEnabled')])
    const byPasskey = create({}, { passkeysEnabled: true, webauthnRpName: 'Example', publicUrl: baseUrl })
    expect(byPasskey.logs.entries.filter(({ message }) => message.includes('nobody can sign in'))).toEqual([])
  })
})
