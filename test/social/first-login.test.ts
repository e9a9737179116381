import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables } from '../../src'
import { baseUrl, testSecret } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider'
import { navigate } from '../support/navigate'
import { raceRounds, raceTimeout, raceZones } from '../support/torture'
import type { ServerOrder } from './first-login-server'
import { newPerson } from './redirect-steps'

const rounds = raceRounds()
const tabsPerProcess = 3

describe.each(await databases())('two processes on $name', { timeout: raceTimeout(60_000) }, (database) => {
  let opened: OpenDatabase
  let provider: FakeProvider
  let servers: { child: ChildProcess; origin: string }[] = []

  beforeAll(async () => {
    opened = await database.open()
    await createAuthTables(opened.knex)
    provider = await startFakeProvider()
    servers = await Promise.all(raceZones.map((zone) => startServer(opened, provider, zone)))
  }, raceTimeout(60_000))

  afterAll(async () => {
    await Promise.all(servers.map(({ child }) => stopped(child)))
    await provider.close()
    await opened.close()
  })

  test('C14: first logins of one identity, released together, end in one user and one identity, and everybody is in', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const person = newPerson()
      const callbacks = await Promise.all(
        servers.flatMap(({ origin }) => Array.from({ length: tabsPerProcess }, () => ready(origin, person))),
      )

      const answers = await Promise.all(callbacks.map((release) => release()))

      expect(answers.map(({ status }) => status)).toEqual(Array(2 * tabsPerProcess).fill(200))
      expect(new Set(answers.map(({ body }) => body['user_id'])).size).toBe(1)
      expect(await ownRows(opened.knex, person)).toEqual({ users: 1, identities: 1, sessions: 2 * tabsPerProcess })
    }
    const [{ users }] = (await opened.knex('auth_users').count({ users: '*' })) as [{ users: unknown }] // one row by definition
    expect(Number(users)).toBe(rounds)
  })

  test('C15: two identities with one email, released together: one account, and the other is told 409', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const [one, other] = [newPerson(), newPerson()]
      const people = [one, { ...other, email: one.email }]
      const callbacks = await Promise.all(servers.map(({ origin }, index) => ready(origin, people[index] ?? one)))

      const answers = await Promise.all(callbacks.map((release) => release()))

      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
      expect(answers.find(({ status }) => status === 409)?.body['code']).toBe('OAUTH_EMAIL_TAKEN')
      expect(await opened.knex('auth_users').where({ email: one.email })).toHaveLength(1)
      expect(await opened.knex('auth_identities').whereIn('subject', [one.sub, other.sub])).toHaveLength(1)
    }
  })

  test('C18: one callback sent to both at once is exchanged once; the other is told 401', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const person = newPerson()
      const tab = await openTab(origin(round), person)
      const exchangesBefore = provider.requestsTo('token').length

      const answers = await Promise.all(servers.map((server) => callBack(server.origin, tab)))

      expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
      expect(answers.find(({ status }) => status === 401)?.body['code']).toBe('OAUTH_STATE_MISMATCH')
      expect(provider.requestsTo('token').length - exchangesBefore).toBe(1)
      expect(await ownRows(opened.knex, person)).toEqual({ users: 1, identities: 1, sessions: 1 })
    }
  })

  test('C19: two tabs of one browser end in two processes: each its own person, and neither a second time, anywhere', async () => {
    for (let round = 0; round < raceRounds(15); round += 1) {
      const [one, other] = [newPerson(), newPerson()]
      const first = await openTab(origin(round), one)
      const second = await openTab(origin(round + 1), other, first.cookie)
      // Both come back to the process that did not send them out, with the cookie the browser has by then.
      const tabs = [
        { ...first, cookie: second.cookie, at: origin(round + 1), person: one },
        { ...second, at: origin(round), person: other },
      ]

      const answers = await Promise.all(tabs.map((tab) => callBack(tab.at, tab)))

      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      for (const [index, { person }] of tabs.entries()) {
        const [user] = await opened.knex('auth_users').where({ email: person.email })
        expect(answers[index]?.body['user_id']).toBe(user.id)
      }
      const exchanges = provider.requestsTo('token').length
      for (const tab of tabs) {
        for (const server of servers) {
          const replay = await callBack(server.origin, tab)
          expect([replay.status, replay.body['code']]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
        }
      }
      expect(provider.requestsTo('token')).toHaveLength(exchanges)
    }
  })

  const origin = (number: number): string => String(servers[number % servers.length]?.origin)

  interface Tab {
    query: Record<string, string>
    /** What the browser has once the login has answered. */
    cookie: string
  }

  /** Everything up to the callback. */
  async function openTab(origin: string, profile: Record<string, unknown>, cookie = ''): Promise<Tab> {
    const login = await navigate(`${origin}/auth/oauth/corp/login`, { cookie })
    const { callbackQuery: query } = provider.authorize(String(login.headers.get('location')), { profile })
    return { query, cookie: String(login.headers.getSetCookie()[0]?.split(';')[0]) }
  }

  async function callBack(origin: string, { query, cookie }: Tab) {
    const response = await navigate(`${origin}/auth/oauth/corp/callback?${new URLSearchParams(query)}`, { cookie })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> } // an object in every delivery
  }

  /** Everything up to the callback; what comes back sends it. */
  async function ready(origin: string, profile: Record<string, unknown>) {
    const tab = await openTab(origin, profile)
    return () => callBack(origin, tab)
  }
})

async function ownRows(knex: Knex, { email, sub }: { email: string; sub: string }) {
  const users = await knex('auth_users').where({ email })
  const identities = await knex('auth_identities').where({ subject: sub })
  const sessions = await knex('auth_sessions').where({ user_id: users[0]?.id })
  return { users: users.length, identities: identities.length, sessions: sessions.length }
}

async function startServer(
  { config }: OpenDatabase,
  provider: FakeProvider,
  zone: string,
): Promise<{ child: ChildProcess; origin: string }> {
  if (!config) throw new Error('this database lives in one process only')
  const child = fork(join(import.meta.dirname, 'first-login-server.ts'), {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, TZ: zone },
  })
  const settings = { jwtSecret: testSecret, oauthEnabled: true, oauthRedirectBaseUrl: baseUrl, cookieSecure: false }
  const order: ServerOrder = { config, client: provider.oidcOptions({ providerName: 'corp' }), settings }
  child.send(order)
  const [port] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [null])])
  if (typeof port !== 'number') throw new Error('the other process did not start')
  return { child, origin: `http://127.0.0.1:${port}` }
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exit = once(child, 'exit')
  child.disconnect()
  await exit
}
