import { writeFileSync } from 'node:fs'
import knex from 'knex'
import { type AuthEventName, createKnexStore, type Logger } from '../../src'
import { consoleLogger } from '../../src/logger'
import { type Mounted, mount, startLogin, testSecret } from './app'
import { answer } from './fake-provider'
import { faultyStore } from './faulty-store'
import { type RawAnswer, sendRaw } from './send-raw'

export interface CanaryRun {
  /** What must be found nowhere: kind -> values. */
  secrets: Record<string, string[]>
  /** Issued by us: allowed in the answers that issue them. */
  issued: string[]
  /** Personal: allowed in answers to the person and in the database, never in a log or an event. */
  personal: string[]
  /** Bodies of every answer, with what was asked; `issues`: a token is the answer. */
  bodies: { asked: string; status: number; text: string; issues: boolean }[]
  events: object[]
  rows: object[]
}

export const hostile = 'first line\r\nsecond line \u001b[31mred\u001b[0m \u2028 \u0007'
const json = { 'Content-Type': 'application/json' }

/** Every kind of success and failure there is, each with canaries in all that it is given. */
export async function runCanaries(logger: Logger): Promise<CanaryRun> {
  const database = knex({
    client: 'better-sqlite3',
    connection: { filename: ':memory:' },
    useNullAsDefault: true,
    pool: { min: 1, max: 1 },
  })
  const faulty = faultyStore(createKnexStore({ knex: database }))
  const mounted = await mount({
    knex: database,
    settings: { jwtSecret: testSecret, tokenDelivery: 'both' },
    options: { store: faulty.store, logger, throttle: { routes: false } },
    host: (app, auth) => app.get('/api', auth.guards.requireUser(), (_req, res) => void res.json({ ok: true })),
  })
  const run: CanaryRun = {
    secrets: {
      'jwt secret': [testSecret],
      'client secret': [mounted.provider.clientSecret, encodeURIComponent(mounted.provider.clientSecret)],
    },
    issued: [],
    personal: ['canary-person@example.test', 'canary-subject', 'Canary Person'],
    bodies: [],
    events: [],
    rows: [],
  }
  listen(mounted, run)
  await successes(mounted, run)
  await refusals(mounted, run)
  await providerFailures(mounted, run)
  run.rows = await dump(mounted)
  await storeFailures(mounted, run, faulty)
  await mounted.close()
  await new Promise((resolve) => setImmediate(resolve))
  return run
}

function listen({ auth }: Mounted, run: CanaryRun): void {
  const names: AuthEventName[] = [
    'signup',
    'login',
    'login.failed',
    'challenge',
    'logout',
    'refresh.reused',
    'identity.linked',
    'identity.unlinked',
  ]
  for (const name of [...names, 'throttled', 'provider.failed'] as const)
    auth.events.on(name, (payload) => run.events.push({ name, payload }))
  auth.events.on('login', () => {
    throw new Error('canary-listener')
  })
  keep(run, 'listener', 'canary-listener')
}

function keep(run: CanaryRun, kind: string, ...values: (string | null | undefined)[]): void {
  run.secrets[kind] = [
    ...(run.secrets[kind] ?? []),
    ...values.filter((value): value is string => typeof value === 'string' && value !== ''),
  ]
}

function note(run: CanaryRun, asked: string, { status, text }: { status: number; text: string }, issues = false): void {
  run.bodies.push({ asked, status, text, issues })
}

const person = (changes: object = {}) => ({
  sub: 'canary-subject',
  email: 'canary-person@example.test',
  email_verified: true,
  name: 'Canary Person',
  phone: 'canary-raw-claim',
  ...changes,
})

