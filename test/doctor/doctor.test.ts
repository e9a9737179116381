import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import express from 'express'
import knex from 'knex'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type AuthRouterOptions,
  createAuthRouter,
  createAuthTables,
  createKnexStore,
  type DoctorOptions,
  type DoctorReport,
  OidcClient,
} from '../../src'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import { checks } from '../../src/router/findings/doctor/examine'
import { isOldInnoDb } from '../../src/store/knex/check/reused-keys'
import { newUser } from '../../src/store/user-records'
import { newSession } from '../../src/testing/records'
import { createPeople } from '../readiness/wrong-tables'
import { testClock } from '../support/clock'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'

const secret = 'kJ7-Vb2x_Zq81LpTnYw4RsCd5GfHm0aE3uIoX9vQ6tN'
const mailer = { send: async () => {}, verify: async () => {} }
const healthySettings = { jwtSecret: secret, publicUrl: 'https://app.example.com', backendLinks: true }
const app = express().set('trust proxy', 'loopback')

type Changes = Partial<Omit<AuthRouterOptions, 'settings'>> & { settings?: Partial<AuthRouterOptions['settings']>; about?: DoctorOptions }

const provider = (changes: object = {}) =>
  new OidcClient({
    providerName: 'corp',
    clientId: 'id',
    clientSecret: 'secret',
    issuer: 'https://id.example.com',
    authorizeUrl: 'https://id.example.com/authorize',
    tokenUrl: 'https://id.example.com/token',
    jwksUri: 'https://id.example.com/keys',
    ...changes,
  })

let db: OpenDatabase

beforeAll(async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  db = await database.open()
  await createAuthTables(db.knex)
})

afterAll(() => db.close())

async function examined({ settings, about = { app }, ...options }: Changes = {}): Promise<DoctorReport> {
  const auth = createAuthRouter({
    settings: { ...healthySettings, ...settings },
    store: createKnexStore({ knex: db.knex }),
    environment: 'development',
    mailer,
    logger: logTap(),
    ...options,
  })
  return auth.doctor(about)
}

// NODE_ENV of the tests is `test`; the rules of production are asked for by option.
const inProduction = { environment: 'production' } as const
const social = { oauthEnabled: true }
const signingKey = (kid: string) => ({
  kid,
  alg: 'ES256' as const,
  privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
})

const templates = {
  activationUrlTemplate: 'https://app.example.com/a?t={token}',
  passwordResetUrlTemplate: 'https://app.example.com/r?t={token}',
  emailVerificationUrlTemplate: 'https://app.example.com/v?t={token}',
  emailChangeUrlTemplate: 'https://app.example.com/c?t={token}',
}

