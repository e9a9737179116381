import { describe, expect, test } from 'vitest'
import { createKnexStore, purgeExpired } from '../../src'
import { adminOn, read } from '../admin/people'
import { ask, loginTemplate } from '../email-login/people'
import {
  bearerOf,
  type LocalHost,
  type LocalMember,
  newAddress,
  otherPassword,
  password,
  pending,
  post,
  signedIn,
  userOf,
} from '../local/people'
import { onPages, sendForm } from '../page-routes/people'
import { newcomer } from '../passkeys/newcomers'
import { logIn, passkeySettings } from '../passkeys/people'
import { newPerson } from '../social/redirect-steps'
import { setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { applicant, approving, codeOf, isPending, onApproval, rowsOf } from './people'

const decide = (host: LocalHost, admin: LocalMember, id: string, what: 'approve' | 'decline') =>
  post(host, `/admin/users/${id}/${what}`, {}, bearerOf(admin))
/** The subject of each mail tells its topic. */
const subjects: Readonly<Record<string, string>> = {
  'Somebody waits for your approval': 'approval_requested',
  'You are on the list': 'approval_pending',
  'Your account is approved': 'approval_granted',
  'Your account was not approved': 'approval_declined',
}
const topicOf = ({ kind, subject }: { kind: string; subject: string }) => subjects[subject] ?? kind
const topics = ({ mails }: LocalHost, to: string) => mails.mails.filter((mail) => mail.to === to).map(topicOf)

function tell(host: LocalHost): unknown[][] {
  const told: unknown[][] = []
  for (const name of ['signup', 'activation', 'login', 'approval.requested', 'approval.granted', 'approval.declined'] as const)
    host.auth.events.on(name, (payload) => told.push([name, payload]))
  return told
}

describe.each(await databases())('approval on $name', (database) => {
  const { start } = onApproval(database)

  test('31.3 a person signs up, waits, is approved and signs in', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const told = tell(host)
    const { link, email, userId } = await pending(host)
    const activated = await post(host, '/activate', { token: link, password })
    expect([activated.status, activated.body.code, activated.body.details]).toEqual([...isPending, {}])
    const now = host.clock.now()
    expect(await userOf(host, email)).toMatchObject({
      isActive: false,
      emailVerifiedAt: now,
      activatedAt: now,
      approvalRequestedAt: now,
      lastLoginAt: null,
    })
    expect(await host.knex('auth_sessions').where({ user_id: userId })).toEqual([])
    expect(codeOf(await post(host, '/login', { email, password }))).toEqual([...isPending])
    expect(topicOf(await host.mails.next({ to: email, kind: 'notice' }))).toBe('approval_pending')
    expect(topicOf(await host.mails.next({ to: admin.email, kind: 'notice' }))).toBe('approval_requested')

    expect((await decide(host, admin, userId, 'approve')).status).toBe(204)
    expect(topicOf(await host.mails.next({ to: email, kind: 'notice' }))).toBe('approval_granted')
    expect((await userOf(host, email)).approvalRequestedAt).toBeUndefined()
    expect((await post(host, '/login', { email, password })).status).toBe(200)
    expect(told).toEqual([
      ['signup', { userId, by: 'pwd' }],
      ['approval.requested', { userId }],
      ['activation', { userId, actorId: admin.userId }],
      ['approval.granted', { userId, actorId: admin.userId }],
      ['login', { userId, amr: ['pwd'] }],
    ])
  })

  test('31.3.3 a declined account is a deactivated one', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const told = tell(host)
    const { email, userId } = await applicant(host)
    expect((await decide(host, admin, userId, 'decline')).status).toBe(204)
    expect(await userOf(host, email)).toMatchObject({ isActive: false, activatedAt: host.clock.now() })
    expect(codeOf(await post(host, '/login', { email, password }))).toEqual([401, 'UNAUTHORIZED'])
    await host.auth.drain()
    expect(topics(host, email).slice(-2)).toEqual(['approval_pending', 'approval_declined'])
    expect(told.at(-1)).toEqual(['approval.declined', { userId, actorId: admin.userId }])
    for (const what of ['approve', 'decline'] as const) expect(codeOf(await decide(host, admin, userId, what))).toEqual([409, 'CONFLICT'])
  })

  test('31.3.3 two administrators decide at once: one 204, one 409; one mail to the person', async () => {
    const host = await start()
    const [one, other] = [await adminOn(host), await adminOn(host)]
    const { email, userId } = await applicant(host)
    const answers = await Promise.all([decide(host, one, userId, 'approve'), decide(host, other, userId, 'decline')])
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 409])
    await host.auth.drain()
    expect(topics(host, email).filter((topic) => topic === 'approval_granted' || topic === 'approval_declined')).toHaveLength(1)
  })

  test('31.3.4 the list has who waits, and each account since when', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const { email, userId } = await applicant(host)
    await pending(host)
    const listed = async (query: string) => (await read(host, admin, `?limit=100&${query}`)).body.items
    const waiting: { id: string; approval_requested_at: string | null }[] = await listed('is_awaiting_approval=true')
    expect(waiting.find(({ id }) => id === userId)).toMatchObject({ email, approval_requested_at: host.clock.now().toISOString() })
    expect(waiting.every(({ approval_requested_at }) => approval_requested_at !== null)).toBe(true)
    const others: { id: string; approval_requested_at: string | null }[] = await listed(`is_awaiting_approval=false&email=${admin.email}`)
    expect(others).toMatchObject([{ id: admin.userId, approval_requested_at: null }])
    expect((await read(host, admin, `/${userId}`)).body.approval_requested_at).toBe(host.clock.now().toISOString())
  })
})

