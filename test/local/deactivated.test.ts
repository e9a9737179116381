import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { withSession } from '../../src/testing/records'
import { addIdentity, someTime } from '../social/accounts-at-hand'
import { beginLink, finishLink } from '../social/link-steps'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { tokenOf } from '../support/mailbox'
import {
  bearerOf,
  type LocalHost,
  mailsTo,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  settled,
  signedIn,
  tokenRows,
  userOf,
} from './people'

/** How an account ends: by our operation, or by the host's own hand on the column. */
const ends = ['service.deactivate', 'is_active cleared by the host'] as const
type End = (typeof ends)[number]

async function deactivate(host: LocalHost, userId: string, how: End): Promise<void> {
  if (how === 'service.deactivate') return host.auth.service.deactivate(userId)
  await createKnexStore({ knex: host.knex }).users.update(userId, { isActive: false })
}

const codesOf = (answers: Record<string, { status: number; body: { code?: string } }>) =>
  Object.fromEntries(Object.entries(answers).map(([what, { status, body }]) => [what, body.code ? [status, body.code] : [status]]))

describe.each(await databases())('a deactivated account, on $name', (database) => {
  const { start } = onLocal(database)

  test.each(ends)('R-061 D2 no route revives it, with whatever was got before, the other activation link included: %s', async (how) => {
    const host = await start({ settings: { singleActiveToken: false }, providers: { corp: {}, acme: {} } })
    const { email, userId, link } = await pending(host)
    await post(host, '/activation/request', { email })
    const sibling = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    await post(host, `/activate/${link}`)
    const login = await post(host, '/login', { email, password })
    const ana = { token: login.body.access_token, browser: host.browser() }
    const profile = newPerson({ email })
    await addIdentity(host.knex, userId, { subject: profile.sub })
    const reset = await resetLink(host, email)
    const begun = await beginLink(host, ana)
    await deactivate(host, userId, how)
    const before = { user: await userOf(host, email), tokens: await tokenRows(host, userId), mails: mailsTo(host, email) }

    const answers = {
      login: await post(host, '/login', { email, password }),
      'the spent activation link': await post(host, `/activate/${link}`),
      'the other activation link': await post(host, '/activate', { token: sibling }),
      'activation request': await post(host, '/activation/request', { email }),
      'reset request': await post(host, '/password-reset/request', { email }),
      'the reset link': await post(host, '/password-reset/confirm', { token: reset, new_password: otherPassword }),
      'social login': await signIn(host, host.browser(), { profile }),
      'a link begun before': await finishLink(host, ana.browser, begun.query),
      refresh: await post(host, '/refresh', { refresh_token: login.body.refresh_token }),
      'password change': await post(host, '/password-change', { current_password: password, new_password: otherPassword }, bearerOf(ana)),
      me: await host.browser().get('/auth/me').set(bearerOf(ana)),
    }

    expect(codesOf(answers)).toEqual({
      login: [401, 'UNAUTHORIZED'],
      'the spent activation link': [401, 'INVALID_TOKEN'],
      'the other activation link': [401, 'INVALID_TOKEN'],
      'activation request': [202],
      'reset request': [202],
      'the reset link': [401, 'INVALID_TOKEN'],
      'social login': [401, 'OAUTH_ACCOUNT_INACTIVE'],
      'a link begun before': [401, 'OAUTH_STATE_MISMATCH'],
      // Sessions are ended; where a host only cleared is_active the token is not consumed (contract section 12).
      refresh: how === 'service.deactivate' ? [401, 'INVALID_TOKEN'] : [403, 'ACCOUNT_INACTIVE'],
      'password change': [403, 'ACCOUNT_INACTIVE'],
      me: [403, 'ACCOUNT_INACTIVE'],
    })
    await settled(host)
    expect({ user: await userOf(host, email), tokens: await tokenRows(host, userId), mails: mailsTo(host, email) }).toEqual(before)
  })

  test('R-062 deactivation kills refresh tokens, server sessions and one-shot tokens, and the guard refuses the next request', async () => {
    const host = await start()
    const store = createKnexStore({ knex: host.knex })
    const ana = await signedIn(host)
    const second = await post(host, '/login', { email: ana.email, password })
    await resetLink(host, ana.email)
    const end = new Date('2027-01-01T00:00:00.000Z')
    const { id } = await withSession(store, { userId: ana.userId, kind: 'session', expiresAt: end, endsAt: end })
    const told: object[] = []
    host.auth.events.on('account.deactivated', (payload) => told.push(payload))

    await host.auth.service.deactivate(ana.userId)

    for (const token of [ana.refreshToken, second.body.refresh_token])
      expect((await post(host, '/refresh', { refresh_token: token })).body.code).toBe('INVALID_TOKEN')
    expect((await store.sessions.find({ id }))?.session.revokedAt).toEqual(host.clock.now())
    expect(await store.sessions.listForUser(ana.userId, host.clock.now())).toEqual([])
    expect((await tokenRows(host, ana.userId)).map(({ isUsed }) => isUsed)).toEqual([true])
    expect((await host.browser().get('/auth/me').set(bearerOf(ana))).body.code).toBe('ACCOUNT_INACTIVE')
    expect(told).toEqual([{ userId: ana.userId }])
    await expect(host.auth.service.deactivate(randomUUID())).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('deactivate stamps a null activated_at: one that was still pending cannot activate itself afterwards', async () => {
    const host = await start()
    const { email, userId, link } = await pending(host)

    await host.auth.service.deactivate(userId)

    expect((await userOf(host, email)).activatedAt).toEqual(host.clock.now())
    expect((await post(host, `/activate/${link}`)).body.code).toBe('INVALID_TOKEN')
    await post(host, '/activation/request', { email })
    await settled(host)
    expect(mailsTo(host, email)).toEqual(['activation'])
  })

  test('a reset request for a pending account sends a fresh activation mail instead, for a deactivated one nothing: always the same 202', async () => {
    const host = await start()
    const waiting = await pending(host)
    const gone = await signedIn(host)
    await host.auth.service.deactivate(gone.userId)
    const ask = (email: string) => post(host, '/password-reset/request', { email })

    const answers = [await ask(waiting.email), await ask(gone.email), await ask(newAddress())]

    for (const { status, text } of answers) expect([status, text]).toEqual([202, answers[0]?.text])
    const mail = await host.mails.next({ kind: 'activation', to: waiting.email })
    await settled(host)
    expect([mailsTo(host, waiting.email), mailsTo(host, gone.email)]).toEqual([['activation', 'activation'], []])
    expect(await tokenRows(host, gone.userId)).toEqual([])
    expect((await post(host, '/activate', { token: tokenOf(mail) })).status).toBe(200)
  })

  test('no session is ever issued to an inactive account: deactivated between our look and our write, login, reset and activation are 401', async () => {
    const host = await start()
    const [ana, bob, eve] = [await signedIn(host), await signedIn(host), await pending(host)]
    const token = await resetLink(host, bob.email)
    const sessions = async () => Number((await host.knex('auth_sessions').count({ n: '*' }))[0]?.['n'])
    const fast = fastHasher()
    const store = createKnexStore({ knex: host.knex })
    const close = (email: string) =>
      userOf(host, email).then(({ id }) => store.users.update(id, { isActive: false, activatedAt: someTime }))
    const slow = await start({
      options: {
        passwordHasher: {
          ...fast,
          verify: async (hash, text) => (await close(ana.email)) && fast.verify(hash, text),
        },
        refusesEmailLink: async ({ email }) => !(await close(email)),
      },
    })
    const resetting = await start({
      options: { passwordHasher: { ...fast, hash: async (text) => ((await close(bob.email)) ? fast.hash(text) : '') } },
    })
    const before = await sessions()

    const answers = {
      login: await post(slow, '/login', { email: ana.email, password }),
      reset: await post(resetting, '/password-reset/confirm', { token, new_password: otherPassword }),
      activation: await post(slow, '/activate', { token: eve.link }),
    }

    expect(codesOf(answers)).toEqual({ login: [401, 'UNAUTHORIZED'], reset: [401, 'INVALID_TOKEN'], activation: [401, 'INVALID_TOKEN'] })
    expect(await sessions()).toBe(before)
    for (const { email } of [ana, bob, eve]) expect((await userOf(host, email)).isActive).toBe(false)
    expect(await host.hasher.verify((await userOf(host, bob.email)).hashedPassword, password)).toBe(true)
  })

  test('a reset link whose account was deactivated meanwhile answers 401 INVALID_TOKEN and changes nothing', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)
    const token = await resetLink(host, email)
    await deactivate(host, userId, 'is_active cleared by the host')
    const before = await userOf(host, email)

    const { status, body } = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })

    expect([status, body.code]).toEqual([401, 'INVALID_TOKEN'])
    expect(await userOf(host, email)).toEqual(before)
    expect(await tokenRows(host, userId)).toMatchObject([{ isUsed: false }])
  })
})
