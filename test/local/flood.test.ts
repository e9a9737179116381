import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, fetch } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { argon2idHasher, type PasswordHasher } from '../../src'
import { appPerTest } from '../support/app-per-test'

const start = appPerTest()
const password = 'a quiet harbour in winter'
const logins = 500
const bounds = { concurrency: 2, queue: 20 }

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** One call of the hasher: when it began and ended, in the order of all beginnings and ends, and whether it was let in. */
interface Look {
  began: number
  ended: number
  isLetIn: boolean
}

function watched(inner: PasswordHasher): { hasher: PasswordHasher; looks: Look[] } {
  const looks: Look[] = []
  let moment = 0
  const verify = async (hash: string, text: string) => {
    const began = moment++
    let isLetIn = false
    try {
      const matches = await inner.verify(hash, text)
      isLetIn = true
      return matches
    } finally {
      looks.push({ began, ended: moment++, isLetIn })
    }
  }
  return { hasher: { ...inner, verify }, looks }
}

/** Of those that were let in, how many at most were running or waiting at one moment. */
function mostAtOnce(looks: Look[]): number {
  const letIn = looks.filter(({ isLetIn }) => isLetIn)
  return Math.max(...letIn.map(({ began }) => letIn.filter((other) => other.began <= began && other.ended > began).length))
}

test('R-076, X01: of 500 logins at once a bounded number waits for argon2, the rest are 503, and the host goes on answering', async () => {
  // The cheapest the hasher accepts.
  const { hasher, looks } = watched(argon2idHasher({ memoryCost: 7_168, timeCost: 5, ...bounds }))
  const host = await start({
    settings: { autoActivate: true },
    options: { passwordHasher: hasher, throttle: { login: false, routes: false } },
    host: (app) => app.get('/ping', (_req, res) => void res.send('pong')),
  })
  await host.auth.service.signUp({ email: 'ana@example.test', password })
  const server = createServer(host.app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dispatcher = new Agent({ connections: logins })
  open.push(dispatcher, { close: () => new Promise((resolve) => server.close(resolve)) })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string

  let isOver = false
  let pings = 0
  const pinging = (async () => {
    while (!isOver) {
      expect(await (await fetch(`${origin}/ping`)).text()).toBe('pong')
      pings++
    }
  })()
  const answers = await Promise.all(
    Array.from({ length: logins }, async (_, index) => {
      const body = JSON.stringify({ email: 'ana@example.test', password: index % 2 === 0 ? password : `${password} not` })
      const headers = { 'Content-Type': 'application/json' }
      const response = await fetch(`${origin}/auth/login`, { method: 'POST', headers, body, dispatcher })
      return { index, status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() }
    }),
  )
  isOver = true
  await pinging

  const busy = answers.filter(({ status }) => status === 503)
  const served = answers.filter(({ status }) => status !== 503)
  expect(served.map(({ index, status }) => [index % 2, status])).toEqual(served.map(({ index }) => (index % 2 === 0 ? [0, 200] : [1, 401])))
  expect(served.length).toBe(looks.filter(({ isLetIn }) => isLetIn).length)
  expect(mostAtOnce(looks)).toBe(bounds.concurrency + bounds.queue)
  expect(busy.length).toBeGreaterThan(0)
  for (const { text, retryAfter } of busy) expect([JSON.parse(text).code, retryAfter]).toEqual(['SERVICE_UNAVAILABLE', '1'])
  expect(pings).toBeGreaterThan(5)
  // Nobody is left waiting: the next one is served.
  const next = await host.browser().post('/auth/login').send({ email: 'ana@example.test', password })
  expect(next.status).toBe(200)
})