/** What makes exactly one check find something. */
const illnesses: Readonly<Record<string, Changes>> = {
  'secret-guessable': { settings: { jwtSecret: 'the quick brown fox jumps over the lazy dog at noon' } },
  'secret-reused': {
    settings: {
      jwtSecret: Buffer.alloc(32, secret).toString('base64'),
      mfaEnabled: true,
      mfaIssuer: 'App',
      mfaSecretKey: Buffer.alloc(32, secret).toString('base64'),
    },
  },
  'secret-rotation': { settings: { jwtSecret: [secret, `${secret}1`, `${secret}2`] } },
  'mfa-secret-plain': { settings: { mfaEnabled: true, mfaIssuer: 'App' } },
  'signing-keys-left': { settings: { jwtKeys: ['1', '2', '3', '4'].map(signingKey) } },
  'tables-unchecked': { checkTables: false },
  'database-clock': { now: () => new Date(Date.now() + 30_000) },
  'mail-links-in-bodies': { settings: { returnTokenInResponse: true } },
  'mail-handshake': { mailer: { ...mailer, verify: () => Promise.reject(new Error('535 refused')) } },
  'mail-undo': {
    settings: { publicUrl: '', backendLinks: false, ...templates },
  },
  'public-url': { settings: { publicUrl: '', backendLinks: false, ...templates, undoUrlTemplate: 'https://app.example.com/u?t={token}' } },
  environment: { environment: 'development' },
  'cookie-secure': { settings: { tokenDelivery: 'cookie', cookieSecure: false } },
  'cookie-domain': { settings: { tokenDelivery: 'cookie', cookieDomain: 'other.example' } },
  'cookie-samesite': { settings: { tokenDelivery: 'cookie', cookieSamesite: 'none' } },
  'proxy-untrusted': { about: { app: express() } },
  'proxy-everyone': { about: { app: express().set('trust proxy', true) } },
  'timing-grid': { ...inProduction, settings: { timingGridMilliseconds: 0 } },
  'counters-shared': { about: { app, processes: 2 } },
  'counters-answer': { throttle: { counters: { ...memoryCounters({}), increment: () => Promise.reject(new Error('ECONNREFUSED')) } } },
  'limits-off': { throttle: { mfa: false } },
  'provider-discovery': {
    settings: social,
    providers: { corp: Object.assign(provider(), { prepare: () => Promise.reject(new Error('ENOTFOUND')) }) },
  },
  'provider-redirect-uri': { settings: social, providers: { corp: provider({ redirectUri: 'https://app.example.com/elsewhere' }) } },
  'provider-name': { settings: social, providers: { other: provider() } },
  'provider-profile': { settings: social, providers: { corp: provider({ scopes: ['email'] }) } },
  'provider-off': { settings: { oauthEnabled: false }, providers: { corp: provider() } },
  'no-login': { settings: { localAccountsEnabled: false } },
  'linking-unproven': { settings: { ...social, autoActivate: true, oauthLinkByVerifiedEmail: true }, providers: { corp: provider() } },
  'password-length': { settings: { passwordMinLength: 8 } },
  'access-token-lifetime': { settings: { accessTokenTtlSeconds: 7_200 } },
  'session-lifetime': { settings: { refreshFamilyTtlSeconds: 400 * 86_400 } },
  'fresh-session-lifetime': { settings: { freshSessionSeconds: 7_200 } },
  'reset-link-lifetime': { settings: { passwordResetTtlSeconds: 86_400 } },
  'options-without-effect': { issueMfaToken: () => {} },
}

test('a healthy app has no finding, in development and in production', async () => {
  for (const changes of [{}, { ...inProduction }, { settings: social, providers: { corp: provider() } }]) {
    const { ok, findings } = await examined(changes)
    expect({ ok, findings: findings.filter(({ check }) => check !== 'environment') }).toEqual({ ok: true, findings: [] })
  }
})

describe('each check finds what it is there for, and nothing else does', () => {
  test.each(Object.entries(illnesses))('%s', async (name, changes) => {
    const { findings } = await examined({ environment: 'test', ...changes })
    const found = findings.filter(({ check }) => check === name)

    expect(found).toHaveLength(1)
    expect(findings.map(({ check }) => check).filter((check) => check !== name && !(together[name] ?? []).includes(check))).toEqual([])
    for (const { what, why, fix } of found) for (const sentence of [what, why, fix]) expect(sentence.length).toBeGreaterThan(10)
    expect(JSON.stringify(findings)).not.toContain(secret)
  })
})

const together: Readonly<Record<string, readonly string[]>> = { 'mail-undo': ['public-url'] }

test('secret-guessable: random hexadecimal digits are no weak secret, and few different characters are one', async () => {
  const found = async (jwtSecret: string) =>
    (await examined({ environment: 'test', settings: { jwtSecret } })).findings.map(({ check }) => check)

  expect(await found('4a9f04b1c4a90f1b4cfa90b14c4f9a0b14ca9f0b')).toEqual([]) // 8 different ones
  expect(await found('4a9f04b1149a90f1b4fa90b1414f9a0b149a9f0b')).toEqual(['secret-guessable']) // 7
  expect(await found('kz7qw2xykv7zqx2wyvk7wzq2xkvy7q2zwxkv')).toEqual(['secret-guessable']) // 9, which are no hexadecimal digits
})

