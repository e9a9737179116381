import express, { type Express } from 'express'
import type { Knex } from 'knex'
import supertest from 'supertest'
import { afterAll, beforeAll, expect } from 'vitest'
import { type AuthRouter, type AuthRouterOptions, GoogleClient, type KnexStore } from '../../src'
import { type FakeProvider, mailbox, startFakeProvider } from '../../src/testing'
import { cookieJar } from '../support/cookie-jar'
import type { Database, OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { readGuide } from './guide'

export const origin = 'https://app.example.test'
export const oldSecret = 'the secret of the old app, also long'
const environment = { AUTH_JWT_SECRET: 'a test secret of forty characters, or so', AUTH_PUBLIC_URL: origin, OLD_JWT_SECRET: oldSecret }

type Auth = AuthRouter | AuthRouter<{ delivery: 'session' }>

interface OldSession {
  userId: string
  end(trx: Knex.Transaction): Promise<boolean>
}

export interface Move {
  knex: Knex
  store: KnexStore
  auth: Auth
  movedAt: Date
  findOldSession(req: express.Request, knex: Knex): Promise<OldSession | null>
}

/** The code of docs/moving.md. */
export const { code: everyMove } = readGuide<{
  addIdentities(store: KnexStore, rows: readonly object[]): Promise<void>
  endOldSessionsToo(move: Pick<Move, 'auth' | 'store'>): void
  keepSignedIn(move: Move): express.RequestHandler
  exchangeRoute(move: Move): express.RequestHandler
}>('moving')

/** What a guide's `createAuth` is given. */
export type GivenOptions = Required<Pick<AuthRouterOptions, 'mailer' | 'providers' | 'logger'>>

/** A database, the settings of a production, and Google as doorward/testing plays it, for a file's tests. */
export function onMove(database: Database, { memory = true } = {}) {
  const saved = new Map<string, string | undefined>()
  let db: OpenDatabase
  let google: FakeProvider
  beforeAll(async () => {
    for (const [name, value] of Object.entries(environment)) {
      saved.set(name, process.env[name])
      process.env[name] = value
    }
    google = await startFakeProvider()
    db = await database.open({ memory })
  })
  afterAll(async () => {
    for (const [name, value] of saved) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    await google.close()
    await db.close()
  })
  return {
    knex: () => db.knex,
    /** For an app in another process. */
    config: () => db.config ?? {},
    google: () => google,
    options: (): GivenOptions => ({
      mailer: mailbox(),
      logger: logTap(),
      providers: { google: new GoogleClient(google.googleOptions()) },
    }),
    /** The person says yes at Google. */
    async signInWithGoogle(browser: Browser, sub: string) {
      const login = await browser.send('get', '/auth/oauth/google/login')
      const { callbackQuery } = google.authorize(String(login.headers['location']), { profile: { sub, email: `${sub}@gmail.com` } })
      return browser.send('get', `/auth/oauth/google/callback?${new URLSearchParams(callbackQuery)}`)
    },
  }
}

/** The users table of an app that was written by hand. */
export function createUsersTable(knex: Knex): Promise<void> {
  return knex.schema.createTable('users', (table) => {
    table.increments('id')
    table.string('email', 255).notNullable().unique()
    table.string('password_hash', 60)
    table.string('name')
    table.string('google_id').unique()
    table.timestamp('created_at').notNullable().defaultTo(knex.fn.now())
  })
}

/** Statement by statement, because a driver takes one at a time. */
export async function runSql(knex: Knex, sql: string): Promise<void> {
  for (const statement of sql.split(/;\s*$/m)) if (statement.trim() !== '') await knex.raw(statement.replaceAll('?', '\\?'))
}

export async function rowsOf(knex: Knex, sql: string): Promise<Record<string, unknown>[]> {
  const answer = await knex.raw(sql)
  return Array.isArray(answer) ? answer : answer.rows
}

export function appWith(auth: Auth, before: (app: Express) => void = () => undefined): Express {
  const app = express()
  app.use('/auth', auth)
  before(app)
  app.get('/whoami', auth.guards.requireUser(), (req, res) => {
    res.json({ id: auth.guards.getUser(req).id })
  })
  return app
}

export type Browser = ReturnType<typeof browserOf>

/** Keeps cookies, and follows no redirect. `app`: also the origin of one in another process. `cookies`: those of the site, by name. */
export function browserOf(app: Express | string, cookies: Record<string, string> = {}) {
  const jar = cookieJar()
  const host = 'app.example.test'
  const lines = Object.entries(cookies).map(([name, value]) => `${name}=${value}; Path=/; Secure`)
  jar.take({ 'set-cookie': lines }, { host, path: '/' })
  return {
    get jar() {
      return new Map(jar.kept().map(({ key, value }) => [key, value]))
    },
    async send(method: 'get' | 'post', path: string, body?: object, headers: Record<string, string> = {}) {
      const cookie = jar.header({ host, path })
      const request = supertest(app)
        [method](path)
        .set({ ...headers, ...(cookie !== undefined && { cookie }) })
      const response = body === undefined ? await request : await request.send(body)
      jar.take(response.headers, { host, path })
      return response
    },
  }
}

interface Person {
  id: string
  email: string
  password: string
}

/** A wrong password is refused; the old one signs the person in to the account that they had, now and after its hash was replaced. */
export async function expectOldPassword(app: Express, { id, email, password }: Person, hash: () => Promise<string>): Promise<void> {
  const logIn = async (secret: string, browser = browserOf(app)) => {
    const { status, body } = await browser.send('post', '/auth/login', { email, password: secret })
    return [status, body.user_id ?? body.code]
  }
  const old = await hash()
  expect(await logIn('a wrong one entirely')).toEqual([401, 'UNAUTHORIZED'])
  expect(await hash()).toBe(old)
  expect(await logIn(password)).toEqual([200, id])
  expect([await hash(), old]).toEqual([expect.stringMatching(/^\$argon2id\$/), expect.not.stringMatching(/^\$argon2id\$v=19\$m=19456/)])
  expect(await logIn(password)).toEqual([200, id])
}
