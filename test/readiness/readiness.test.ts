import express from 'express'
import supertest from 'supertest'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type AuthRouterOptions,
  type AuthStore,
  ConfigurationError,
  checkTables,
  createAuthRouter,
  createAuthTables,
  createKnexStore,
  migrationSource,
  purgeExpired,
  type TableFinding,
} from '../../src'
import { createReadiness } from '../../src/router/findings/readiness/readiness'
import { baseUrl, testSecret } from '../support/app'
import { testClock } from '../support/clock'
import { databases, type OpenDatabase } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { mailbox } from '../support/mailbox'
import { createPeople, PEOPLE } from './wrong-tables'

const credentials = { email: 'ana@example.test', password: 'three quiet green rivers' }

let opened: OpenDatabase | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

async function open() {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('SQLite is always there')
  opened = await sqlite.open({ memory: true })
  return opened.knex
}

function start(store: AuthStore, options: Partial<AuthRouterOptions> = {}) {
  const [clock, logs] = [testClock(), logTap()]
  const settings = { jwtSecret: testSecret, publicUrl: baseUrl, autoActivate: true }
  const auth = createAuthRouter({
    settings,
    store,
    environment: 'test',
    passwordHasher: fastHasher(),
    logger: logs,
    now: clock.now,
    ...options,
  })
  const app = express().use('/auth', auth)
  const post = (path: string, body: object) => supertest(app).post(`/auth${path}`).send(body)
  const said = (level: string) => logs.entries.filter((entry) => entry.level === level)
  return { auth, app, clock, logs, post, said, logIn: () => post('/login', credentials), signUp: () => post('/signup', credentials) }
}

describe('a router over tables that have an error', () => {
  test('refuses requests that need them with 503, a plain sentence and Retry-After, in both languages', async () => {
    const { logIn } = start(createKnexStore({ knex: await open() }))

    const refused = await logIn()
    expect(refused.status).toBe(503)
    expect(refused.headers['retry-after']).toBe('60')
    expect(refused.body).toEqual({ code: 'SERVICE_UNAVAILABLE', detail: 'Sign-in is not available at the moment.', details: {} })
    expect((await logIn().set('Accept-Language', 'pt-BR')).body.detail).toBe('O login não está disponível no momento.')
  })

  test('says each finding once at its start, and once a minute that requests are refused', async () => {
    const knex = await open()
    const tables = await createPeople(knex, 'sqlite', { enabled: null, full_name: 'text not null' })
    const { logIn, clock, said } = start(createKnexStore({ knex, ...tables }))

    for (let request = 0; request < 3; request++) expect((await logIn()).status).toBe(503)
    expect(said('error').map(({ fields }) => fields)).toEqual([
      {
        key: 'users.enabled',
        table: 'people',
        column: 'enabled',
        sql: 'alter table "people" add column "enabled" boolean not null default 1',
      },
    ])
    expect(
      said('warn')
        .filter(({ message }) => message.includes('people'))
        .map(({ message }) => message),
    ).toEqual([expect.stringContaining('full_name')])
    clock.advance(61)
    for (let request = 0; request < 3; request++) await logIn()
    expect(said('error')).toHaveLength(2)
    expect(said('error')[1]?.message).toContain('users.enabled')
  })

  test('serves once they are made: the first request after a second looks again', async () => {
    const knex = await open()
    const { auth, logIn, signUp, clock } = start(createKnexStore({ knex }))
    expect((await signUp()).status).toBe(503)
    await createAuthTables(knex)
    clock.advance(1)

    expect((await signUp()).status).toBe(201)
    expect((await logIn()).status).toBe(200)
    await auth.ready()
  })

  test('looks again after 1, 2, 4 seconds, and not before', async () => {
    const check = vi.fn(async () => [fault('users.email:unique')])
    const { logIn, clock } = start({ ...createKnexStore({ knex: await open() }), check })
    await logIn()
    for (const [seconds, checks] of [
      [0, 1],
      [1, 2],
      [1, 2],
      [1, 3],
      [3, 3],
      [1, 4],
    ] as const) {
      clock.advance(seconds)
      await logIn()
      expect(check).toHaveBeenCalledTimes(checks)
    }
  })

  test('leaves alone what asks no table', async () => {
    const { app } = start(createKnexStore({ knex: await open() }))
    expect((await supertest(app).get('/auth/openapi.json')).status).toBe(200)
  })

  test('refuses inside a transaction of the host too, and waits for nothing there', async () => {
    const knex = await open()
    const store = createKnexStore({ knex })
    const { auth } = start(store)
    await expect(auth.ready()).rejects.toBeInstanceOf(ConfigurationError)
    await knex.transaction(async (trx) => {
      await expect(auth.service.using(store.using(trx)).findUser('x')).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    })
  })
})

