import { writeFileSync } from 'node:fs'
import knex from 'knex'
import { Registry } from 'prom-client'
import { type AuthEventName, auditLog, createKnexStore, type Logger, metrics, newPasswordTask, OidcClient } from '../../src'
import { eventFields } from '../../src/core/events'
import { consoleLogger } from '../../src/core/logger'
import { type Mounted, mount, startLogin, testSecret } from './app'
import { approvals, bouncing, departures, moreFailures, moreFlows } from './canary-flows'
import { answer } from './fake-provider'
import { fastHasher } from './fast-hasher'
import { type FaultyStore, faultyStore } from './faulty-store'
import { linkTemplates, type Mailbox, mailbox, tokenOf } from './mailbox'
import { type RawAnswer, sendRaw } from './send-raw'

const byMail = { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } as const

const passkeys = { passkeysEnabled: true, webauthnRpName: 'Example' }

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
  /** Of `auditLog`: what events became. */
  auditRows: object[]
  /** Rows of `auth_outbox`, oldest first, and the events that had been told by then. */
  outbox: { rows: object[]; events: object[] }
  /** What a scrape of `metrics` shows. */
  metrics: string
}

const mfaSettings = {
  mfaEnabled: true,
  mfaIssuer: 'Example',
  mfaSecretKey: Buffer.from('canaries have thirty-two letters').toString('base64'),
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
  const mails = mailbox()
  const run: CanaryRun = {
    secrets: {
      'jwt secret': [testSecret],
      'mfa secret key': [mfaSettings.mfaSecretKey],
    },
    issued: [],
    personal: ['canary-person@example.test', 'canary-subject', 'Canary Person'],
    bodies: [],
    events: [],
    rows: [],
    auditRows: [],
    outbox: { rows: [], events: [] },
    metrics: '',
  }
  const mounted = await mount({
    knex: database,
    settings: {
      jwtSecret: testSecret,
      tokenDelivery: 'both',
      ...linkTemplates,
      ...mfaSettings,
      ...byMail,
      ...passkeys,
      unknownDevice: 'notice',
      invitationsEnabled: true,
      trustedDeviceDays: 30,
    },
    providers: {
      corp: {},
      introspecting: (provider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })),
      asking: (provider) => new OidcClient(provider.oidcOptions({ tokeninfoUrl: provider.tokeninfoUrl })),
    },
    options: {
      outbox: true,
      loginTasks: [newPasswordTask()],
      store: faulty.store,
      logger,
      mailer: bouncing(mails, (token) => keep(run, 'link token of a mail that bounced', token)),
      passwordHasher: talkativeHasher(),
      signup: { onSignup: ({ email }) => void talkAbout('canary-hook@', email) },
      refusesEmailLink: ({ email }) => talkAbout('canary-link@', email),
      throttle: { routes: false, login: false, links: false, mail: false, mfa: false },
    },
    host: (app, auth) => app.get('/api', auth.guards.requireUser(), (_req, res) => void res.json({ ok: true })),
  })
  keep(run, 'client secret', mounted.provider.clientSecret, encodeURIComponent(mounted.provider.clientSecret))
  listen(mounted, run)
  const audit = auditLog(database, { logger })
  audit.watch(mounted.auth.events)
  const registry = new Registry()
  const counting = metrics(registry)
  counting.watch(mounted.auth.events)
  await successes(mounted, run)
  await refusals(mounted, run)
  await localAccounts(mounted, run, mails)
  await localFailures(mounted, run, faulty)
  await providerFailures(mounted, run)
  await tokensInHand(mounted, run)
  const { code } = await moreFlows(mounted, run, mails)
  await moreFailures(mounted, run, faulty, code)
  const approving = await mount({
    knex: database,
    settings: { jwtSecret: testSecret, realm: 'approving', signupMode: 'approve', ...linkTemplates },
    options: { outbox: true, logger, mailer: mails, throttle: { signupMails: { attempts: 1, windowSeconds: 3_600 } } },
  })
  listen(approving, run)
  audit.watch(approving.auth.events)
  counting.watch(approving.auth.events)
  await approvals(approving, run, mails)
  await approving.close()
  const leaving = await mount({
    knex: database,
    settings: { jwtSecret: testSecret, realm: 'leaving', accountDeletion: 'soft', ...linkTemplates },
    options: { outbox: true, logger, mailer: mails },
  })
  listen(leaving, run)
  audit.watch(leaving.auth.events)
  counting.watch(leaving.auth.events)
  await departures(leaving, run, mails)
  await leaving.close()
  await audit.flush()
  run.rows = await dump(mounted)
  run.auditRows = await database('auth_audit_log')
  run.outbox = { rows: await database('auth_outbox').orderBy('seq'), events: [...run.events] }
  run.metrics = await registry.metrics()
  await storeFailures(mounted, run, faulty)
  await mounted.close()
  await new Promise((resolve) => setImmediate(resolve))
  return run
}

