import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import supertest from 'supertest'
import { expect, test, vi } from 'vitest'
import { rateLimit } from '../../src'
import { testSecret } from '../support/app'
import { around, useDatabase, wrongApp } from './wrong-app'

useDatabase()

const wrong = { password: 'not the password of anybody' }
const budget = { attempts: 3, windowSeconds: 900 }
const limited = { options: { throttle: { login: { client: budget }, routes: false as const, signup: budget } } }
const notices = (logs: { entries: readonly { message: string; fields: object }[] }) =>
  logs.entries.filter(({ message }) => message.endsWith('docs/troubleshooting.md#client-address'))

/** The statuses of failed logins, each with another address and from the next of these clients. */
async function logins(app: ReturnType<typeof around>, clients: readonly string[]): Promise<number[]> {
  const statuses: number[] = []
  for (const [number, client] of clients.entries()) {
    const login = { ...wrong, email: `person-${number}@example.test` }
    statuses.push((await supertest(app).post('/auth/login').set('X-Forwarded-For', client).send(login)).status)
  }
  return statuses
}

test.each([
  ['with a port', '203.0.113.7:40001', '203.0.113.7:40002', '198.51.100.2:40001'],
  ['in brackets with a port', '[2001:db8::1]:40001', '[2001:db8::2]:40002', '[2001:db8:0:1::1]:40001'],
  ['of NAT64', '64:ff9b::203.0.113.7', '64:ff9b::cb00:7107', '64:ff9b::203.0.113.8'],
])('an address %s counts as one client, apart from others', async (_form, first, again, other) => {
  const { auth, logs } = await wrongApp(limited)
  const app = around(auth, { trust: 1 })

  expect(await logins(app, [first, again, first, again, other])).toEqual([401, 401, 401, 429, 401])
  expect(notices(logs)).toEqual([])
})

test.each(['unknown', 'unix:', '_hidden'])(
  'clients that a proxy calls %s share no limit per client, and the log and doctor say so',
  async (name) => {
    const { auth, logs } = await wrongApp(limited)
    const app = around(auth, { trust: 1 })

    expect(await logins(app, Array<string>(5).fill(name))).toEqual([401, 401, 401, 401, 401])
    expect(notices(logs)).toEqual([
      {
        level: 'warn',
        fields: { address: name },
        message: expect.stringMatching(/address of a client cannot be read.*per email address still count.*X-Forwarded-For.*trust proxy/),
      },
    ])
    const { findings } = await auth.doctor()
    expect(findings.filter(({ check }) => check === 'seen-in-requests')).toEqual([
      {
        check: 'seen-in-requests',
        level: 'warning',
        what: expect.stringMatching(/^The address of a client cannot be read/),
        why: expect.any(String),
        fix: 'See docs/troubleshooting.md#client-address.',
      },
    ])
    expect(JSON.stringify(findings)).not.toContain(testSecret)
  },
)

test('a client without a readable address still has the limits of an email address', async () => {
  const { auth } = await wrongApp({ options: { throttle: { login: { email: budget }, routes: false } } })
  const app = around(auth, { trust: 1 })
  const login = () =>
    supertest(app)
      .post('/auth/login')
      .set('X-Forwarded-For', 'unknown')
      .send({ ...wrong, email: 'ana@example.test' })
  const statuses: number[] = []
  for (let time = 0; time < 4; time++) statuses.push((await login()).status)

  expect(statuses).toEqual([401, 401, 401, 429])
})

test('clients of a Unix socket share no limit per client, and the log says how to name the proxy', async () => {
  const { auth, logs } = await wrongApp(limited)
  const folder = mkdtempSync(join(tmpdir(), 'doorward-'))
  const socketPath = join(folder, 'app.sock')
  const server = createServer(around(auth, {})).listen(socketPath)
  await once(server, 'listening')
  const login = async (number: number) => {
    const asked = request({ socketPath, path: '/auth/login', method: 'POST', headers: { 'Content-Type': 'application/json' } })
    asked.end(JSON.stringify({ ...wrong, email: `person-${number}@example.test` }))
    const [response] = await once(asked, 'response')
    response.resume()
    return response.statusCode
  }
  const statuses: number[] = []
  for (let number = 0; number < 5; number++) statuses.push(await login(number))
  server.close()
  rmSync(folder, { recursive: true })

  expect(statuses).toEqual([401, 401, 401, 401, 401])
  expect(notices(logs)).toEqual([expect.objectContaining({ fields: { address: null }, message: expect.stringContaining('Unix socket') })])
})

test('rateLimit() does not count a client whose address cannot be read, and says so once on the console', async () => {
  const told = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  const { auth } = await wrongApp()
  const app = around(auth, { trust: 1, before: [rateLimit({ limit: 2 })] })
  const statuses = async (client: string) => {
    const all: number[] = []
    for (let time = 0; time < 3; time++) all.push((await supertest(app).get('/').set('X-Forwarded-For', client)).status)
    return all
  }

  expect(await statuses('unknown')).toEqual([404, 404, 404])
  expect(await statuses('[2001:db8::1]:8080')).toEqual([404, 404, 429])
  const toldOfAddress = told.mock.calls.filter(([line]) => String(line).includes('#client-address')) // the 429 has a line of its own
  expect(toldOfAddress).toEqual([[expect.anything(), { address: 'unknown' }]])
  told.mockRestore()
})

test('a session is listed with the address of its client, without the port', async () => {
  const { auth } = await wrongApp({ settings: { autoActivate: true } })
  const app = around(auth, { trust: 1 })
  const person = { email: 'bea@example.test', password: 'a correct horse battery' }
  await supertest(app).post('/auth/signup').send(person)
  const { body } = await supertest(app).post('/auth/login').set('X-Forwarded-For', '203.0.113.7:40001').send(person)
  const list = await supertest(app).get('/auth/sessions').set('Authorization', `Bearer ${body.access_token}`)

  expect(list.body).toContainEqual(expect.objectContaining({ ip: '203.0.113.7' }))
})
