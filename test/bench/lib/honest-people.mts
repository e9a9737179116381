import { setTimeout as sleep } from 'node:timers/promises'
import type { FakeProvider } from '../../../src/testing'
import { type Answer, type Connection, cookieHeader, mustBe, openConnection, requestText, takeCookies } from './connection.mjs'
import { from } from './flood.mjs'

/** What the tries of honest people came to. */
export interface Tally {
  tries: number
  successes: number
  slowestMs: number
  /** Of a few, with the second of the run. */
  failures: string[]
}

export const owner = { email: 'owner@example.test', password: 'a quiet harbour in winter' }

const ownersAddress = '203.0.113.7'
const longestMs = 20_000
const people = 10

type Visit = (connection: Connection) => Promise<void>

/**
 * Who must not notice an attack: ten people who sign in by the provider, the owner of an account on a device that knows her, and an app
 * with a token for an API. Each was let in once, and somebody without the password was not.
 * @returns makes each of them try once a second until then
 */
export async function meetPeople(origin: string, provider: FakeProvider): Promise<(until: number) => Promise<Tally>> {
  const visits = { 'login by the provider': byProvider(provider), "the owner's login": await ownerOf(origin), API: withToken(provider) }
  for (const visit of Object.values(visits)) await visitOnce(origin, visit)
  return async (until) => {
    const tally: Tally = { tries: 0, successes: 0, slowestMs: 0, failures: [] }
    await Promise.all(Object.entries(visits).map(([name, visit]) => visitEverySecond(origin, { name, visit, tally, until })))
    return tally
  }
}

/** Also while an earlier one still waits for its answer. */
async function visitEverySecond(
  origin: string,
  { name, visit, tally, until }: { name: string; visit: Visit; tally: Tally; until: number },
): Promise<void> {
  const running: Promise<void>[] = []
  const start = performance.now()
  for (let due = start; due < until; due += 1000) {
    await sleep(due - performance.now())
    running.push(count(tally, `${((due - start) / 1000).toFixed(0)} s, ${name}`, () => visitOnce(origin, visit)))
  }
  await Promise.all(running)
}

async function count(tally: Tally, name: string, attempt: () => Promise<void>): Promise<void> {
  const begun = performance.now()
  const milliseconds = () => performance.now() - begun
  tally.tries++
  try {
    await attempt()
    tally.successes++
  } catch (error) {
    if (tally.failures.length < 20) tally.failures.push(`${name}, after ${milliseconds().toFixed(0)} ms: ${error}`)
  }
  tally.slowestMs = Math.max(tally.slowestMs, milliseconds())
}

/** On a connection of its own, as somebody who comes for the first time. */
async function visitOnce(origin: string, visit: Visit): Promise<void> {
  const connection = await openConnection(origin)
  const late = new AbortController()
  try {
    await Promise.race([
      visit(connection),
      sleep(longestMs, null, { signal: late.signal }).then(() => Promise.reject(new Error(`no answer in ${longestMs} ms`))),
    ])
  } finally {
    late.abort()
    connection.close()
  }
}

function byProvider(provider: FakeProvider): Visit {
  let turn = 0
  return async (connection) => {
    const number = turn++ % people
    const profile = { sub: `person-${number}`, email: `person-${number}@example.test`, email_verified: true, name: `Person ${number}` }
    const client = from(`198.51.100.${number}`)
    const begun = mustBe(302, await connection.ask(beginLogin(client)))
    const { callbackQuery } = provider.authorize(locationOf(begun), { profile })
    const answer = await connection.ask(callback(callbackQuery, { ...client, ...cookieHeader(takeCookies(begun)) }))
    mustBeSignedIn(mustBe(200, answer))
  }
}

async function ownerOf(origin: string): Promise<Visit> {
  const request = (path: string, person: object, cookies: Record<string, string> = {}) =>
    requestText(`/auth/${path}`, { json: person, headers: { ...from(ownersAddress), ...cookieHeader(cookies) } })
  let cookies: Record<string, string> = {}
  await visitOnce(origin, async (connection) => {
    mustBe(201, await connection.ask(request('signup', owner)))
    mustBe(401, await connection.ask(request('login', { ...owner, password: 'a loud harbour in winter' })))
  })
  return async (connection) => {
    const answer = mustBe(200, await connection.ask(request('login', owner, cookies)))
    mustBeSignedIn(answer)
    cookies = takeCookies(answer, cookies)
  }
}

function withToken(provider: FakeProvider): Visit {
  let turn = 0
  return async (connection) => {
    const iat = Math.floor(Date.now() / 1000)
    const claims = { amr: ['pwd'], email: 'app@example.test', exp: iat + 900, iat, sub: `app-${turn++}`, typ: 'access' }
    const answer = await connection.ask(requestText('/reports', { headers: { authorization: `Bearer ${provider.signJwt(claims)}` } }))
    if (mustBe(200, answer).body !== `{"for":"${claims.sub}"}`) throw new Error(answer.body)
  }
}

function mustBeSignedIn(answer: Answer): void {
  if (!takeCookies(answer)['access_token']) throw new Error(`an answer without a session: ${answer.head}`)
}

export function beginLogin(headers: Record<string, string>): string {
  return requestText('/auth/oauth/corp/login', { headers })
}

export function callback(query: Record<string, string>, headers: Record<string, string>): string {
  return requestText(`/auth/oauth/corp/callback?${new URLSearchParams(query)}`, { headers })
}

/** Where a redirect leads. */
export function locationOf({ head }: Answer): string {
  return /^location: *(\S+)/im.exec(head)?.[1] ?? ''
}
