import type { AuthMail, Mailer } from '../../src'
import type { Operations } from '../../src/admin/operations/operations'
import { type LoadOperations, OPERATIONS } from '../../src/admin/operations/operations-key'
import { virtualAuthenticator } from '../../src/testing'
import { authenticator } from '../mfa/authenticator'
import { baseUrl, type Mounted, startLogin } from './app'
import { type CanaryRun, hostile, keep, note } from './canary-run'
import type { FaultyStore } from './faulty-store'
import { type Mailbox, tokenOf } from './mailbox'

/** A mailer that fails, for one kind of address, with the whole mail in its message. */
export function bouncing(mails: Mailbox, keepToken: (token: string) => void): Mailer {
  return {
    async send(mail: AuthMail) {
      if (!mail.to.startsWith('canary-bounce')) return mails.send(mail)
      if (mail.url !== null) keepToken(tokenOf(mail))
      throw Object.assign(new Error(`cannot deliver ${JSON.stringify(mail)} ${hostile}`), {
        response: `550 ${mail.to} ${mail.url}`,
        retryable: false,
      })
    },
  }
}

type Ask = ReturnType<typeof asking>

/** Requests of one person, noted. */
function asking(mounted: Mounted, run: CanaryRun) {
  return async (asked: string, path: string, body: object | null = {}, { token, issues = false, method = 'post' }: AskOptions = {}) => {
    const request = mounted.browser()[method](`/auth${path}`)
    if (token !== undefined) request.set('Authorization', `Bearer ${token}`)
    const response = body === null ? await request : await request.send(body)
    note(run, asked, response, issues)
    const { access_token: access, refresh_token: refresh, mfa_token: challenge, task_token: owed } = response.body ?? {}
    run.issued.push(...[access, refresh, challenge, owed].filter((value): value is string => typeof value === 'string'))
    return response
  }
}

interface AskOptions {
  token?: string
  issues?: boolean
  method?: 'get' | 'post' | 'patch' | 'delete'
}

const email = 'canary-factor@example.test'
const password = 'canary-password of the second factor'
const unknownCode = 'AAAAA-BBBBB-CCCCC-DDDDD-EEEEE'
const wrong = { code: 'canary-wrong-code', token: 'canary-wrong-challenge-token' }

/** The second factor, addresses, linked identities, administration, and mails that do not arrive. */
export async function moreFlows(mounted: Mounted, run: CanaryRun, mails: Mailbox): Promise<{ code: () => string }> {
  const ask = asking(mounted, run)
  keep(run, 'password of the second factor', password)
  keep(run, 'wrong code', wrong.code, wrong.token, unknownCode)
  run.personal.push(email, 'canary-changed@example.test', 'canary-bounce@example.test')
  await ask('signup for a second factor', '/signup', { email, password })
  const activation = tokenOf(await mails.next({ kind: 'activation', to: email }))
  keep(run, 'activation token', activation)
  const first = await ask('activate for a second factor', '/activate', { token: activation }, { issues: true })
  const userId = String(first.body.user_id)
  const { token, code } = await secondFactor(mounted, run, ask, String(first.body.access_token))
  await linking(mounted, run, ask, token)
  await administration(mounted, run, ask, { userId, token, mails })
  await owners(mounted, run, ask, mails, token)
  await passkeys(run, ask, token)
  await addresses(run, ask, mails, token)
  await ask('signup, the mail bounces', '/signup', { email: 'canary-bounce@example.test', password })
  await ask('reset request, the mail bounces', '/password-reset/request', { email: 'canary-bounce@example.test' })
  await toldOf(run, 'mail.failed')
  await owedTasks(mounted, run, ask, mails)
  return { code }
}

