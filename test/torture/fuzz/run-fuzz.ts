import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import jwt from 'jsonwebtoken'
import { openAs } from '../../local/people'
import { authenticator } from '../../mfa/authenticator'
import { type FakeHandler, hostileAnswers } from '../../support/fake-provider'
import { tokenOf } from '../../support/mailbox'
import { consent, type FuzzHost, type Persona, segments, ticketIn } from './fuzz-host'
import { complaintAbout } from './judge'
import { type Answered, type Asked, askedFor, poolTo, send } from './send'
import type { LiveKind, Wish } from './wish'
import { wishes } from './wishes'

export interface FuzzReport {
  requests: number
  seconds: number
  /** Of the hosts' route tables: how often each was asked, and how often it did what it is for. */
  routes: Map<string, { asked: number; done: number }>
  statuses: Map<number, number>
  /** With what repeats them. */
  violations: string[]
  /** MB of JavaScript heap in use after a collection, in the course of the run. */
  heap: number[]
}

/** People are made anew for so many requests; a seed stands for so many. */
export const batchSize = 300

const atOnce = 8

/** Time goes on within a batch, or a second factor would have one code. */
const requestsPerCode = 50

export interface FuzzOptions {
  seed: number
  requests: number
  /** Of what was found so far, twenty times in a run. */
  tell?: (report: FuzzReport) => void
}

/** A batch is told by its seed alone: which host, which mood of the provider, which requests. */
export async function runFuzz(hosts: readonly FuzzHost[], { seed, requests, tell = () => undefined }: FuzzOptions): Promise<FuzzReport> {
  const report: FuzzReport = { requests: 0, seconds: 0, routes: new Map(), statuses: new Map(), violations: [], heap: [] }
  const lanes = hosts.map((host) => ({ host, pool: poolTo(host.origin), arbitrary: wishes(host.routes, host) }))
  const warned = (warning: Error) => report.violations.push(`a warning of the process: ${warning.name} ${warning.message}`)
  process.on('warning', warned)
  const started = performance.now()
  const batches = Math.ceil(requests / batchSize)
  for (let batch = 0; batch < batches; batch++) {
    const batchSeed = seed + batch
    const lane = lanes[batchSeed % lanes.length]
    if (!lane) throw new Error('no host to fuzz')
    await lane.host.restock()
    const restore = setMood(lane.host, batchSeed)
    await runBatch(report, lane, fc.sample(lane.arbitrary, { seed: batchSeed, numRuns: batchSize }), batchSeed)
    restore()
    report.seconds = (performance.now() - started) / 1000
    if (batch % Math.ceil(batches / 20) > 0) continue
    report.heap.push(heapInUse())
    tell(report)
  }
  process.off('warning', warned)
  await Promise.all(lanes.map(({ pool }) => pool.close()))
  if (Object.keys(Object.prototype).length > 0) report.violations.push('Object.prototype has enumerable keys')
  return report
}

interface Lane {
  host: FuzzHost
  pool: ReturnType<typeof poolTo>
}

async function runBatch(report: FuzzReport, { host, pool }: Lane, batch: Wish[], seed: number): Promise<void> {
  const waiting = batch.values()
  const ask = async () => {
    for (const wish of waiting) {
      await askOne(report, { host, pool }, wish, seed)
      if (report.requests % requestsPerCode > 0) continue
      host.mounted.clock.advance(30)
      await signInAgain(host)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, ask))
  const failures = host.mounted.logs.entries.filter(({ level }) => level === 'error')
  host.mounted.logs.entries.length = 0
  for (const { message, fields } of failures)
    report.violations.push(`logged on ${host.name}, --seed ${seed}: ${message} ${JSON.stringify(fields)}`)
}

async function askOne(report: FuzzReport, { host, pool }: Lane, wish: Wish, seed: number): Promise<void> {
  readMails(host)
  const asked = askedFor(wish, host.personas)
  const name = `${wish.method} ${wish.path}`
  report.requests++
  let answer: Answered | null = null
  let complaint: string | null
  try {
    answer = await send(pool, host, asked)
    complaint = complaintAbout(wish, asked, answer)
  } catch (error) {
    complaint = `no answer: ${String(error)}`
  }
  const line = report.routes.get(name) ?? { asked: 0, done: 0 }
  report.routes.set(name, { asked: line.asked + 1, done: line.done + (answer && answer.status < 400 ? 1 : 0) })
  report.statuses.set(answer?.status ?? 0, (report.statuses.get(answer?.status ?? 0) ?? 0) + 1)
  if (answer) learn(host.personas[wish.persona % host.personas.length], asked, answer, host.mounted)
  if (complaint === null) return
  const presented = JSON.stringify({ ...asked, body: asked.body?.toString('latin1').slice(0, 400) }).slice(0, 1_500)
  report.violations.push(
    `${complaint}\n  ${name} on ${host.name}, --seed ${seed} --requests ${batchSize}\n  asked ${presented}\n  answered ${answer?.status} ${answer?.text.slice(0, 300)}`,
  )
}