/** A callback with everything that passed between us and the provider noted as secret. */
async function callback(mounted: Mounted, run: CanaryRun, asked: string, profile: Record<string, unknown> = person()): Promise<Pair> {
  const { provider } = mounted
  provider.idToken = (claims) => {
    const token = provider.signJwt(claims)
    keep(run, 'id_token', token)
    return token
  }
  const browser = mounted.browser()
  const { callbackQuery, code, state } = await startLogin(mounted, browser, { profile })
  const response = await browser.get('/auth/oauth/corp/callback').query(callbackQuery)
  note(run, asked, response, response.status === 200)
  keep(run, 'code', code)
  keep(run, 'state', state)
  for (const request of provider.requests) {
    keep(run, 'pkce verifier', request.form.get('code_verifier'))
    keep(run, 'provider access token', request.headers.authorization?.replace('Bearer ', ''))
  }
  keep(run, 'raw claim', 'canary-raw-claim')
  const pair = { access: String(response.body.access_token), refresh: String(response.body.refresh_token) }
  if (response.status === 200) run.issued.push(pair.access, pair.refresh)
  return pair
}

interface Pair {
  access: string
  refresh: string
}

async function successes(mounted: Mounted, run: CanaryRun): Promise<void> {
  const pair = await callback(mounted, run, 'first login')
  await callback(mounted, run, 'second login')
  const refreshed = await mounted.browser().post('/auth/refresh').send({ refresh_token: pair.refresh })
  note(run, 'refresh', refreshed, true)
  run.issued.push(refreshed.body.access_token, refreshed.body.refresh_token)
  note(run, 'refresh reused', await mounted.browser().post('/auth/refresh').send({ refresh_token: pair.refresh }))
  note(run, 'refresh of the family', await mounted.browser().post('/auth/refresh').send({ refresh_token: refreshed.body.refresh_token }))
  note(run, 'logout', await mounted.browser().post('/auth/logout').send({ refresh_token: pair.refresh }))
  await Promise.all(
    ['one', 'other'].map((which) =>
      callback(mounted, run, `racing first login, ${which}`, person({ sub: 'race', email: 'canary-race@example.test' })),
    ),
  )
  run.personal.push('canary-race@example.test')
}

async function refusals(mounted: Mounted, run: CanaryRun): Promise<void> {
  const ask = async (asked: string, request: Parameters<typeof sendRaw>[1]): Promise<RawAnswer> => {
    const response = await sendRaw(mounted.app, request)
    note(run, asked, response)
    return response
  }
  const email = { sub: 'another', email: 'canary-person@example.test' }
  await callback(mounted, run, 'an address that is taken', person(email))
  await callback(mounted, run, 'control characters in the subject', person({ sub: `c ${hostile}` }))
  await callback(mounted, run, 'control characters in the address', person({ sub: 'c-2', email: `canary ${hostile}@example.test` }))
  await callback(mounted, run, 'control characters in the name', person({ sub: 'c-3', email: 'canary-name@example.test', name: hostile }))
  run.personal.push('canary-name@example.test')
  const sent = {
    authorization: 'canary-authorization',
    cookie: 'canary-cookie',
    query: 'canary-query-token',
    body: 'canary-body-password',
    description: 'canary-error-description',
  }
  for (const [kind, value] of Object.entries(sent)) keep(run, `sent ${kind}`, value)
  const description = encodeURIComponent(`${sent.description} ${hostile}`)
  await ask('denied', { method: 'GET', path: `/auth/oauth/corp/callback?error=access_denied&error_description=${description}` })
  await ask('a wrong state', { method: 'GET', path: `/auth/oauth/corp/callback?state=${sent.query}&code=${sent.query}` })
  await ask('a provider nobody registered', { method: 'GET', path: `/auth/oauth/${encodeURIComponent(hostile)}/login` })
  await ask('bad percent-encoding', { method: 'GET', path: `/auth/oauth/%zz${sent.query}/login` })
  for (const [asked, body] of [
    ['malformed JSON', `{"refresh_token":"${sent.body}`],
    ['malformed JSON that looks like a stack', `x\n    at ${sent.body} (secret:1:1)`],
    ['a wrong type', `{"refresh_token":{"password":"${sent.body}"}}`],
    ['too long', `{"refresh_token":"${sent.body.repeat(300)}"}`],
    ['an unknown token', `{"refresh_token":"${sent.body}"}`],
    ['NUL', `{"refresh_token":"${sent.body}\\u0000"}`],
  ] as const)
    await ask(asked, { path: '/auth/refresh', headers: json, body })
  await ask('text', { path: '/auth/refresh', headers: { 'Content-Type': 'text/plain' }, body: sent.body })
  await ask('a wrong bearer', {
    method: 'GET',
    path: `/api?access_token=${sent.query}`,
    headers: { Authorization: `Bearer ${sent.authorization}` },
  })
  await ask('a malformed bearer', { method: 'GET', path: '/auth/me', headers: { Authorization: `Bearer ${sent.authorization} x` } })
  await ask('a wrong cookie', { path: '/auth/cookie/refresh', headers: { Cookie: `refresh_token=${sent.cookie}` } })
  await ask('a wrong access cookie', { method: 'GET', path: '/auth/me', headers: { Cookie: `access_token=${sent.cookie}` } })
}