test('no-login: passkeys alone are a way to sign in', async () => {
  const settings = { localAccountsEnabled: false, passkeysEnabled: true, webauthnRpName: 'App' }

  expect((await examined({ environment: 'test', settings })).findings).toEqual([])
})

describe('checks of the store', () => {
  const store = (options: object) => createKnexStore({ knex: db.knex, ...options })
  const found = async (changes: Changes) => (await examined({ environment: 'test', ...changes })).findings.map(({ check }) => check)

  test('sessions-missing and proofs-missing, by what the tables lack', async () => {
    expect(await found({ store: store({ sessions: false }) })).toEqual(['sessions-missing'])
    expect(await found({ store: store({ users: { columns: { emailVerifiedAt: false } } }) })).toContain('proofs-missing')
  })

  test('database-in-memory, in production', async () => {
    const memory = await sqlite({ memory: true })
    expect(await found({ ...inProduction, store: createKnexStore({ knex: memory.knex }) })).toContain('database-in-memory')
    expect(await found({ store: createKnexStore({ knex: memory.knex }) })).not.toContain('database-in-memory')
    await memory.close()
  })

  test('database-writers, where SQLite has a pool', async () => {
    const several = await sqlite({ pool: { min: 0, max: 2 } })
    expect(await found({ store: createKnexStore({ knex: several.knex }) })).toEqual(['database-writers'])
    await several.close()
  })

  test('ids-reused, where SQLite gives the id of a deleted account again', async () => {
    for (const [key, isFound] of [
      ['', true],
      ['autoincrement', false],
    ] as const) {
      const { knex, close } = await sqlite({ memory: true })
      await createAuthTables(knex)
      const columns = await knex.raw("select name from pragma_table_info('auth_users') where name <> 'id'")
      const others = columns.map(({ name }: { name: string }) => name).join(', ')
      await knex.raw(`create table people (id integer primary key ${key}, ${others})`)
      const own = createKnexStore({ knex, users: { table: 'people', ids: 'integer' } })
      expect((await found({ store: own })).includes('ids-reused')).toBe(isFound)
      await close()
    }
    expect([isOldInnoDb('5.7.44'), isOldInnoDb('8.0.36'), isOldInnoDb('10.2.3-MariaDB'), isOldInnoDb('11.4.2-MariaDB-log')]).toEqual([
      true,
      false,
      true,
      false,
    ])
  })

  test('tables, and says which operation a warning makes fail', async () => {
    const [database] = await databases()
    const opened = await database?.open()
    if (!opened) throw new Error('no database')
    const tables = await createPeople(opened.knex, 'sqlite', { full_name: 'varchar(200) not null' })
    const { findings } = await examined({ store: createKnexStore({ knex: opened.knex, ...tables }), settings: { mfaEnabled: false } })
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'tables', what: expect.stringContaining('full_name'), why: 'Sign-up without a name fails.' }),
    )
    await opened.close()
  })

  test('tables, with the key of each fault, and whoever asks again after mending it is told that all is well', async () => {
    const broken = await sqlite({})
    await broken.knex.schema.alterTable('auth_users', (table) => table.renameColumn('name', 'called'))
    const { findings, ok } = await examined({ environment: 'test', store: createKnexStore({ knex: broken.knex }) })
    expect(ok).toBe(false)
    expect(findings).toEqual([expect.objectContaining({ check: 'tables', level: 'error', what: expect.stringContaining('users.name') })])
    await broken.knex.schema.alterTable('auth_users', (table) => table.renameColumn('called', 'name'))
    expect(await found({ store: createKnexStore({ knex: broken.knex }) })).toEqual([])
    await broken.close()
  })

  test('an adapter of the host is asked less, and that is said', async () => {
    const { findings, skipped } = await examined({ environment: 'test', store: { ...store({}) } })
    expect(findings).toEqual([])
    expect(skipped.map(({ check }) => check)).toEqual(expect.arrayContaining(['tables', 'database-clock', 'database-pool']))
  })
})