/** An expired password in an unknown browser: a mailed code, then a new password. */
async function owedTasks({ auth }: Mounted, run: CanaryRun, ask: Ask, mails: Mailbox): Promise<void> {
  const person = { email: 'canary-tasks@example.test', password: 'canary-password that expires' }
  const renewed = 'canary-password after it expired'
  keep(run, 'password that expires', person.password, renewed)
  run.personal.push(person.email)
  await ask('signup for the tasks', '/signup', person)
  const token = tokenOf(await mails.next({ kind: 'activation', to: person.email }))
  keep(run, 'activation token', token)
  const { body } = await ask('activate for the tasks', '/activate', { token }, { issues: true })
  await auth.service.expirePassword(String(body.user_id))
  const login = await ask('login that owes tasks', '/login', person, { issues: true })
  const { code } = await mails.next({ kind: 'device_code', to: person.email })
  keep(run, 'device code', code)
  const known = await ask('the code of the task', '/tasks/device', { task_token: login.body.task_token, code }, { issues: true })
  const answer = { task_token: known.body.task_token, new_password: renewed }
  await ask('the new password of the task', '/tasks/new-password', answer, { issues: true })
}

/** What goes on after an answer is told later. */
async function toldOf(run: CanaryRun, name: string): Promise<void> {
  for (let waited = 0; !run.events.some((event) => 'name' in event && event.name === name); waited += 10) {
    if (waited > 5_000) throw new Error(`${name} was never told`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Enrolled, shown at a login, and renewed: the access token of a session that showed it, and its next code. */
async function secondFactor(mounted: Mounted, run: CanaryRun, ask: Ask, access: string): Promise<{ token: string; code: () => string }> {
  const enrolment = await ask('enroll', '/mfa/enroll', {}, { token: access, issues: true })
  const { secret, recovery_codes: codes, provisioning_uri: uri } = enrolment.body as Enrolment
  run.issued.push(secret, uri, ...codes)
  const app = authenticator(secret, mounted.clock)
  const code = () => {
    const presented = app.nextCode()
    keep(run, 'code of six digits', presented)
    return presented
  }
  await ask('confirm, a wrong code', '/mfa/confirm', { code: wrong.code }, { token: access })
  const confirmed = await ask('confirm', '/mfa/confirm', { code: code() }, { token: access, issues: true })
  mounted.clock.advance(86_401) // a young factor opens no fresh session
  const challenge = async (asked: string) => String((await ask(asked, '/login', { email, password }, { issues: true })).body.mfa_token)
  const waiting = await challenge('login to a challenge')
  await ask('verify, a wrong code', '/mfa/verify', { mfa_token: waiting, code: wrong.code })
  await ask('verify, a wrong token', '/mfa/verify', { mfa_token: wrong.token, code: code() })
  await ask('verify', '/mfa/verify', { mfa_token: waiting, code: code() }, { issues: true })
  await ask('verify again', '/mfa/verify', { mfa_token: waiting, code: code() })
  const session = await ask(
    'verify by recovery code',
    '/mfa/verify',
    { mfa_token: await challenge('login for a recovery code'), code: codes[0] },
    { issues: true },
  )
  const intoSession = await ask('verify into a session', '/session/mfa/verify', {
    mfa_token: await challenge('login for a session'),
    code: code(),
    trust_device: true,
  })
  const trust = /auth_trust=([^;]+)/.exec(String(intoSession.headers['set-cookie']))?.[1] ?? ''
  const [entry] = JSON.parse(Buffer.from(trust.split('.')[0] ?? '', 'base64url').toString()) as { token: string }[]
  keep(run, 'trust cookie', trust, entry?.token)
  keep(run, 'session cookie', /auth_session=([^;]+)/.exec(String(intoSession.headers['set-cookie']))?.[1])
  const token = String(session.body.access_token)
  const renewed = await ask('new recovery codes', '/mfa/recovery-codes', { code: code() }, { token, issues: true })
  run.issued.push(...(renewed.body as Enrolment).recovery_codes)
  await ask('disable, a wrong password', '/mfa/disable', { password: `${password} not`, code: code() }, { token })
  await ask('change by code, a wrong code', '/password-change/mfa', { code: wrong.code, new_password: password }, { token })
  expectIssued(confirmed.body.access_token)
  return { token, code }
}

interface Enrolment {
  secret: string
  provisioning_uri: string
  recovery_codes: string[]
}

function expectIssued(token: unknown): void {
  if (typeof token !== 'string') throw new Error('confirming ends in a session')
}

async function passkeys(run: CanaryRun, ask: Ask, token: string): Promise<void> {
  const authenticator = virtualAuthenticator({ origin: baseUrl, counts: true })
  const options = async (asked: string, path: string) => {
    const { body } = await ask(asked, path, {}, { token, issues: true })
    run.issued.push(body.challenge_token)
    return body
  }
  const begun = await options('passkey options', '/passkeys/register/options')
  const lied = { credential: authenticator.create(begun, { origin: 'https://canary.example' }), challenge_token: begun.challenge_token }
  await ask('passkey, of another origin', '/passkeys/register', lied, { token })
  const again = await options('passkey options again', '/passkeys/register/options')
  const made = { credential: authenticator.create(again), challenge_token: again.challenge_token }
  const added = await ask('passkey', '/passkeys/register', made, { token })
  const login = await options('passkey login options', '/passkeys/login/options')
  const presented = { credential: authenticator.get(login), challenge_token: login.challenge_token }
  await ask('passkey login', '/passkeys/login', presented, { issues: true })
  const copied = await options('passkey login options again', '/passkeys/login/options')
  const old = { credential: authenticator.get(copied, { counter: 1 }), challenge_token: copied.challenge_token }
  await ask('passkey login, a cloned one', '/passkeys/login', old)
  await ask('passkey removed', `/passkeys/${added.body.id}`, {}, { token, method: 'delete' })
}

async function addresses(run: CanaryRun, ask: Ask, mails: Mailbox, token: string): Promise<void> {
  await ask('verification request', '/email-verify/request', {}, { token })
  const verification = tokenOf(await mails.next({ kind: 'email_verification', to: email }))
  await ask('verification', '/email-verify/confirm', { token: verification })
  await ask('verification again', '/email-verify/confirm', { token: verification })
  const change = { new_email: 'canary-changed@example.test' }
  await ask('change of address', '/email-change/request', change, { token })
  const changing = tokenOf(await mails.next({ kind: 'email_change', to: change.new_email }))
  keep(run, 'link token of an address', verification, changing)
  await ask('change of address confirmed, a wrong password', '/email-change/confirm', { token: changing, password: `${password} not` })
  await ask('change of address confirmed', '/email-change/confirm', { token: changing }, { token })
}

async function linking(mounted: Mounted, run: CanaryRun, ask: Ask, token: string): Promise<void> {
  const { provider } = mounted
  const profile = { sub: 'canary-linked-subject', email: 'canary-linked@example.test', name: 'Canary Linked' }
  run.personal.push(...Object.values(profile))
  const hand = provider.issueAccessToken({ profile })
  keep(run, 'token in hand', hand)
  const browser = mounted.browser()
  const begun = await browser.post('/auth/oauth/corp/link').set('Authorization', `Bearer ${token}`)
  note(run, 'link begun', begun, true)
  if (begun.status !== 200) throw new Error(`link answered ${begun.status}: ${begun.text}`)
  const { callbackQuery, code, state } = provider.authorize(String(begun.body.authorize_url), {
    profile: { ...profile, sub: `${profile.sub}-2` },
  })
  keep(run, 'code', code)
  keep(run, 'state cookie', decodeURIComponent(/oauth_state=([^;]+)/.exec(String(begun.headers['set-cookie']))?.[1] ?? ''))
  run.issued.push(state)
  const brought = await browser.get('/auth/oauth/corp/callback').query(callbackQuery)
  note(run, 'link by redirect', brought, true)
  run.issued.push(brought.body.link_ticket)
  await ask('link ticket', '/oauth/link/redeem', { ticket: brought.body.link_ticket }, { token })
  await ask('link ticket again', '/oauth/link/redeem', { ticket: brought.body.link_ticket }, { token })
  await ask('link by token', '/oauth/introspecting/link', { access_token: hand }, { token })
  await ask(
    'link by token of another application',
    '/oauth/introspecting/link',
    { access_token: provider.issueAccessToken({ issuedTo: 'x' }) },
    { token },
  )
  await ask('linked identities', '/oauth/accounts', null, { token, method: 'get' })
  await ask('unlink', '/oauth/accounts/unlink', { provider: 'introspecting' }, { token })
  const { callbackQuery: challenged } = await startLogin(mounted, browser, { profile: { ...profile, sub: `${profile.sub}-2` } })
  const challenge = await browser.get('/auth/oauth/corp/callback').query(challenged)
  run.issued.push(String(challenge.body.mfa_token))
  note(run, 'login by provider to a challenge', challenge, true)
}

async function administration(
  { knex, auth }: Mounted,
  run: CanaryRun,
  ask: Ask,
  { userId, token, mails }: { userId: string; token: string; mails: Mailbox },
): Promise<void> {
  await ask('users, no administrator', '/admin/users', null, { token, method: 'get' })
  await knex('auth_users').where({ id: userId }).update({ is_admin: true })
  keep(run, 'filter', 'canary-filter-value')
  await ask('users', '/admin/users?email__contains=canary-local', null, { token, method: 'get' })
  await ask('users, an unknown filter', '/admin/users?hashed_password__startswith=canary-filter-value', null, { token, method: 'get' })
  const { id: other } = await knex('auth_users').where({ email: 'canary-local@example.test' }).first()
  await ask('a user', `/admin/users/${other}`, null, { token, method: 'get' })
  await ask('a user changed', `/admin/users/${other}`, { name: 'Canary Local Name' }, { token, method: 'patch' })
  for (const action of ['reset-mfa', 'revoke-sessions', 'deactivate', 'activate'])
    await ask(`${action} by an administrator`, `/admin/users/${other}/${action}`, {}, { token })
  await ask('oneself deactivated', `/admin/users/${userId}/deactivate`, {}, { token })
  await invitations(run, ask, { admin: token, mails })
  const imported = 'canary-imported@example.test'
  run.personal.push(imported)
  const importer = await (await operationsOf(auth)).importUsers({ isDryRun: false, keepsIds: false })
  await importer.add([{ email: imported, name: 'Canary Imported' }])
  importer.end()
}

/** Created, mailed, sent again, refused, used by a sign-up, redeemed and revoked. */
async function invitations(run: CanaryRun, ask: Ask, { admin: token, mails }: { admin: string; mails: Mailbox }): Promise<void> {
  const invited = { email: 'canary-invited@example.test', password: 'canary-password of the invited person' }
  keep(run, 'password of the invited person', invited.password)
  run.personal.push(invited.email, 'canary-team')
  const ofMail = async () => {
    const mailed = tokenOf(await mails.next({ kind: 'invitation', to: invited.email }))
    keep(run, 'invitation token', mailed)
    return mailed
  }
  const data = { team: 'canary-team' }
  const created = await ask('an invitation by mail', '/admin/invitations', { email: invited.email, data }, { token, issues: true })
  const first = await ofMail()
  await ask('an invitation sent again', `/admin/invitations/${created.body.id}/resend`, {}, { token })
  const invitation = await ofMail()
  await ask('signup with an invitation that ended', '/signup', { ...invited, invitation: first })
  await ask('signup with an invitation', '/signup', { ...invited, invitation }, { issues: true })
  const shown = await ask('an invitation that is shown', '/admin/invitations', { uses: 2 }, { token, issues: true })
  run.issued.push(shown.body.token, shown.body.url)
  keep(run, 'wrong invitation', 'canary-wrong-invitation')
  await ask('invitation redeemed, a wrong one', '/invitations/redeem', { token: 'canary-wrong-invitation' }, { token })
  await ask('invitation redeemed', '/invitations/redeem', { token: shown.body.token }, { token })
  await ask('invitation revoked', `/admin/invitations/${shown.body.id}`, {}, { token, method: 'delete' })
}

/** At a router that approves accounts, whose limit of sign-up mails is one: two people wait, one is approved and one is declined. */
export async function approvals(approving: Mounted, run: CanaryRun, mails: Mailbox): Promise<void> {
  const ask = asking(approving, run)
  const waiting = { approve: 'canary-approved@example.test', decline: 'canary-declined@example.test' }
  const secret = 'canary-password of a person who waits'
  keep(run, 'password of a person who waits', secret)
  run.personal.push(...Object.values(waiting))
  for (const [decision, email] of Object.entries(waiting)) await ask(`signup to ${decision}`, '/signup', { email, password: secret })
  for (const [decision, email] of Object.entries(waiting)) {
    const token = tokenOf(await mails.next({ kind: 'activation', to: email }))
    keep(run, 'activation token', token)
    await ask(`activation to ${decision}`, '/activate', { token })
    const { id } = await approving.knex('auth_users').where({ email }).first('id')
    await approving.auth.service[decision as keyof typeof waiting](id)
  }
  await toldOf(run, 'signup.flood')
}

/** A person closes the account, comes back by either way, and is deleted. */
export async function departures(leaving: Mounted, run: CanaryRun, mails: Mailbox): Promise<void> {
  const ask = asking(leaving, run)
  const email = 'canary-leaving@example.test'
  const secret = 'canary-password of a person who leaves'
  keep(run, 'password of a person who leaves', secret)
  run.personal.push(email)
  await ask('signup to leave', '/signup', { email, password: secret })
  const link = tokenOf(await mails.next({ kind: 'activation', to: email }))
  keep(run, 'activation token', link)
  await ask('activation to leave', '/activate', { token: link }, { issues: true })
  const close = async (asked: string) => {
    const { body } = await ask(`login to ${asked}`, '/login', { email, password: secret }, { issues: true })
    await ask('export', '/account/export', null, { token: body.access_token, method: 'get' })
    await ask(asked, '/account/delete', {}, { token: body.access_token })
    const token = tokenOf(await mails.next({ kind: 'account_deletion', to: email }))
    keep(run, 'token of the way back', token)
    return token
  }
  await ask('restore by mail', '/account/restore', { token: await close('delete and come back by mail') })
  leaving.clock.advance(1)
  await close('delete and come back by login')
  const { body } = await ask('login of a closed account', '/login', { email, password: secret }, { issues: true })
  run.issued.push(body.details.restore_token)
  await ask('restore by login', '/account/restore', { token: body.details.restore_token })
  const { id } = await leaving.knex('auth_users').where({ email }).first('id')
  await leaving.auth.service.deleteUser(id)
}

/** What the command does, which no route does. */
function operationsOf(auth: object): Promise<Operations> {
  return (auth as { [OPERATIONS]: LoadOperations })[OPERATIONS]()
}

/** Who owns an account: administrators come and go, a first proof takes over, and links of notices undo changes. */
async function owners({ knex, clock }: Mounted, run: CanaryRun, ask: Ask, mails: Mailbox, admin: string): Promise<void> {
  const own = 'canary-owner@example.test'
  const next = 'canary-owner-next@example.test'
  const passwords = ['canary-owner-password one', 'canary-owner-password two', 'canary-owner-password three']
  const [first = '', second = '', third = ''] = passwords
  run.personal.push(own, next)
  keep(run, 'password of an owner', ...passwords)
  const mailed = async (kind: 'activation' | 'password_reset' | 'email_verification' | 'email_change', to: string) => {
    const token = tokenOf(await mails.next({ kind, to }))
    keep(run, 'link token of an owner', token)
    return token
  }
  const undoToken = async () => {
    for (;;) {
      const mail = await mails.next({ kind: 'notice', to: own })
      if (mail.url === null) continue
      keep(run, 'undo token', tokenOf(mail))
      return tokenOf(mail)
    }
  }
  const session = async (asked: string, path: string, body: object) => {
    clock.advance(1) // a token of the second of a change is refused
    return String((await ask(asked, path, body, { issues: true })).body.access_token)
  }

  await ask('signup of an owner', '/signup', { email: own, password: first })
  const opened = await session('activate an owner', '/activate', { token: await mailed('activation', own) })
  const { id } = await knex('auth_users').where({ email: own }).first()
  for (const is of [true, false])
    await ask(`an administrator: ${is}`, `/admin/users/${id}`, { is_admin: is }, { token: admin, method: 'patch' })

  await ask('change by an owner', '/password-change', { current_password: first, new_password: second }, { token: opened })
  const token = await undoToken()
  await ask('undo', '/security/undo', { token })
  await ask('undo again', '/security/undo', { token })
  const back = await session('reset after an undo', '/password-reset/confirm', {
    token: await mailed('password_reset', own),
    new_password: second,
  })

  await knex('auth_users').where({ id }).update({ email_verified_at: null })
  await ask('verification request of an owner', '/email-verify/request', {}, { token: back })
  const proof = { token: await mailed('email_verification', own) }
  const taken = await ask('verification that takes over', '/email-verify/confirm', proof, { issues: true })
  run.issued.push(taken.body.reset_token)
  const anew = await session('reset after a take-over', '/password-reset/confirm', { token: taken.body.reset_token, new_password: third })

  await ask('login by email asked for', '/email-login/request', { email: own }, { issues: true })
  const mail = await mails.next({ kind: 'email_login', to: own })
  keep(run, 'link token of an owner', tokenOf(mail))
  keep(run, 'code of eight digits', String(mail.code))
  await ask('login by email with another code', '/email-login/confirm', { code: '12345678' })
  await ask('login by email', '/email-login/confirm', { token: tokenOf(mail) }, { issues: true })

  await ask('change of an owner’s address', '/email-change/request', { new_email: next }, { token: anew })
  await ask(
    'change of an owner’s address confirmed',
    '/email-change/confirm',
    { token: await mailed('email_change', next) },
    { token: anew },
  )
  await ask('signup with an owner’s former address', '/signup', { email: own, password: first })
  await ask('undo without the address', '/security/undo', { token: await undoToken() })
}

/** The store fails with all that it was asked to write, where a second factor, an administrator or a session is concerned. */
export async function moreFailures(mounted: Mounted, run: CanaryRun, faulty: FaultyStore, code: () => string): Promise<void> {
  const ask = asking(mounted, run)
  const changed = 'canary-changed@example.test'
  keep(run, 'store message', 'canary-store-message')
  const challenge = await ask('login before the store fails at codes', '/login', { email: changed, password }, { issues: true })
  for (const [verb, path, body] of [
    ['recoveryCodes.consume', '/mfa/verify', { mfa_token: challenge.body.mfa_token, code: unknownCode }],
    ['users.find', '/mfa/verify', { mfa_token: challenge.body.mfa_token, code: wrong.code }],
    ['userTokens.find', '/email-change/confirm', { token: 'canary-unknown-token-of-43-characters-length'.slice(0, 43) }],
    ['sessions.insertWithin', '/session/login', { email: 'canary-person@example.test', password }],
  ] as const) {
    faulty.break(verb, () => {
      const statement = `canary-store-message ${JSON.stringify(body)} ${hostile}`
      return Promise.reject(Object.assign(new Error(statement), { sql: statement, code: hostile }))
    })
    await ask(`${path} while the store fails at ${verb}`, path, body)
  }
  faulty.break(null)
  const again = await ask('login to take the factor off', '/login', { email: changed, password }, { issues: true })
  const session = await ask(
    'verify to take the factor off',
    '/mfa/verify',
    { mfa_token: again.body.mfa_token, code: code() },
    { issues: true },
  )
  await ask('disable', '/mfa/disable', { password, code: code() }, { token: String(session.body.access_token) })
}
