import { generateKeyPairSync, randomBytes } from 'node:crypto'
import express from 'express'
import { knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type AuthRouterOptions,
  ConfigurationError,
  createAuthRouter,
  createAuthTables,
  createGuards,
  createKnexStore,
  errorHandler,
} from '../src'
import { authenticator } from './mfa/authenticator'
import { mfaSettings } from './mfa/people'
import { type Mounted, mount, testSecret } from './support/app'
import { appPerTest } from './support/app-per-test'
import { databases } from './support/databases'
import { logTap } from './support/log-tap'
import { sendRaw } from './support/send-raw'

const start = appPerTest()
const password = 'a quiet harbour in winter'
const privateKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const jwtKeys = [{ kid: '2026-11', alg: 'ES256', privateKey }] as const
const realms = ['', 'staff', 'customers'] as const

/** Routers with one secret on one database, so that nothing but the realm keeps their tokens apart. */
async function inRealms(settings: Partial<AuthRouterOptions['settings']>): Promise<Record<(typeof realms)[number], Mounted>> {
  const first = await start({ settings: { ...settings, autoActivate: true } })
  const of = (realm: string) => mount({ knex: first.knex, settings: { ...settings, autoActivate: true, realm } })
  const [staff, customers] = [await of('staff'), await of('customers')]
  opened.push(staff, customers)
  return { '': first, staff, customers }
}

const opened: Mounted[] = []
afterEach(async () => {
  for (const host of opened.splice(0)) await host.close()
})

const signUp = async (host: Mounted, email: string) =>
  (await host.browser().post('/auth/signup').send({ email, password }).expect(201)).body
const meOf = async (host: Mounted, token: string) => (await host.browser().get('/auth/me').set('Authorization', `Bearer ${token}`)).status

describe('a realm (25.7.1)', () => {
  test.each([
    ['the secret', {}],
    ['jwtKeys', { jwtKeys }],
  ])('with %s, an access token and a refresh token work in their realm alone, also at guards alone', async (_what, settings) => {
    const hosts = await inRealms(settings)
    for (const realm of realms) {
      const { access_token: token, refresh_token } = await signUp(hosts[realm], `${realm || 'none'}@example.test`)
      for (const other of realms) {
        const host = hosts[other]
        const keys = 'jwtKeys' in settings ? settings : { jwtSecret: testSecret }
        const guards = createGuards({ settings: { ...keys, realm: other }, now: host.clock.now })
        const app = express().use(guards.requireAuth(), (_req, res) => void res.json({}))
        app.use(errorHandler({ logger: logTap() }))
        const { status } = await sendRaw(app, { method: 'GET', path: '/', headers: { Authorization: `Bearer ${token}` } })
        const expected = realm === other ? 200 : 401
        expect([realm, other, status, await meOf(host, token)]).toEqual([realm, other, expected, expected])
      }
      for (const other of realms.filter((one) => one !== realm))
        expect((await hosts[other].browser().post('/auth/refresh').send({ refresh_token })).status).toBe(401)
      expect((await hosts[realm].browser().post('/auth/refresh').send({ refresh_token })).status).toBe(200)
    }
  })

  test('a challenge, a cookie of a login at a provider and a session cookie work in their realm alone', async () => {
    const { staff, customers } = await inRealms({ ...mfaSettings, tokenDelivery: 'session', publicUrl: 'https://app.example.test' })
    const email = 'ada@example.test'
    const browser = staff.browser()
    const { body } = await browser.post('/auth/session/login').send({ email: (await signUpInSession(staff, email)).email, password })
    const { secret } = await staff.auth.service.enrollTotp(body.user_id)
    const app = authenticator(secret, staff.clock)
    await staff.auth.service.confirmTotp({ userId: body.user_id, amr: ['pwd'], code: app.code() })
    const challenge = (await staff.browser().post('/auth/session/login').send({ email, password })).body.mfa_token
    const verify = (host: Mounted) => host.browser().post('/auth/session/mfa/verify').send({ mfa_token: challenge, code: app.nextCode() })
    expect((await verify(customers)).body.code).toBe('MFA_TOKEN_INVALID')
    expect((await verify(staff)).status).toBe(200)
    const login = await staff.browser().get('/auth/oauth/corp/login')
    const state = new URL(String(login.headers['location'])).searchParams.get('state')
    const cookie = String(login.headers['set-cookie']).split(';')[0] ?? ''
    const callBack = (host: Mounted) => host.browser().get(`/auth/oauth/corp/callback?state=${state}`).set('Cookie', cookie)
    expect((await callBack(customers)).body.code).toBe('OAUTH_STATE_MISMATCH')
    expect((await callBack(staff)).body.code).toBe('OAUTH_CODE_MISSING')
  })

  async function signUpInSession(host: Mounted, email: string) {
    await host.browser().post('/auth/signup').send({ email, password }).expect(201)
    return { email }
  }
})