async function providerFailures(mounted: Mounted, run: CanaryRun): Promise<void> {
  const { provider } = mounted
  keep(run, 'provider text', 'canary-provider-frame')
  const echo = (body: string) => `${body} ${new URLSearchParams(body).get('client_secret') ?? ''} \n    at canary-provider-frame ${hostile}`
  provider.on('token', (request, response) => answer(400, { error: 'invalid_grant', echo: echo(request.body) })(request, response))
  await callback(mounted, run, 'the token endpoint refuses and echoes')
  provider.on('token', (request, response) => answer(500, `<html>${request.body}</html>`)(request, response))
  await callback(mounted, run, 'the token endpoint fails and echoes')
  provider.on('token', (request, response) => answer(200, `x\n    at canary-provider-frame ${request.body}`)(request, response))
  await callback(mounted, run, 'the token endpoint answers no JSON')
  provider.on('token', null)
  provider.on('userinfo', (request, response) => answer(401, { token: request.headers.authorization })(request, response))
  await callback(mounted, run, 'userinfo refuses and echoes')
  provider.on('userinfo', (_request, response) => void response.socket?.destroy())
  await callback(mounted, run, 'userinfo breaks off')
  provider.on('userinfo', null)
}

async function storeFailures(mounted: Mounted, run: CanaryRun, faulty: ReturnType<typeof faultyStore>): Promise<void> {
  keep(run, 'store message', 'canary-store-message')
  const pair = await callback(mounted, run, 'login before the store fails')
  for (const verb of ['identities.findWithUser', 'refreshTokens.insert', 'identities.recordLogin']) {
    faulty.break(verb, () =>
      Promise.reject(
        Object.assign(new Error(`canary-store-message\n    at canary-store-message ${hostile}`), {
          sql: 'canary-store-message',
          code: hostile,
        }),
      ),
    )
    await callback(mounted, run, `the store fails at ${verb}`)
  }
  faulty.break(null)
  await mounted.knex.destroy()
  await callback(mounted, run, 'the database is down: login')
  note(run, 'the database is down: refresh', await mounted.browser().post('/auth/refresh').send({ refresh_token: pair.refresh }))
  note(run, 'the database is down: me', await mounted.browser().get('/auth/me').set('Authorization', `Bearer ${pair.access}`))
  note(run, 'the database is down: guard', await mounted.browser().get('/api').set('Authorization', `Bearer ${pair.access}`))
}

async function dump({ knex }: Mounted): Promise<object[]> {
  const tables = (await knex('sqlite_master').where({ type: 'table' }).pluck('name')) as string[]
  const rows = await Promise.all(tables.filter((table) => table.startsWith('auth_')).map((table) => knex(table)))
  return rows.flat() as object[]
}

/** Alone, it is a host on the default logger: `canary-run.ts FILE` leaves the run in the file and the logs on its streams. */
const target = process.argv[2]
if (target?.endsWith('.canaries.json')) {
  void runCanaries(consoleLogger).then((run) => writeFileSync(target, JSON.stringify(run)))
}
