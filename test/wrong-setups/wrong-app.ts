import express, { type Express, type RequestHandler } from 'express'
import knex, { type Knex } from 'knex'
import supertest from 'supertest'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { type AuthRouter, ConfigurationError } from '../../src'
import { type Mounted, type MountOptions, mount, testSecret } from '../support/app'

/** What no log line may hold: what people and providers keep secret. */
export const secrets = new RegExp(`${testSecret}|correct horse|the client secret|ana@example\\.test`)

/** A host whose set-up is wrong. One act may log one line with the entry, and the same act again nothing more. */
export interface WrongSetup {
  entry: string
  level: 'info' | 'warn' | 'error'
  /** Cause and fix, in the message. */
  says: RegExp
  mount?: Omit<MountOptions, 'knex'>
  /** The app around the router; the router at its prefix unless said. */
  app?: (auth: AuthRouter) => Express
  act: (browser: supertest.Agent, mounted: Mounted) => Promise<unknown>
}

let database: Knex
const open: Mounted[] = []

/** Opens the database of a file's tests. */
export function useDatabase(): void {
  beforeAll(() => {
    database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
  })
  afterEach(async () => {
    for (const mounted of open.splice(0)) await mounted.close()
  })
  afterAll(() => database.destroy())
}

export async function wrongApp(options: Omit<MountOptions, 'knex'> = {}): Promise<Mounted> {
  const mounted = await mount({ knex: database, ...options })
  open.push(mounted)
  return mounted
}

/** Sets it up, does the act twice, and expects one line. */
export async function expectOneLine(setup: WrongSetup): Promise<void> {
  const mounted = await wrongApp(setup.mount)
  const app = setup.app ? setup.app(mounted.auth) : mounted.app
  await setup.act(supertest(app), mounted)
  const lines = () => mounted.logs.entries.filter(({ message }) => message.endsWith(`docs/troubleshooting.md#${setup.entry}`))
  expect(lines()).toHaveLength(1)
  await setup.act(supertest(app), mounted)

  expect(lines()).toEqual([{ level: setup.level, fields: expect.any(Object), message: expect.stringMatching(setup.says) }])
  expect(mounted.logs.text()).not.toMatch(secrets)
  const { findings } = await mounted.auth.doctor({ app })
  const repeated = findings.filter(({ check, fix }) => check === 'seen-in-requests' && fix.endsWith(`#${setup.entry}.`))
  expect(repeated.map(({ what }) => what.slice(1))).toEqual(
    lines().map(({ message }) => message.replace(/^doorward: ./, '').replace(/ See docs.*$/, '')),
  )
}

export function around(
  auth: AuthRouter,
  { path = '/auth', trust, before = [] }: { path?: string; trust?: unknown; before?: RequestHandler[] },
): Express {
  const app = express()
  if (trust !== undefined) app.set('trust proxy', trust)
  for (const middleware of before) app.use(middleware)
  return app.use(path, auth)
}

/** What a refused construction says. */
export async function refusal(construct: () => unknown): Promise<string> {
  try {
    await construct()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(String(error)).not.toMatch(secrets)
    return (error as Error).message // checked above
  }
  throw new Error('nothing was refused')
}