describe('two routers of one process with one secret and realm (25.7.1)', async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  const open = async (options: { memory?: boolean } = {}) => {
    const { knex, close } = await database.open(options)
    closing.push(close)
    await createAuthTables(knex)
    return knex
  }
  const closing: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })
  const secretOf = () => randomBytes(48).toString('base64')
  const boot = (options: Omit<AuthRouterOptions, 'settings'>, settings: AuthRouterOptions['settings']) =>
    createAuthRouter({ logger: logTap(), checkTables: false, ...options, settings })

  test('do not start on two users tables of one database, and the error names the realm', async () => {
    const knex = await open()
    const settings = { jwtSecret: secretOf(), linksInProduction: true, publicUrl: 'https://app.example.test' }
    const routers = [boot({ store: createKnexStore({ knex }) }, settings)]
    const staff = () => createKnexStore({ knex, users: { table: 'staff' } })
    expect(() => boot({ store: staff() }, settings)).toThrow(ConfigurationError)
    expect(() => boot({ store: staff() }, settings)).toThrow(/different users tables or databases.*realm of its own/)
    routers.push(boot({ store: staff() }, { ...settings, realm: 'staff' }), boot({ store: createKnexStore({ knex }) }, settings))
    expect(routers).toHaveLength(3)
  })

  test.each(['production', 'development'] as const)(
    'do not start on two databases in %s; in a test they do, and doctor says so',
    async (environment) => {
      const [one, other] = [await open(), await open()]
      const settings = { jwtSecret: secretOf(), linksInProduction: true, publicUrl: 'https://app.example.test' }
      const first = boot({ store: createKnexStore({ knex: one }), environment }, settings)
      const staff = { store: createKnexStore({ knex: other }), prefix: '/staff/auth' }
      expect(() => boot({ ...staff, environment }, settings)).toThrow(/\/auth and \/staff\/auth.*different users tables or databases/)
      const tested = boot({ ...staff, environment: 'test' }, settings)
      const checks = (await tested.doctor()).findings.map(({ check }) => check)
      expect(checks).toContain('shared-realm')
      expect(first.guards).toBeDefined()
    },
  )

  test.each([
    ['two databases', [{ connection: { database: 'a' } }, { connection: 'postgres://db.example.com/b' }]],
    [
      'two schemas of one database',
      [
        { connection: { database: 'a' }, searchPath: 'a' },
        { connection: { database: 'a' }, searchPath: ['b'] },
      ],
    ],
  ] as const)('do not start on %s of a server under two prefixes, as two tenants may have them', (_what, [one, other]) => {
    const settings = { jwtSecret: secretOf(), linksInProduction: true, publicUrl: 'https://app.example.test' }
    const tenant = (config: object, prefix: string) =>
      boot({ store: createKnexStore({ knex: knex({ client: 'pg', ...config }) }), environment: 'production', prefix }, settings)
    const routers = [tenant(one, '/a/auth')]
    expect(() => tenant(other, '/b/auth')).toThrow(/\/a\/auth and \/b\/auth.*realm of its own/)
    routers.push(tenant(one, '/b/auth'))
    expect(routers).toHaveLength(2)
  })

  test.each([
    ['a URL and an object', { connection: 'postgres://db.example.com/app%2D1?sslmode=require' }, { connection: { database: 'app-1' } }],
    ['with and without a search path', { connection: { database: 'app' }, searchPath: 'public' }, { connection: { database: 'app' } }],
    [
      'a search path as text and as a list',
      { connection: { database: 'app' }, searchPath: 'a, b' },
      { connection: { database: 'app' }, searchPath: ['a', 'b'] },
    ],
    ['with and without a schema', { connection: { database: 'app' } }, { connection: { database: 'app' }, table: 'public.auth_users' }],
  ])('start on one database that is named in two ways: %s', (_what, one: object, other: object) => {
    const settings = { jwtSecret: secretOf(), linksInProduction: true, publicUrl: 'https://app.example.test' }
    const routers = [one, other]
      .map(({ table = 'auth_users', ...config }: { table?: string }, index) => ({ table, config, prefix: `/${index}/auth` }))
      .map(({ table, config, prefix }) =>
        boot(
          { store: createKnexStore({ knex: knex({ client: 'pg', ...config }), users: { table } }), environment: 'production', prefix },
          settings,
        ),
      )
    expect(routers).toHaveLength(2)
  })

  test('start on two databases where one of them is the database of a test', async () => {
    const [one, other] = [await open(), await open()]
    const settings = { jwtSecret: secretOf(), linksInProduction: true, publicUrl: 'https://app.example.test' }
    const tested = boot({ store: createKnexStore({ knex: one }), environment: 'test', prefix: '/api/auth' }, settings)
    expect(() => boot({ store: createKnexStore({ knex: other }), environment: 'production' }, settings)).not.toThrow()
    expect(tested.guards).toBeDefined()
  })
})