/** Whoever lost the session comes back: so many requests end sessions that soon nobody would be signed in. */
async function signInAgain({ mounted, personas }: FuzzHost): Promise<void> {
  for (const persona of new Set(personas)) {
    const [[userId], [token]] = [persona.userId ?? [], persona.access ?? []]
    if (userId === undefined || token === undefined) continue
    const sessions = await mounted.auth.service.listSessions(userId)
    if (sessions.some(({ id }) => id === sessionOf(token))) continue
    const login = await openAs(mounted, userId).catch(() => null) // a closed account stays out
    if (login) Object.assign(persona, { access: [login.token], refresh: [login.refreshToken] } satisfies Partial<Persona>)
  }
}

/** A link or a code is shown by whoever it was mailed to; one for a new address by the person who waits to be activated. */
function readMails({ mounted: { mails }, personas }: FuzzHost): void {
  for (const mail of mails.mails.splice(0)) {
    const reader = personas.find(({ email }) => email?.includes(mail.to)) ?? personas.find(({ links }) => 'activate' in links)
    if (!reader) continue
    if (mail.url !== null) reader.links[segments[mail.kind]] = tokenOf(mail)
    if (mail.code !== undefined) reader.mailedCode = [mail.code]
  }
}

/** What an answer gives is what the next request shows. */
function learn(
  persona: Persona | undefined,
  { body }: Asked,
  { status, headers, text }: Answered,
  { clock, provider }: FuzzHost['mounted'],
): void {
  if (!persona) return
  const [, changed] = (status < 300 && /new_password(?:":"|=)([^"&]+)/.exec(body?.toString() ?? '')) || []
  if (changed !== undefined) persona.password = [changed.replaceAll('%20', ' ')]
  const [, secret] = /"secret":"([A-Z2-7]{32})"/.exec(text) ?? []
  if (secret !== undefined) persona.app = authenticator(secret, clock)
  for (const line of [headers['set-cookie'] ?? []].flat()) {
    const [, name, value = ''] = /^(\w+)=([^;]*)/.exec(line) ?? []
    const kind = cookieKinds[name ?? '']
    if (value !== '' && kind !== undefined) persona[kind] = [decodeURIComponent(value)]
  }
  const ticket = ticketIn(`${headers['location']} ${text}`)
  if (ticket !== undefined) persona.ticket = [ticket]
  const [, authorizeUrl] = /"authorize_url":"([^"]+)"/.exec(text) ?? []
  if (authorizeUrl !== undefined) Object.assign(persona, consent(provider, authorizeUrl, persona.email?.[0] ?? ''))
  for (const [field, kind] of [
    ['access_token', 'access'],
    ['refresh_token', 'refresh'],
    ['mfa_token', 'challenge'],
    ['next_cursor', 'cursor'],
  ] as const) {
    const found = new RegExp(`"${field}":"([^"]+)"`).exec(text)?.[1]
    if (found !== undefined) persona[kind] = [found]
  }
}

function sessionOf(accessToken: string): unknown {
  return jwt.decode(accessToken, { json: true })?.['sid']
}

const cookieKinds: Readonly<Record<string, LiveKind>> = {
  access_token: 'access',
  refresh_token: 'refresh',
  auth_session: 'session',
  oauth_state: 'stateCookie',
}

const moods: readonly (readonly [endpoint: 'token' | 'userinfo' | 'introspect' | 'tokeninfo' | 'jwks', answer: string] | null)[] = [
  ...[null, null, null, null, null],
  ['token', 'a string'],
  ['userinfo', 'an array'],
  ['introspect', 'HTML with 200'],
  ['tokeninfo', 'a redirect with a usable body'],
  ['token', '20,000-deep JSON'],
  ['userinfo', 'a reset connection'],
  ['introspect', 'invalid UTF-8'],
]

/** Providers have bad days. */
function setMood({ mounted: { provider } }: FuzzHost, seed: number): () => void {
  const mood = moods[Math.floor(seed / 4) % moods.length] ?? null
  if (mood === null) return () => undefined
  const handler: FakeHandler | undefined = hostileAnswers[mood[1]]
  provider.on(mood[0], handler ?? null)
  return () => provider.on(mood[0], null)
}

function heapInUse(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void // there since the line above
  collect()
  return Math.round((process.memoryUsage().heapUsed / 2 ** 20) * 10) / 10
}
