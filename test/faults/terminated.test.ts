import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { newAddress, password } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { acts, sending } from './acts'
import type { TerminatedOrder } from './terminated-child'
import { type WellHost, wellHost } from './well-host'

const [database] = await databases()
if (!database) throw new Error('no database answers')

let host: WellHost
let child: ChildProcess | null = null
beforeAll(async () => {
  host = await wellHost(database)
})
afterEach(() => void child?.kill('SIGKILL'))
afterAll(() => host?.close())

test('F25: on SIGTERM what is under way is answered, and once the host closes its server and its pool nothing keeps the process alive', async () => {
  const { config } = host.opened
  if (!config) throw new Error('this database lives in one process only')
  child = fork(join(import.meta.dirname, 'terminated-child.ts'), { execArgv: ['--import', 'tsx'], serialization: 'advanced' })
  const order: TerminatedOrder = { config, clients: host.clients }
  child.send(order)
  const [port] = await once(child, 'message')
  const origin = `http://127.0.0.1:${port}`
  const { email } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
  // What might keep it: connections to a provider, a key set, counters, work after answers.
  expect((await (await acts['GET /oauth/corp/callback of a new identity'].prepare(host))(origin)).status).toBe(200)
  expect((await sending('/password-reset/request', { email })(origin)).status).toBe(202)
  expect((await sending('/login', { email, password: 'a wrong one' })(origin)).status).toBe(401)

  const looked = new Promise<void>((resolve) => void child?.on('message', (looksAt) => looksAt === password && resolve()))
  const login = sending('/login', { email, password })(origin)
  await looked
  const exit = once(child, 'exit')
  child.kill('SIGTERM')

  expect((await login).status).toBe(200)
  const answered = performance.now()
  expect(await exit).toEqual([0, null])
  expect(performance.now() - answered).toBeLessThan(2_000)
}, 60_000)