async function sqlite(options: object): Promise<OpenDatabase> {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  const opened = await database.open(options)
  await createAuthTables(opened.knex)
  return opened
}

describe.each(await databases())('on $name', ({ name, open }) => {
  test('a healthy app is silent in under three seconds, and a pool of one is a finding', async () => {
    const opened = await open()
    await createAuthTables(opened.knex)
    const begin = performance.now()
    expect((await examined({ ...inProduction, store: createKnexStore({ knex: opened.knex }) })).findings).toEqual([])
    expect(performance.now() - begin).toBeLessThan(3_000)
    await opened.close()
    if (name === 'sqlite') return
    const single = await open({ pool: { min: 0, max: 1 } })
    await createAuthTables(single.knex)
    const { findings } = await examined({ environment: 'test', store: createKnexStore({ knex: single.knex }) })
    expect(findings.map(({ check }) => check)).toEqual(['database-pool'])
    await single.close()
  })
})

describe.each(await databases())('accounts with a factor and an unverified address, on $name', ({ name, open }) => {
  test('doctor counts them, says what a reset does, and its UPDATE marks those without a recent login as verified (25.4.4)', async () => {
    const opened = await open()
    await createAuthTables(opened.knex)
    await opened.knex.schema.renameTable('auth_users', 'people')
    await opened.knex.schema.alterTable('people', (table) => table.renameColumn('email_verified_at', 'proven_on'))
    const store = createKnexStore({ knex: opened.knex, users: { table: 'people', columns: { emailVerifiedAt: 'proven_on' } } })
    const now = new Date('2026-03-01T12:00:00.000Z')
    const days = (count: number) => new Date(now.getTime() - count * 86_400_000)
    const emails = ['recent', 'old', 'never', 'proven', 'plain']
    const [recent, old, never, proven, plain] = emails.map((who) => `${who}@example.test`)
    for (const email of [recent, old, never, proven, plain] as string[])
      await store.users.insert({
        ...newUser(days(90), {
          email,
          name: null,
          hashedPassword: '!',
          lastLoginAt: email === never ? null : days(email === old ? 31 : 29),
        }),
        totpEnabledAt: email === plain ? null : days(60),
        emailVerifiedAt: email === proven ? days(60) : null,
      })
    const report = async () =>
      (await examined({ environment: 'test', store, now: () => now })).findings.find(({ check }) => check === 'factor-unproven')

    const finding = await report()

    expect(finding).toMatchObject({ level: 'warning', what: '3 accounts have a second factor and an unverified address.' })
    expect(finding?.why).toContain('it is a take-over: it removes the second factor')
    expect(finding?.fix).toContain('It makes the mailbox the owner of these accounts: update ')
    await opened.knex.raw(finding?.fix.split('accounts: ')[1] ?? '')
    const marked: string[] = []
    for (const email of [recent, old, never, proven, plain] as string[])
      if ((await store.users.findByEmail(email))?.emailVerifiedAt?.getTime() === now.getTime()) marked.push(email)
    expect(marked).toEqual([old])
    expect((await report())?.what, name).toContain('2 accounts have')
    await opened.close()
  })
})

test('a clock that is a minute off is an error, not a warning', async () => {
  const { findings } = await examined({ environment: 'test', now: () => new Date(Date.now() - 90_000) })
  expect(findings).toEqual([expect.objectContaining({ check: 'database-clock', level: 'error' })])
})

test('what hangs is told within five seconds, and a check that fails stops no other', async () => {
  const begin = performance.now()
  const never = new Promise<never>(() => {})
  const hanging = { ...memoryCounters({}), increment: () => never }
  const { findings } = await examined({
    environment: 'test',
    mailer: { ...mailer, verify: () => never },
    throttle: { counters: hanging },
  })
  expect(performance.now() - begin).toBeLessThan(6_000)
  expect(findings.map(({ check, level, what }) => [check, level, what.includes('4 seconds')])).toEqual([
    ['mail-handshake', 'error', true],
    ['counters-answer', 'error', true],
  ])
}, 20_000)

