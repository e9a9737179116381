import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAuthTables } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import type { Move, Part } from './rotating-child'
import { doorward } from './run-command'

/** Two processes of an app, replaced one after the other at each step, as a deployment does it; a third checks their tokens. */

/** As a login and a refresh answer. */
interface Pair {
  access_token: string
  refresh_token: string
}

interface Running {
  readonly origin: string
  readonly child: ChildProcess
}

/** The clock of all processes, in milliseconds before the true one. */
let ahead = 0
const running = new Set<Running>()
let live: readonly Running[] = []
let db: OpenDatabase
/** The one address of the published keys, as a load balancer has it. */
const balancer = createServer(async (_req, res) => {
  const answer = await fetch(`${pick(live).origin}/auth/.well-known/jwks.json`)
  res.setHeader('cache-control', answer.headers.get('cache-control') ?? '').end(await answer.text())
})

beforeAll(async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  db = await database.open()
  await createAuthTables(db.knex)
  await once(balancer.listen(0, '127.0.0.1'), 'listening')
})

afterAll(async () => {
  for (const one of running) stop(one)
  balancer.close()
  await db.close()
})

function pick<One>(all: readonly One[]): One {
  const one = all[Math.floor(Math.random() * all.length)]
  if (one === undefined) throw new Error('there is none')
  return one
}

async function start(part: Pick<Part, 'database'>, keys = ''): Promise<Running> {
  const child = fork(join(import.meta.dirname, 'rotating-child.ts'), {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, AUTH_JWT_KEYS: keys },
  })
  const { port } = balancer.address() as { port: number } // a TCP server
  child.send({ ...part, ahead, jwksUri: `http://127.0.0.1:${port}/auth/.well-known/jwks.json` } satisfies Part)
  const [own] = await once(child, 'message')
  const one = { origin: `http://127.0.0.1:${own}`, child }
  running.add(one)
  return one
}

function stop(one: Running): void {
  running.delete(one) // nobody moves its clock any more
  one.child.kill()
}

async function post(path: string, body: object): Promise<Response> {
  return fetch(`${pick(live).origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

test('keys rotate under load: two processes, tokens checked by a third, and no request is refused', async () => {
  let keys = `[${(await doorward('keys new')).out.trim()}]`
  const deploy = async () => {
    const next = await Promise.all([start({ database: db.config }, keys), start({ database: db.config }, keys)])
    const before = live
    for (const [place, one] of next.entries()) {
      live = [one, ...before.slice(place + 1), ...next.slice(0, place)]
      await delay(200) // both kinds serve side by side
    }
    await delay(500) // what is under way ends
    for (const one of before) stop(one)
  }
  await deploy()
  const verifier = await start({ database: null })

  const refused: string[] = []
  const kids = new Set<string>()
  let [asked, isOver] = [0, false]
  const allowed = async (what: string, answer: Promise<Response>) => {
    const response = await answer
    asked += 1
    if (response.status !== 200) refused.push(`${what}: ${response.status} ${await response.text()}`)
    return response
  }
  const person = async (number: number) => {
    const account = { email: `person${number}@example.test`, password: 'a quiet harbour in winter' }
    await post('/auth/signup', account)
    let pair = (await (await allowed('login', post('/auth/login', account))).json()) as Pair
    const held: { token: string; since: number }[] = []
    while (!isOver) {
      const { access_token: token } = pair
      held.push({ token, since: Date.now() + ahead })
      kids.add(JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid)
      while ((held[0]?.since ?? 0) < Date.now() + ahead - 400_000) held.shift() // they live for 900 seconds
      for (const one of [{ token }, pick(held)]) {
        const headers = { authorization: `Bearer ${one.token}` }
        await allowed('the third process', fetch(`${verifier.origin}/protected`, { headers }))
        await allowed('the app', fetch(`${pick(live).origin}/auth/me`, { headers }))
      }
      pair = (await (await allowed('refresh', post('/auth/refresh', { refresh_token: pair.refresh_token }))).json()) as Pair
      await delay(20)
    }
  }
  /** Bit by bit, while requests go on: no token is to expire on its way. */
  const wait = async (seconds: number) => {
    for (let left = seconds; left > 0; left -= 30) {
      ahead += 30_000
      for (const { child } of running) child.send({ ahead } satisfies Move)
      for (const before = asked; asked < before + 6; ) await delay(10)
    }
  }
  const load = Promise.all([1, 2, 3].map(person))
  const made: string[][] = []
  for (const step of ['publish', 'sign', 'retire']) {
    const { out } = await doorward(`keys rotate --step ${step} --json`, { env: { AUTH_JWT_KEYS: keys } })
    const { keys: next, waitSeconds } = JSON.parse(out)
    keys = JSON.stringify(next)
    made.push(next.map(({ kid }: { kid: string }) => kid))
    await deploy()
    await wait(waitSeconds)
  }
  await delay(1_000)
  isOver = true
  await load

  expect(refused).toEqual([])
  expect(asked).toBeGreaterThan(300)
  expect(made.map((kidsOfStep) => kidsOfStep.length)).toEqual([2, 2, 1])
  expect(kids).toEqual(new Set(made[0]))
}, 240_000)
