import { afterEach, describe, expect, test } from 'vitest'
import { type AuthRouterOptions, createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { loginTemplate } from '../email-login/people'
import { mailsTo, newAddress, password, post, userOf } from '../local/people'
import { mountedRoutes } from '../openapi/document-of'
import { baseUrl, testSecret } from '../support/app'
import { type Database, databases, type OpenDatabase } from '../support/databases'
import { linkTemplates } from '../support/mailbox'
import { activate, newcomer, onSignups, signUp, signupBody, signupSettings } from './newcomers'
import { codeOf, logIn, newAuthenticator } from './people'

const all = await databases()
const [sqlite] = all
if (!sqlite) throw new Error('no database answers')

const opened: OpenDatabase[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

async function openedOn(database: Database): Promise<OpenDatabase> {
  const one = await database.open({ memory: true })
  opened.push(one)
  return one
}

const mailer = { send: async () => undefined }

async function boot(
  settings: object,
  { columns = {}, ...options }: Partial<AuthRouterOptions> & { columns?: object } = {},
): Promise<ReturnType<typeof createAuthRouter>> {
  const { knex } = await openedOn(sqlite as Database)
  return createAuthRouter({
    settings: { jwtSecret: testSecret, publicUrl: baseUrl, ...linkTemplates, ...signupSettings, ...settings },
    store: createKnexStore({ knex, users: { columns } }),
    environment: 'test',
    mailer,
    logger: { info() {}, warn() {}, error() {} },
    checkTables: false,
    ...options,
  })
}

describe('boot refuses signupWith', () => {
  const withoutPasswords = { passwordLogin: false, emailLogin: 'code' }
  test.each<[why: string, settings: object, message: RegExp, more?: object]>([
    ['an empty list', { signupWith: [] }, /signupWith \(AUTH_SIGNUP_WITH\) must be a list/],
    ['another value', { signupWith: ['password', 'email'] }, /signupWith \(AUTH_SIGNUP_WITH\) must be a list/],
    ['a value twice', { signupWith: ['passkey', 'passkey'] }, /signupWith \(AUTH_SIGNUP_WITH\) must be a list/],
    ['passkey without passkeysEnabled', { passkeysEnabled: false }, /signupWith .* needs passkeysEnabled \(AUTH_PASSKEYS_ENABLED\)/],
    ['passkey beside autoActivate', { autoActivate: true }, /signupWith .* cannot be used with autoActivate \(AUTH_AUTO_ACTIVATE\)/],
    [
      'no password while passwordLogin is true',
      { signupWith: ['passkey'] },
      /signupWith .* needs passwordLogin \(AUTH_PASSWORD_LOGIN\) false/,
    ],
    [
      'passkey that nobody can recover',
      { passwordLogin: false, oauthEnabled: false, signupWith: ['passkey'] },
      /signupWith .* needs passwordLogin \(AUTH_PASSWORD_LOGIN\) or emailLogin \(AUTH_EMAIL_LOGIN\)/,
    ],
    ['passkey without a mailer', {}, /signupWith .* no mailer/, { mailer: undefined }],
    ['passkey without email_verified_at', {}, /signupWith .* no column for email_verified_at/, { columns: { emailVerifiedAt: false } }],
    ['passkey without activated_at', {}, /signupWith .* no column for activated_at/, { columns: { activatedAt: false } }],
    ['passkey alone without a mailer', { ...withoutPasswords, signupWith: ['passkey'] }, /signupWith .* no mailer/, { mailer: undefined }],
  ])('with %s', async (_why, settings, message, more = {}) => {
    await expect(boot(settings, more)).rejects.toThrow(message)
  })

  test('and takes every other list, also from the environment', async () => {
    for (const settings of [
      { signupWith: ['password'] },
      { signupWith: ['passkey', 'password'] },
      { signupWith: '["password","passkey"]' },
      { ...withoutPasswords, signupWith: ['passkey'] },
      { ...withoutPasswords, signupWith: ['password', 'passkey'] },
      { signupEnabled: false },
      { signupWith: ['password'], passkeysEnabled: false },
    ])
      await expect(boot(settings)).resolves.toBeDefined()
  })
})

describe('the routes of signupWith', () => {
  const { start } = onSignups(sqlite)
  const routesOf = async (settings: object) =>
    mountedRoutes((await start({ settings: settings as never })).auth)
      .filter((route) => route.includes('/signup'))
      .sort()

  test.each<[settings: object, routes: string[]]>([
    [{}, ['post /signup', 'post /signup/passkey', 'post /signup/passkey/options']],
    [{ signupWith: ['password'] }, ['post /signup']],
    [{ signupWith: ['passkey'], passwordLogin: false, emailLogin: 'code' }, ['post /signup/passkey', 'post /signup/passkey/options']],
    [{ signupEnabled: false }, []],
    [{ localAccountsEnabled: false, emailLogin: 'off' }, []],
    [
      { tokenDelivery: 'both' },
      ['post /cookie/signup', 'post /cookie/signup/passkey', 'post /signup', 'post /signup/passkey', 'post /signup/passkey/options'],
    ],
    [{ tokenDelivery: 'session' }, ['post /signup', 'post /signup/passkey', 'post /signup/passkey/options']],
  ])('with %j', async (settings, routes) => {
    expect(await routesOf(settings)).toEqual(routes)
  })

  test('without password in the list POST /signup is 404, and a password in a body is ignored', async () => {
    const host = await start({ settings: { signupWith: ['passkey'], passwordLogin: false, emailLogin: 'code' } })
    const email = newAddress()
    expect((await post(host, '/signup', { email, password })).status).toBe(404)
    expect((await signUp(host, await signupBody(host, email, newAuthenticator(), { password: 'x' }))).status).toBe(201)
    expect((await userOf(host, email)).passwordSetAt).toBeNull()
  })

  test('an account without passwords loses its passkey to a click elsewhere, and a login by email recovers it', async () => {
    const host = await start({ settings: { signupWith: ['passkey'], passwordLogin: false, emailLogin: 'code' } })
    const { email, authenticator, link } = await newcomer(host)
    const clicked = await activate(host, link)
    expect([clicked.status, clicked.body.password_required]).toEqual([200, undefined])
    expect((await logIn(host, authenticator)).status).toBe(401)
    const asked = await post(host, '/email-login/request', { email })
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    expect((await post(host, '/email-login/confirm', { code, request_token: asked.body.request_token })).status).toBe(200)
  })

  test('a sign-up by the address alone and one by passkey go side by side', async () => {
    const host = await start({ settings: { passwordLogin: false, emailLogin: 'both', ...loginTemplate } })
    const email = newAddress()
    expect((await post(host, '/signup', { email })).status).toBe(201)
    await host.mails.next({ kind: 'activation', to: email })
    const { authenticator, browser, link } = await newcomer(host, { email })
    expect((await activate(host, link, {}, browser)).status).toBe(200)
    expect((await logIn(host, authenticator)).status).toBe(200)
    expect(mailsTo(host, email).filter((kind) => kind === 'activation')).toHaveLength(2)
  })

  test('with revealTakenEmail a taken address is 409, and the body is used up all the same', async () => {
    const host = await start({ settings: { revealTakenEmail: true } })
    const { email, browser, link } = await newcomer(host)
    await activate(host, link, {}, browser)
    const body = await signupBody(host, email, newAuthenticator())
    expect(codeOf(await signUp(host, body))).toEqual([409, 'EMAIL_TAKEN'])
    expect(codeOf(await signUp(host, body))).toEqual([422, 'PASSKEY_INVALID'])
  })

  test('the limits: signup counts both ways together, and the options have a limit of their own', async () => {
    const host = await start({
      options: {
        throttle: {
          mail: false,
          signup: { attempts: 2, windowSeconds: 60 },
          routes: { attempts: 3, windowSeconds: 60 },
        },
      },
    })
    const bodies = await Promise.all([1, 2].map(() => signupBody(host, newAddress(), newAuthenticator())))
    expect((await post(host, '/signup', { email: newAddress(), password })).status).toBe(201)
    expect((await signUp(host, bodies[0] as object)).status).toBe(201)
    expect(codeOf(await signUp(host, bodies[1] as object))).toEqual([429, 'SIGNUP_THROTTLED'])
    expect((await post(host, '/signup/passkey/options', { email: newAddress() })).status).toBe(200)
    expect((await post(host, '/signup/passkey/options', { email: newAddress() })).status).toBe(429)
  })
})

describe('auth.service', () => {
  const { start } = onSignups(sqlite)

  test('signs a person up with a passkey, and activates the account by it', async () => {
    const host = await start()
    const { service } = host.auth
    const [email, authenticator] = [newAddress(), newAuthenticator()]
    const { options, challenge } = await service.passkeySignupOptions({ email: email.toUpperCase() })
    const input = { email, credential: authenticator.create(options), challenge }
    const [user, link] = await service.signUpWithPasskey(input)
    if (typeof link !== 'object' || link === null) throw new Error('the account is pending')
    expect(user).toMatchObject({ email, isActive: false })
    await expect(service.signUpWithPasskey(input)).rejects.toMatchObject({ code: 'PASSKEY_INVALID' })

    const begun = await service.passkeyLoginOptions()
    const shown = { credential: authenticator.get(begun.options), challenge: begun.challenge }
    await expect(service.activate(link.token, { ...shown, challenge: 'x' })).rejects.toMatchObject({ code: 'PASSKEY_REJECTED' })
    expect(await service.activate(link.token, shown)).toMatchObject({ kind: 'session', userId: user.id })
    expect(await service.listPasskeys(user.id)).toMatchObject([{ createdAt: user.createdAt }])
    const again = await service.passkeySignupOptions({ email })
    const other = { email, credential: newAuthenticator().create(again.options), challenge: again.challenge }
    await expect(service.signUpWithPasskey(other)).rejects.toMatchObject({ code: 'EMAIL_TAKEN' })
  })

  test('refuses it while signupWith has no passkey', async () => {
    const { service } = (await start({ settings: { signupWith: ['password'] } })).auth
    const email = newAddress()
    await expect(service.passkeySignupOptions({ email })).rejects.toThrow('signupWith (AUTH_SIGNUP_WITH)')
    await expect(service.signUpWithPasskey({ email, credential: {}, challenge: '' })).rejects.toThrow('signupWith (AUTH_SIGNUP_WITH)')
  })
})

describe.each(all.filter(({ name }) => name !== 'sqlite'))('a payload of 2,000 characters, on $name', (database) => {
  test('is an error while people sign up with passkeys, with the statement that mends it, and none otherwise', async () => {
    const { knex } = await openedOn(database)
    await createAuthTables(knex)
    await knex.schema.alterTable('auth_user_tokens', (table) => table.string('payload', 2_000).alter())
    const bootWith = (settings: object) => boot(settings, { store: createKnexStore({ knex }), checkTables: { ignore: [] } })
    await expect((await bootWith({})).ready()).rejects.toThrow(/userTokens\.payload:width: .*needs 4096 characters/)
    await expect((await bootWith({ signupWith: ['password'] })).ready()).resolves.toBeUndefined()
  })
})