test.each([[undefined], [false]] as const)(
  'a database that takes the connection and stays silent is an error, with checkTables %s',
  async (checkTables) => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const hanging = knex({
      client: 'pg',
      connection: { host: '127.0.0.1', port, user: 'app', database: 'app' },
      log: { error() {}, warn() {} },
    })
    try {
      const report = await examined({
        environment: 'test',
        store: createKnexStore({ knex: hanging }),
        ...(checkTables === false && { checkTables }),
      })
      expect([report.ok, report.findings.filter(({ level }) => level === 'error').map(({ what }) => what)]).toEqual([
        false,
        ['The database does not answer: no answer within 4 seconds'],
      ])
    } finally {
      for (const socket of sockets) socket.destroy()
      silent.close()
      await hanging.destroy()
    }
  },
  20_000,
)

test('an error of another package is told by its code alone: its message may hold a password', async () => {
  const refused = () => Promise.reject(Object.assign(new Error('login failed for app with hunter2'), { code: 'EAUTH' }))
  const report = await examined({
    environment: 'test',
    settings: social,
    mailer: { ...mailer, verify: refused },
    throttle: { counters: { ...memoryCounters({}), increment: refused } },
    providers: { corp: Object.assign(provider(), { prepare: refused }) },
  })
  expect(report.findings.map(({ check, what }) => [check, what.includes('EAUTH')])).toEqual([
    ['mail-handshake', true],
    ['counters-answer', true],
    ['provider-discovery', true],
  ])
  expect(JSON.stringify(report)).not.toContain('hunter2')
}, 20_000)

test('without the app, without verify() and without shared counters the checks of these are skipped, and say so', async () => {
  const { findings, skipped } = await examined({ environment: 'test', about: {}, mailer: { send: mailer.send } })
  expect(findings).toEqual([])
  expect(skipped.map(({ check }) => check).sort()).toEqual(['counters-answer', 'mail-handshake', 'proxy-everyone', 'proxy-untrusted'])
})

test('docs/doctor.md names every check, and no other', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/doctor.md'), 'utf8')
  const named = [...page.matchAll(/^\| `([a-z][a-z-]+)` \|/gm)].map(([, name]) => name)
  expect(named).toEqual([...checks.map(({ name }) => name), 'boot', 'peers', 'env-file-tracked'])
  const start = readFileSync(join(import.meta.dirname, '../../docs/README.md'), 'utf8')
  expect(start).toContain(`${named.length} checks, ${checks.length} of a running app and ${named.length - checks.length} of its folder`)
})

/** Empty, and closed after the test. */
async function openStore() {
  const [database] = await databases()
  const opened = await database?.open()
  if (!opened) throw new Error('no database')
  onTestFinished(() => opened.close())
  await createAuthTables(opened.knex)
  return { knex: opened.knex, store: createKnexStore({ knex: opened.knex }), clock: testClock(new Date('2026-03-01T12:00:00.000Z')) }
}