describe('auth.ready()', () => {
  test('rejects with every error at once, its key and the SQL that mends it', async () => {
    const knex = await open()
    const tables = await createPeople(knex, 'sqlite', { enabled: null, mail: 'text not null' })
    const { auth } = start(createKnexStore({ knex, ...tables }))

    const error = await auth.ready().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigurationError)
    const { message } = error as Error
    expect(message).toContain('- users.enabled: The table people has no column enabled')
    expect(message).toContain('- users.mail:unique: people (mail) has no unique rule')
    expect(message).toContain('create unique index "people_mail_unique" on "people" ("mail");')
  })

  test('resolves when the tables are mended meanwhile', async () => {
    const knex = await open()
    const { auth, said } = start(createKnexStore({ knex }))
    await expect(auth.ready()).rejects.toThrow('7 migrations are pending: run `npx doorward migrate up`')
    await createAuthTables(knex)
    await auth.ready()
    expect(said('info').map(({ message }) => message)).toContain(
      'doorward: the tables have no errors any more, so doorward accepts requests.',
    )
  })

  test('resolves for tables with warnings', async () => {
    const knex = await open()
    const tables = await createPeople(knex, 'sqlite', { full_name: 'text not null' })
    await start(createKnexStore({ knex, ...tables })).auth.ready()
  })

  test('need not be called: nobody hears of the rejection', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    start(createKnexStore({ knex: await open() }))
    await new Promise((resolve) => setTimeout(resolve, 100))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('resolves at once for an adapter without check(), and for one whose check() fails', async () => {
    const store = createKnexStore({ knex: await open() })
    await start({ ...store }).auth.ready()
    const { auth, said } = start({ ...store, check: () => Promise.reject(new Error('a secret')) })
    await auth.ready()
    expect(said('warn').map(({ message }) => message)).toContain(
      'doorward: check() of the store failed. doorward accepts requests without the check.',
    )
  })
})

describe('option checkTables', () => {
  test('false: the tables are not looked at', async () => {
    const knex = await open()
    const look = vi.fn()
    knex.on('query', look)
    await start(createKnexStore({ knex }), { checkTables: false }).auth.ready()
    expect(look).not.toHaveBeenCalled()
  })

  test('ignore: a finding that does not apply is no finding, of an adapter too', async () => {
    const knex = await open()
    const tables = await createPeople(knex, 'sqlite', { tenant_id: 'text not null' })
    const store = createKnexStore({ knex, ...tables })
    const { auth, logs } = start(store, { checkTables: { ignore: ['users.tenant_id'] } })
    await auth.ready()
    expect(logs.text()).not.toContain('tenant_id')
    await start({ ...store, check: async () => [fault('x:y')] }, { checkTables: { ignore: ['x:y'] } }).auth.ready()
  })

  test.each([true, { ignore: 'users' }, { ignore: [1] }, {}, { ignore: [], more: 1 }])('%j is refused', async (checkTables) => {
    const store = createKnexStore({ knex: await open() })
    expect(() => start(store, { checkTables } as never)).toThrow(/checkTables/)
  })
})