function listen({ auth }: Mounted, run: CanaryRun): void {
  for (const name of Object.keys(eventFields) as AuthEventName[]) auth.events.on(name, (payload) => run.events.push({ name, payload }))
  auth.events.on('login', () => {
    throw new Error('canary-listener')
  })
  keep(run, 'listener', 'canary-listener')
}

export function keep(run: CanaryRun, kind: string, ...values: (string | null | undefined)[]): void {
  run.secrets[kind] = [
    ...(run.secrets[kind] ?? []),
    ...values.filter((value): value is string => typeof value === 'string' && value !== ''),
  ]
}

export function note(run: CanaryRun, asked: string, { status, text }: { status: number; text: string }, issues = false): void {
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

/** A host's hook that fails with what it was given in its message. */
function talkAbout(whom: string, email: string): false {
  if (email.startsWith(whom)) throw Object.assign(new Error(`canary-hook-message ${email} ${hostile}`), { code: hostile })
  return false
}

/** A hasher that fails, for one password, with the password in its message. */
function talkativeHasher() {
  const fast = fastHasher()
  return {
    ...fast,
    async verify(hash: string, password: string) {
      if (password.startsWith('canary-hasher')) throw new Error(`cannot verify ${password} against ${hash}`)
      return fast.verify(hash, password)
    },
  }
}

const localPasswords = {
  chosen: 'canary-password chosen first',
  next: 'canary-password chosen next',
  last: 'canary-password chosen last',
  wrong: 'canary-password that is wrong',
  short: 'canary-pass',
  hasher: 'canary-hasher-password',
}

/** What is sent and mailed of a local account, all of it noted as secret. */
async function localAccounts(mounted: Mounted, run: CanaryRun, mails: Mailbox): Promise<void> {
  const email = 'canary-local@example.test'
  const name = 'Canary Local Name'
  const unknownToken = 'canary-unknown-token-of-43-characters-length'.slice(0, 43)
  run.personal.push(email, name, 'canary-nobody@example.test', 'canary-hook@example.test', 'canary-link@example.test')
  keep(run, 'local password', ...Object.values(localPasswords))
  keep(run, 'unknown link token', unknownToken)
  keep(run, 'host message', 'canary-hook-message')
  const post = async (asked: string, path: string, body: object, { issues = false, headers = {} } = {}) => {
    const response = await mounted.browser().post(`/auth${path}`).set(headers).send(body)
    note(run, asked, response, issues)
    if (issues) run.issued.push(response.body.access_token, response.body.refresh_token)
    return response
  }
  const { chosen, next, last, wrong, short } = localPasswords
  const mailed = async (kind: 'activation' | 'password_reset') => {
    const token = tokenOf(await mails.next({ kind, to: email }))
    keep(run, `${kind} token`, token)
    return token
  }

  await post('signup', '/signup', { email, password: chosen, name })
  const activation = await mailed('activation')
  await post('signup, a short password', '/signup', { email, password: short })
  await post('signup, its own address for a password', '/signup', { email, password: email })
  await post('signup, no address', '/signup', { email: `${email} ${hostile}`, password: chosen })
  const malformed = { path: '/auth/signup', headers: json, body: `{"email":"${email}","password":"${chosen}` }
  note(run, 'signup, malformed JSON', await sendRaw(mounted.app, malformed))
  await post('activate, unknown', '/activate', { token: unknownToken })
  await post('activate, unknown, by path', `/activate/${unknownToken}`, {})
  await post('reset by an activation link', '/password-reset/confirm', { token: activation, new_password: next })
  await post('activate', `/activate/${activation}`, {}, { issues: true })
  await post('activate again', `/activate/${activation}`, {})
  await post('signup, taken', '/signup', { email, password: wrong, name: hostile })
  await post('login', '/login', { email, password: chosen }, { issues: true })
  await post('login, wrong', '/login', { email, password: wrong })
  await post('login, unknown', '/login', { email: 'canary-nobody@example.test', password: wrong })
  await post('login, the hasher fails', '/login', { email, password: localPasswords.hasher })
  await post('activation request', '/activation/request', { email })
  await post('reset request', '/password-reset/request', { email })
  const token = await mailed('password_reset')
  await post('reset, a short password', '/password-reset/confirm', { token, new_password: short })
  const reset = await post('reset', '/password-reset/confirm', { token, new_password: next }, { issues: true })
  const headers = { Authorization: `Bearer ${reset.body.access_token}` }
  await post('change, wrong', '/password-change', { current_password: wrong, new_password: last }, { headers })
  await post('change', '/password-change', { current_password: next, new_password: last }, { headers })
  const cookie = await mounted.browser().post('/auth/cookie/login').send({ email, password: last })
  note(run, 'login by cookie', cookie)
  const lines = (cookie.headers['set-cookie'] ?? []) as unknown as string[]
  const secrets = lines.filter((line) => !line.startsWith('auth_hint=')) // the hint is the same for everybody
  for (const line of secrets) run.issued.push(String(/=([^;]+)/.exec(line)?.[1]))
  const headersOf = { 'User-Agent': 'canary-device' }
  const session = await mounted.browser().post('/auth/session/login').set(headersOf).send({ email, password: last })
  const kept = String(/auth_session=([^;]+)/.exec(String(session.headers['set-cookie']))?.[1])
  keep(run, 'session cookie', kept)
  run.personal.push(headersOf['User-Agent'])
  note(run, 'login into a session', session)
  const Cookie = `auth_session=${kept}`
  note(run, 'session me', await mounted.browser().get('/auth/session/me').set({ Cookie }), true)
  note(run, 'session list', await mounted.browser().get('/auth/session/list').set({ Cookie }))
  note(run, 'session end, unknown', await mounted.browser().delete(`/auth/session/${kept}`).set({ Cookie }))
  note(run, 'session logout', await mounted.browser().post('/auth/session/logout').set({ Cookie }))
  note(run, 'session me, ended', await mounted.browser().get('/auth/session/me').set({ Cookie }))
}

async function localFailures(mounted: Mounted, run: CanaryRun, faulty: FaultyStore): Promise<void> {
  const post = async (asked: string, path: string, body: object) =>
    note(run, asked, await mounted.browser().post(`/auth${path}`).send(body))
  const given = { email: 'canary-local@example.test', password: localPasswords.last }
  const fresh = { email: 'canary-nobody@example.test', password: localPasswords.chosen }
  await post('the signup hook fails', '/signup', { ...fresh, email: 'canary-hook@example.test' })
  await post('the link hook fails at signup', '/signup', { ...fresh, email: 'canary-link@example.test' })
  await post('the link hook fails at a request', '/password-reset/request', { email: 'canary-link@example.test' })
  keep(run, 'store message', 'canary-store-message')
  for (const [verb, path, body] of [
    ['users.insert', '/signup', fresh],
    ['userTokens.insert', '/signup', fresh],
    ['users.findByEmail', '/login', given],
    ['users.recordLogin', '/login', given],
  ] as const) {
    faulty.break(verb, () => {
      const statement = `insert into users values ('${body.email}', '${body.password}') ${hostile}`
      return Promise.reject(
        Object.assign(new Error(`canary-store-message ${statement}`), { sql: statement, detail: statement, code: hostile }),
      )
    })
    await post(`${path} while the store fails at ${verb}`, path, body)
  }
  faulty.break(null)
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

async function tokensInHand(mounted: Mounted, run: CanaryRun): Promise<void> {
  const { provider } = mounted
  const email = 'canary-hand@example.test'
  run.personal.push(email)
  const send = async (asked: string, key: string, accessToken: string) => {
    keep(run, 'token in hand', accessToken, encodeURIComponent(accessToken))
    const response = await mounted.browser().post(`/auth/oauth/${key}/token`).send({ access_token: accessToken })
    note(run, asked, response, response.status === 200)
    if (response.status === 200) run.issued.push(response.body.access_token, response.body.refresh_token)
  }
  const own = (sub: string) => provider.issueAccessToken({ profile: person({ sub, email }) })
  await send('a token in hand', 'introspecting', own('in-hand'))
  await send('a token of another application', 'introspecting', provider.issueAccessToken({ issuedTo: 'another' }))
  await send('a token nobody knows', 'asking', 'canary-in-hand/unknown+token')
  await send('a token in hand for nobody to check', 'corp', 'canary-in-hand/unchecked')
  await send('a malformed token in hand', 'asking', 'canary-in-hand with blanks')
  const echo = (status: number) =>
    provider.on('introspect', (request, response) =>
      answer(status, { body: request.body, auth: request.headers.authorization ?? '' })(request, response),
    )
  echo(401)
  await send('introspection refuses and echoes', 'introspecting', 'canary-in-hand/refused')
  echo(503)
  await send('introspection fails and echoes', 'introspecting', 'canary-in-hand/failed')
  provider.on('tokeninfo', (request, response) => answer(400, `no ${request.url}`)(request, response))
  await send('tokeninfo refuses and echoes', 'asking', 'canary-in-hand/tokeninfo')
  provider.on('tokeninfo', (_request, response) => void response.socket?.destroy())
  await send('tokeninfo breaks off', 'asking', 'canary-in-hand/broken')
  provider.on('introspect', null)
  provider.on('userinfo', (request, response) => answer(401, { token: request.headers.authorization })(request, response))
  await send('userinfo refuses a token in hand and echoes', 'introspecting', own('in-hand'))
  provider.on('userinfo', null)
}

async function storeFailures(mounted: Mounted, run: CanaryRun, faulty: ReturnType<typeof faultyStore>): Promise<void> {
  keep(run, 'store message', 'canary-store-message')
  const pair = await callback(mounted, run, 'login before the store fails')
  for (const verb of ['identities.findWithUser', 'sessions.insertWithin', 'identities.recordLogin']) {
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
