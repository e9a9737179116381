import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { JwtKey } from '../../src'
import { type Mounted, mount, signIn } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { makeKey, retired } from '../support/signing-keys'
import { type OtherProcess, startProcess } from '../support/two-processes'
import type { Answer, Task } from './api-child'

const [old, next] = [makeKey('2026-01', 'ES256'), makeKey('2026-03', 'RS256')]

/** The issuer: one database, and a router that is started anew with other keys, as a deployment does. */
let opened: OpenDatabase
let running: Mounted
let api: OtherProcess<Task, Answer>
let elapsed = 0
const server = createServer((req, res) => (running.app as RequestListener)(req, res))

beforeAll(async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  opened = await sqlite.open()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  api = await startProcess<Task, Answer>(join(import.meta.dirname, 'api-child.ts'), opened)
})

afterAll(async () => {
  await api?.stop()
  await running?.close()
  server.closeAllConnections()
  server.close()
  await opened?.close()
})

async function deploy(jwtKeys: readonly JwtKey[]): Promise<void> {
  await running?.close()
  running = await mount({ knex: opened.knex, settings: { jwtKeys, accessTokenTtlSeconds: 3_600 } })
  running.clock.advance(elapsed)
}

async function pass(seconds: number): Promise<void> {
  elapsed += seconds
  running.clock.advance(seconds)
  await api.ask({ advance: seconds })
}

test('R-105 keys are rotated without a logout, for a process that knows only the address of the key set', async () => {
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string
  const port = await api.ask({ jwksUri: `${issuer}/auth/.well-known/jwks.json` })
  const ask = async (token: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/api`, { headers: { Authorization: `Bearer ${token}` } })
    return response.status === 200 ? 200 : ((await response.json()) as { code: string }).code
  }
  const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid

  // 1. The old key signs.
  await deploy([old])
  const { access_token: first, refresh_token } = (await signIn(running)).body as Record<string, string>
  expect([kidOf(String(first)), await ask(String(first))]).toEqual([old.kid, 200])

  // 2. The new one is published before it signs, so that everybody knows it by then.
  await deploy([old, next])
  await pass(300)
  expect(await ask(String(first))).toBe(200)

  // 3. The new one signs, the old one still checks: nobody is logged out, in either process.
  await deploy([next, retired(old)])
  const refreshed = await running.browser().post('/auth/refresh').send({ refresh_token })
  const second = String(refreshed.body.access_token)
  expect([refreshed.status, kidOf(second)]).toEqual([200, next.kid])
  expect([await ask(String(first)), await ask(second)]).toEqual([200, 200])
  for (const token of [String(first), second])
    expect((await running.browser().get('/auth/me').set('Authorization', `Bearer ${token}`)).status).toBe(200)

  // 4. The old one is gone: here at once, elsewhere when what was fetched is 300 seconds old, remembered or not.
  await deploy([next])
  expect((await running.browser().get('/auth/me').set('Authorization', `Bearer ${first}`)).body.code).toBe('INVALID_TOKEN')
  await pass(299)
  expect(await ask(String(first))).toBe(200)
  await pass(1)
  expect([await ask(String(first)), await ask(second)]).toEqual(['INVALID_TOKEN', 200])
})