describe('who waits', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start, opened } = onApproval(sqlite)
  const pages = onPages(sqlite)

  const ways: Readonly<Record<string, (host: LocalHost) => Promise<string>>> = {
    'a new account by email': async (host) => {
      const email = newAddress()
      expect(codeOf(await post(host, '/email-login/confirm', { token: (await ask(host, email)).token }))).toEqual([...isPending])
      return email
    },
    'a pending account that logs in by email': async (host) => {
      const { email } = await pending(host)
      expect(codeOf(await post(host, '/email-login/confirm', { token: (await ask(host, email)).token }))).toEqual([...isPending])
      return email
    },
    'a new account by a provider': async (host) => {
      const profile = newPerson()
      expect(codeOf(await signIn(host, host.browser(), { profile }))).toEqual([...isPending])
      expect(codeOf(await signIn(host, host.browser(), { profile }))).toEqual([...isPending]) // again
      return profile.email
    },
    'a pending account that a provider verifies': async (host) => {
      const { email } = await pending(host)
      expect(codeOf(await signIn(host, host.browser(), { profile: newPerson({ email, email_verified: true }) }))).toEqual([...isPending])
      return email
    },
    'a sign-up with a passkey': async (host) => {
      const { email, link, browser, authenticator } = await newcomer(host)
      expect(codeOf(await browser.post('/auth/activate').send({ token: link }))).toEqual([...isPending])
      expect(codeOf(await logIn(host, authenticator))).toEqual([...isPending])
      return email
    },
  }

  test.each(Object.keys(ways))('31.3.2 %s: no session, no cookie, and the address stays verified', async (way) => {
    const host = await start({
      settings: {
        emailLogin: 'both',
        emailLoginSignup: true,
        oauthLinkByVerifiedEmail: true,
        signupWith: ['password', 'passkey'],
        ...loginTemplate,
        ...passkeySettings,
      },
      options: { throttle: { mail: false } },
    })
    const told = tell(host)
    const email = (await ways[way]?.(host)) ?? ''
    const user = await userOf(host, email)
    expect(user).toMatchObject({ isActive: false, approvalRequestedAt: host.clock.now(), lastLoginAt: null })
    expect(user.emailVerifiedAt).not.toBeNull()
    expect(await host.knex('auth_sessions').where({ user_id: user.id })).toEqual([])
    expect(told.filter(([name]) => name === 'approval.requested')).toEqual([['approval.requested', { userId: user.id }]])
    expect(told.filter(([name]) => name === 'activation' || name === 'login')).toEqual([])
    await host.auth.service.approve(user.id)
    expect(await userOf(host, email)).toMatchObject({ isActive: true })
  })

  test('31.3.3 boot refuses the mode without its columns, and with autoActivate', async () => {
    await expect(start({ settings: { autoActivate: true } })).rejects.toThrow(/signupMode.*'approve' cannot be used with autoActivate/)
    const columns = {
      emailVerifiedAt: 'email_verified_at',
      activatedAt: 'activated_at',
      approvalRequestedAt: 'approval_requested_at',
    } as const
    for (const [field, column] of Object.entries(columns)) {
      const store = createKnexStore({ knex: opened().knex, users: { columns: { ...columns, [field]: false } } as never })
      await expect(start({ options: { store } })).rejects.toThrow(`no column for ${column}`)
    }
  })

  test('31.3.1 a waiting account is not pending: a second sign-up, a reset, an activation and the purge leave it as it is', async () => {
    const host = await start()
    const { email, userId } = await applicant(host)
    const before = await rowsOf(host, { email, userId })
    expect((await post(host, '/signup', { email, password: otherPassword })).status).toBe(201)
    expect((await post(host, '/password-reset/request', { email })).status).toBe(202)
    expect((await post(host, '/activation/request', { email })).status).toBe(202)
    await host.auth.drain()
    host.clock.advance(40 * 86_400)
    await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now() })
    expect(await rowsOf(host, { email, userId })).toEqual(before)
    expect(topics(host, email)).not.toContain('password_reset')
    expect(topics(host, email).filter((topic) => topic === 'activation')).toHaveLength(1)
    await host.auth.service.approve(userId)
    expect((await post(host, '/login', { email, password: otherPassword })).status).toBe(401)
    expect((await post(host, '/login', { email, password })).status).toBe(200)
  })

  test('31.3.6 six people apply: each administrator gets one mail an hour', async () => {
    const host = await start()
    await host.knex('auth_users').update({ is_admin: false }) // those of other tests
    const admins = [await adminOn(host), await adminOn(host)]
    for (let people = 0; people < 6; people++) await applicant(host)
    await host.auth.drain()
    const notices = () => admins.map(({ email }) => topics(host, email).filter((topic) => topic === 'approval_requested').length)
    expect(notices()).toEqual([1, 1])
    host.clock.advance(3_600)
    await applicant(host)
    await host.auth.drain()
    expect(notices()).toEqual([2, 2])
    const waiting = Number((await host.knex('auth_users').whereNotNull('approval_requested_at').count({ n: '*' }))[0]?.['n'])
    expect(host.mails.mails.filter((mail) => topicOf(mail) === 'approval_requested').at(-1)?.text).toContain(`- ${waiting}\n`)
  })

  test('31.3.6 at most 50 administrators are told, and none that is deactivated', async () => {
    const host = await start()
    await host.knex('auth_users').update({ is_admin: false })
    const left = await adminOn(host)
    await host.knex('auth_users').where({ id: left.userId }).update({ is_active: false })
    for (let count = 0; count < 52; count++) await adminOn(host)
    await applicant(host)
    await host.auth.drain()
    const told = host.mails.mails.filter((mail) => topicOf(mail) === 'approval_requested').map(({ to }) => to)
    expect([told.length, new Set(told).size, told.includes(left.email)]).toEqual([50, 50, false])
    await host.knex('auth_users').update({ is_admin: false })
  })

  test('31.3.3 who may decide: a fresh administrator, and the host itself', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const { userId } = await applicant(host)
    expect(codeOf(await post(host, `/admin/users/${userId}/approve`, {}))).toEqual([401, 'UNAUTHORIZED'])
    const other = await adminOn(host)
    await host.auth.service.updateUser(other.userId, { isAdmin: false })
    expect(codeOf(await decide(host, other, userId, 'approve'))).toEqual([403, 'FORBIDDEN'])
    expect(codeOf(await decide(host, admin, '00000000-0000-4000-8000-000000000000', 'approve'))).toEqual([404, 'NOT_FOUND'])
    await expect(host.auth.service.approve(userId, { by: other.userId })).rejects.toMatchObject({ code: 'FORBIDDEN' })
    await expect(host.auth.service.decline(admin.userId)).rejects.toMatchObject({ code: 'CONFLICT' })
    const told = tell(host)
    await host.auth.service.approve(userId)
    expect(told.at(-1)).toEqual(['approval.granted', { userId }])
  })

  test('31.3.3 auth.with decides for the administrator of the request', async () => {
    const host = await start({
      host: (app, auth) =>
        app.post('/own/:what/:id', (req, res, next) => {
          const bound = auth.with(req, res)
          const { what, id } = req.params
          const decided = what === 'approve' ? bound.approve(id) : bound.decline(id)
          decided
            .then(
              () => res.sendStatus(204),
              ({ status }) => res.sendStatus(status),
            )
            .catch(next)
        }),
    })
    const [admin, person] = [await adminOn(host), await signedIn(host)]
    const own = (path: string, who: LocalMember) => host.browser().post(`/own${path}`).set(bearerOf(who))
    for (const [what, isActive] of [
      ['approve', true],
      ['decline', false],
    ] as const) {
      const { email, userId } = await applicant(host)
      expect((await own(`/${what}/${userId}`, person)).status).toBe(403)
      expect((await own(`/${what}/${userId}`, admin)).status).toBe(204)
      expect((await own(`/${what}/${userId}`, admin)).status).toBe(409)
      expect((await userOf(host, email)).isActive).toBe(isActive)
    }
  })

  test('31.3.3 activate approves too, and deactivate takes an account off the list', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const told = tell(host)
    const [one, other] = [await applicant(host), await applicant(host)]
    expect((await post(host, `/admin/users/${one.userId}/activate`, {}, bearerOf(admin))).status).toBe(204)
    expect(told.at(-1)).toEqual(['approval.granted', { userId: one.userId, actorId: admin.userId }])
    expect((await post(host, '/login', { email: one.email, password })).status).toBe(200)
    expect((await post(host, `/admin/users/${other.userId}/deactivate`, {}, bearerOf(admin))).status).toBe(204)
    expect((await userOf(host, other.email)).approvalRequestedAt).toBeUndefined()
    expect(codeOf(await decide(host, admin, other.userId, 'approve'))).toEqual([409, 'CONFLICT'])
  })

  test('31.1.1 the host’s own sign-up is an approval; a stranger’s sign-up over it is none', async () => {
    const host = await start()
    const email = newAddress()
    await host.auth.service.signUp({ email, password })
    const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    expect((await post(host, '/activate', { token: link, password })).status).toBe(200)

    const contested = newAddress()
    await host.auth.service.signUp({ email: contested, password })
    await host.mails.next({ kind: 'activation', to: contested })
    await post(host, '/signup', { email: contested, password: otherPassword })
    const later = tokenOf(await host.mails.next({ kind: 'activation', to: contested }))
    expect(codeOf(await post(host, '/activate', { token: later, password: otherPassword }))).toEqual([...isPending])
  })

  /** How a person verifies the address of a sign-up. */
  const proofs: Readonly<Record<string, (host: LocalHost, email: string, link: string) => Promise<{ status: number; body: object }>>> = {
    'the mailed link': (host, _email, link) => post(host, '/activate', { token: link, password }),
    'a login by email': async (host, email) => post(host, '/email-login/confirm', { token: (await ask(host, email)).token }),
    'a provider': (host, email) => signIn(host, host.browser(), { profile: newPerson({ email, email_verified: true }) }),
  }
  const proving = { emailLogin: 'both', oauthLinkByVerifiedEmail: true, ...loginTemplate } as const

  test.each(Object.entries(proofs))('31.3.5 an invited sign-up does not wait after %s', async (_name, prove) => {
    const host = await start({ settings: { ...proving, invitationsEnabled: true } })
    const invitation = await host.auth.service.invitations.create()
    const { email, userId, link } = await pending(host, { invitation: invitation.token })
    expect((await prove(host, email, link)).status).toBe(200)
    expect(await userOf(host, email)).toMatchObject({ id: userId, isActive: true })
    expect(await host.knex('auth_invitation_uses').where({ invitation_id: invitation.id }).pluck('user_id')).toEqual([userId])
  })

  test.each(Object.entries(proofs))('31.3.5 an invitation approves nobody once invitations are off: %s', async (_name, prove) => {
    const before = await start({ settings: { ...proving, invitationsEnabled: true } })
    const invitation = await before.auth.service.invitations.create()
    const { email, link } = await pending(before, { invitation: invitation.token })
    const host = await start({ settings: proving })
    expect(codeOf(await prove(host, email, link))).toEqual([...isPending])
    expect(await userOf(host, email)).toMatchObject({ isActive: false, approvalRequestedAt: host.clock.now() })
  })

  test('31.1.2 an account of before the mode logs in', async () => {
    const before = await start({ settings: { signupMode: 'open' } })
    const { link, email } = await pending(before)
    expect((await post(before, '/activate', { token: link, password })).status).toBe(200)
    const host = await start()
    expect((await post(host, '/login', { email, password })).status).toBe(200)
  })

  test('without the mode, its routes, filter and member are absent', async () => {
    const host = await start({ settings: { signupMode: 'open' } })
    const admin = await adminOn(host)
    expect((await decide(host, admin, admin.userId, 'approve')).status).toBe(404)
    expect((await read(host, admin, '?is_awaiting_approval=true')).body.code).toBe('UNKNOWN_FILTER_KEY')
    expect((await read(host, admin, `/${admin.userId}`)).body).not.toHaveProperty('approval_requested_at')
  })

  test('31.3.2 our pages say that the person is on the list', async () => {
    const host = await pages.start({ settings: approving })
    const browser = host.browser()
    const email = newAddress()
    await sendForm(browser, '/auth/signup', { email, password })
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    const page = await sendForm(browser, `/auth/activate/${token}`, {})
    expect([page.status, page.text.includes('<h1>You are on the list</h1>'), setCookieOf(page, 'access_token')]).toEqual([403, true, null])
    const login = await sendForm(browser, '/auth/login', { email, password })
    expect([login.status, login.text.includes('You are on the list.')]).toEqual([400, true])
    expect((await browser.get('/auth/login?error=APPROVAL_PENDING')).text).toContain('You are on the list.')
  })
})