test('purge-overdue says when the last purge ended and that more than 10,000 rows wait, a day after it', async () => {
  const { store, knex, clock } = await openStore()
  const report = async (purge?: false) =>
    (await examined({ environment: 'test', store, now: clock.now, ...(purge === false && { purge }) })).findings.find(
      ({ check }) => check === 'purge-overdue',
    )
  const lastPurgeAt = async () => (await examined({ environment: 'test', store, now: clock.now })).lastPurgeAt
  expect([await report(), await lastPurgeAt()]).toEqual([undefined, undefined])

  const { id } = await store.users.insert(newUser(clock.now(), { email: 'ana@example.com', name: null, hashedPassword: 'none' }))
  await store.transaction(async ({ sessions }) => {
    for (let number = 0; number < 10_000; number += 1) await sessions?.insert(newSession(id, { expiresAt: clock.now() }))
  })
  expect(await report()).toBeUndefined()
  await store.sessions.insert(newSession(id, { expiresAt: clock.now() }))
  expect(await report()).toMatchObject({
    level: 'warning',
    what: 'There was no purge yet, and expired rows wait: more than 10000 of sessions.',
    fix: expect.stringContaining('Keep a process of the app running'),
  })
  await store.leases.recordRun('purge', clock.now())
  expect([await report(), await lastPurgeAt()]).toEqual([undefined, clock.now()])
  clock.advance(86_400)
  expect(await report(false)).toMatchObject({
    what: 'The last purge ended at 2026-03-01T12:00:00.000Z, and expired rows wait: more than 10000 of sessions.',
    fix: expect.stringContaining('Remove `purge: false`'),
  })
  await knex.schema.dropTable('auth_leases')
  expect(await report()).toMatchObject({ what: 'There is no table auth_leases, so no purge runs by itself.' })
  expect(await report(false)).toBeUndefined()
})

test('deletion-overdue names an account whose deletion has been due for over a day', async () => {
  const { store, clock } = await openStore()
  const report = async () =>
    (
      await examined({ environment: 'test', store, now: clock.now, settings: { accountDeletion: 'soft', accountDeletionDays: 7 } })
    ).findings.find(({ check }) => check === 'deletion-overdue')
  const record = newUser(clock.now(), { email: 'ana@example.com', name: null, hashedPassword: 'none' })
  const { id } = await store.users.insert({ ...record, isActive: false, deletionRequestedAt: clock.now() })
  clock.advance(8 * 86_400 - 1)
  expect(await report()).toBeUndefined()
  clock.advance(1)
  expect(await report()).toMatchObject({
    level: 'warning',
    what: expect.stringContaining(id),
    fix: expect.stringContaining('doorward purge'),
  })
  await store.users.update(id, { isActive: true, deletionRequestedAt: null })
  expect(await report()).toBeUndefined()
})

test('outbox-waiting says how many events wait for longer than an hour, and what to do', async () => {
  const { store, clock } = await openStore()
  const report = async () =>
    (await examined({ environment: 'test', store, now: clock.now, outbox: true })).findings.find(({ check }) => check === 'outbox-waiting')
  const event = { id: randomUUID(), name: 'activation', userId: 'person', payload: '{"userId":"person"}', createdAt: clock.now() }
  await store.outbox.insert([event])
  clock.advance(3_599)
  expect(await report()).toBeUndefined()
  clock.advance(1)
  expect(await report()).toMatchObject({
    level: 'warning',
    what: '1 events of the outbox wait, 0 of them after a failed delivery. The oldest is of 2026-03-01T12:00:00.000Z.',
    fix: expect.stringContaining('auth.outbox.deliver(handler)'),
  })
  const [taken] = await store.outbox.take({ now: clock.now(), until: clock.now(), most: 1 })
  if (taken) await store.outbox.markFailed({ ...taken, nextAt: clock.now() })
  expect(await report()).toMatchObject({ fix: expect.stringContaining('auth.outbox.discard(id)') })
})

test('every check is broken by a test of this file, of test/shared-realm.test.ts, or of test/wrong-setups', () => {
  const broken = [
    ...Object.keys(illnesses),
    'tables',
    'database-pool',
    'database-in-memory',
    'database-writers',
    'sessions-missing',
    'proofs-missing',
    'factor-unproven',
    'device-unprotected',
    'purge-overdue',
    'deletion-overdue',
    'outbox-waiting',
    'ids-reused',
    'shared-realm',
    'seen-in-requests',
  ]
  expect(checks.length).toBeGreaterThanOrEqual(30)
  expect(broken.sort()).toEqual(checks.map(({ name }) => name).sort())
})