test('a check that hangs holds a request for five seconds in all, and says so once', async () => {
  const knex = await open()
  await createAuthTables(knex)
  const { signUp, logIn, said } = start({ ...createKnexStore({ knex }), check: () => new Promise(() => undefined) })
  const began = performance.now()
  expect((await signUp()).status).toBe(201)
  expect(performance.now() - began).toBeGreaterThan(4_000)
  expect((await logIn()).status).toBe(200)
  expect(said('warn').filter(({ message }) => message.includes('more than 5 seconds'))).toHaveLength(1)
})

test('a check that hangs is given up after half a minute, so that the next one can find the tables mended', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const answers = [Promise.resolve([fault('users')]), new Promise<TableFinding[]>(() => undefined), Promise.resolve([])]
    let checks = 0
    const { now, advance } = testClock()
    const readiness = createReadiness({ check: () => answers[checks++] ?? Promise.resolve([]), logger: logTap(), now })
    await expect(readiness.pass()).rejects.toThrow()
    advance(2)
    const hanging = readiness.pass().catch(() => 'refused')
    await vi.advanceTimersByTimeAsync(31_000)
    expect(await hanging).toBe('refused')
    advance(60)
    await readiness.pass()
    expect([readiness.isOpen, checks]).toEqual([true, 3])
  } finally {
    vi.useRealTimers()
  }
})

test('a database that cannot be reached is one finding, which holds no address', async () => {
  const knex = await open()
  await knex.destroy()
  const { auth, logs } = start(createKnexStore({ knex, users: PEOPLE }))
  await expect(auth.ready()).rejects.toThrow('The database cannot be reached')
  expect(logs.entries.filter(({ level }) => level === 'error')).toHaveLength(1)
})

function fault(key: string): TableFinding {
  return { key, level: 'error', table: 'users', column: null, message: 'A fault of the adapter.', sql: null }
}

describe.each(await databases())('a database of the release before invitations, on $name', (database) => {
  const byMail = { emailLogin: 'code', emailLoginSignup: true } as const
  /** As `npx doorward migrate` of that release left it. */
  async function openEarlier() {
    opened = await database.open()
    const names = async () => (await migrationSource.getMigrations([])).slice(0, 3)
    const source = { ...migrationSource, getMigrations: names }
    await opened.knex.migrate.latest({ migrationSource: source, tableName: 'auth_migrations' })
    expect(await opened.knex.schema.hasTable('auth_invitations')).toBe(false)
    return opened.knex
  }

  test('serves while invitations and approval are off, and the check finds nothing', async () => {
    const knex = await openEarlier()
    const settings = { jwtSecret: testSecret, publicUrl: baseUrl, autoActivate: true, backendLinks: true, ...byMail } as const
    const mails = mailbox()
    const { auth, app, said, signUp, logIn, post } = start(createKnexStore({ knex }), { settings, mailer: mails })
    await auth.ready()
    expect(await checkTables(knex, { settings })).toEqual([])
    expect([(await signUp()).status, (await logIn()).status]).toEqual([201, 200])
    const email = 'newcomer@example.test'
    const { body } = await post('/email-login/request', { email })
    const { code } = await mails.next({ kind: 'email_login', to: email })
    expect((await post('/email-login/confirm', { code, request_token: body.request_token })).status).toBe(200)
    expect((await supertest(app).get('/auth/invitations/x')).status).toBe(404)
    await purgeExpired(createKnexStore({ knex }), { before: new Date() })
    expect(said('error')).toEqual([])
  })

  test.each([{ invitationsEnabled: true }, { signupMode: 'invite' }, { signupMode: 'approve', autoActivate: false }] as const)(
    'is asked for more once they are on: %j',
    async (settings) => {
      const store = createKnexStore({ knex: await openEarlier() })
      const needed = { jwtSecret: testSecret, publicUrl: baseUrl, backendLinks: true, ...settings }
      const { auth } = start(store, { settings: needed, mailer: mailbox() })
      await expect(auth.ready()).rejects.toThrow('migrations are pending')
    },
  )
})
