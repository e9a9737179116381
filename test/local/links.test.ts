import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { tokenOf } from '../support/mailbox'
import { sendRaw } from '../support/send-raw'
import {
  type LocalHost,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  sha256,
  signedIn,
  tokenRows,
  userOf,
} from './people'

const activate = (host: LocalHost, token: string) => post(host, '/activate', { token })
const reset = (host: LocalHost, token: string) => post(host, '/password-reset/confirm', { token, new_password: otherPassword })

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe.each(await databases())('one-shot tokens, on $name', (database) => {
  const { start } = onLocal(database)

  test('R-080 32 random bytes in base64url, of which only the SHA-256 is stored; no two alike', async () => {
    const host = await start({ settings: { singleActiveToken: false } })
    const { email, userId, link } = await pending(host)
    const tokens = [link]
    for (let round = 0; round < 3; round++) {
      await post(host, '/activation/request', { email })
      tokens.push(tokenOf(await host.mails.next({ kind: 'activation', to: email })))
    }

    for (const token of tokens) {
      expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/)
      expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    }
    expect(new Set(tokens).size).toBe(4)
    expect((await tokenRows(host, userId)).map(({ token_hash }) => token_hash).sort()).toEqual(tokens.map(sha256).sort())
    const everything = JSON.stringify([
      await host.knex('auth_user_tokens'),
      await host.knex('auth_users'),
      await host.knex('auth_sessions'),
    ])
    for (const token of tokens) expect(everything).not.toContain(token)
  })

  test('R-080 bound to its purpose: an activation token at the reset route is refused, and the other way round; neither is spent', async () => {
    const host = await start()
    const waiting = await pending(host)
    const active = await signedIn(host)
    const resetToken = await resetLink(host, active.email)

    for (const answer of [await reset(host, waiting.link), await activate(host, resetToken)])
      expect([answer.status, answer.body.code]).toEqual([401, 'INVALID_TOKEN'])

    expect((await activate(host, waiting.link)).status).toBe(200)
    expect((await reset(host, resetToken)).status).toBe(200)
  })

  test.each(['ACTIVATION', 'EMAIL_VERIFICATION', 'EMAIL_CHANGE', 'MFA_CHALLENGE'] as const)(
    'R-080 a token of purpose %s of an active account opens no reset, and is not even told from an unknown one',
    async (purpose) => {
      const host = await start()
      const { userId } = await signedIn(host)
      const token = randomBytes(32).toString('base64url')
      const [now, store] = [host.clock.now(), createKnexStore({ knex: host.knex })]
      const row = { userId, tokenHash: sha256(token), purpose, payload: null, usedAt: null, createdAt: now }
      await store.userTokens.insert({ ...row, expiresAt: new Date(now.getTime() + 60_000) })

      const short = await post(host, '/password-reset/confirm', { token, new_password: 'short' })
      for (const { status, body } of [short, await reset(host, token), await activate(host, token)])
        expect([status, body.code]).toEqual([401, 'INVALID_TOKEN'])
      expect(await tokenRows(host, userId)).toMatchObject([{ isUsed: false }])
    },
  )

  test('R-080 single use: a link that was redeemed is 401 INVALID_TOKEN', async () => {
    const host = await start()
    const { link, email } = await pending(host)
    const first = [await activate(host, link), await activate(host, link)]
    const token = await resetLink(host, email)
    const second = [await reset(host, token), await reset(host, token)]

    for (const [once, twice] of [first, second])
      expect([once?.status, twice?.status, twice?.body.code]).toEqual([200, 401, 'INVALID_TOKEN'])
  })

  test('R-080 an activation link lives 7 days and a reset link 3600 s by the clock of the app, and not a moment longer', async () => {
    const host = await start()
    const [late, withTimeout] = [await pending(host), await pending(host)]
    host.clock.advance(7 * 86_400 - 1)
    expect((await activate(host, withTimeout.link)).status).toBe(200)
    host.clock.advance(1)
    expect((await activate(host, late.link)).body.code).toBe('INVALID_TOKEN')

    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const [lateReset, resetInTime] = [await resetLink(host, ana.email), await resetLink(host, bob.email)]
    host.clock.advance(3_599)
    expect((await reset(host, resetInTime)).status).toBe(200)
    host.clock.advance(1)
    expect((await reset(host, lateReset)).body.code).toBe('INVALID_TOKEN')
  })

  test('AUTH_ACTIVATION_TTL_SECONDS and AUTH_PASSWORD_RESET_TTL_SECONDS set them, and the mail says when', async () => {
    const host = await start({ settings: { activationTtlSeconds: 120, passwordResetTtlSeconds: 60 } })
    const email = newAddress()
    await post(host, '/signup', { email, password })
    const activation = await host.mails.next({ kind: 'activation', to: email })
    expect(activation.expiresAt).toEqual(new Date(host.clock.now().getTime() + 120_000))
    await activate(host, tokenOf(activation))
    await post(host, '/password-reset/request', { email })
    const mail = await host.mails.next({ kind: 'password_reset', to: email })
    expect(mail.expiresAt).toEqual(new Date(host.clock.now().getTime() + 60_000))
    host.clock.advance(60)
    expect((await reset(host, tokenOf(mail))).status).toBe(401)
  })

  test.each([true, false])(
    'AUTH_SINGLE_ACTIVE_TOKEN %s: a new link spends the older ones of its purpose, or does not',
    async (singleActiveToken) => {
      const host = await start({ settings: { singleActiveToken } })
      const { email, userId, link: first } = await pending(host)
      await post(host, '/activation/request', { email })
      const second = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      expect((await tokenRows(host, userId)).filter(({ isUsed }) => !isUsed)).toHaveLength(singleActiveToken ? 1 : 2)
      expect((await activate(host, singleActiveToken ? first : second)).status).toBe(singleActiveToken ? 401 : 200)
      if (singleActiveToken) expect((await activate(host, second)).status).toBe(200)
      else expect((await activate(host, first)).body.code).toBe('INVALID_TOKEN')
      expect((await tokenRows(host, userId)).every(({ isUsed }) => isUsed)).toBe(true) // activation spends all siblings

      const [one, two] = [await resetLink(host, email), await resetLink(host, email)]
      if (singleActiveToken) expect((await reset(host, one)).body.code).toBe('INVALID_TOKEN')
      expect((await reset(host, two)).status).toBe(200)
      expect((await reset(host, one)).body.code).toBe('INVALID_TOKEN')
      expect((await tokenRows(host, userId)).every(({ isUsed }) => isUsed)).toBe(true)
    },
  )

  test('a new reset link leaves the activation links of others, and links of other purposes, alone', async () => {
    const host = await start()
    const [ana, bob] = [await signedIn(host), await pending(host)]
    const store = createKnexStore({ knex: host.knex })
    const other = {
      userId: ana.userId,
      tokenHash: randomBytes(32).toString('hex'),
      purpose: 'EMAIL_VERIFICATION' as const,
      payload: ana.email,
    }
    const now = host.clock.now()
    await store.userTokens.insert({ ...other, expiresAt: new Date(now.getTime() + 1_000), usedAt: null, createdAt: now })

    await resetLink(host, ana.email)

    expect((await tokenRows(host, ana.userId)).map(({ purpose, isUsed }) => [purpose, isUsed])).toEqual([
      ['EMAIL_VERIFICATION', false],
      ['PASSWORD_RESET', false],
    ])
    expect((await activate(host, bob.link)).status).toBe(200)
  })
})

describe('one-shot tokens', () => {
  const { start, opened } = onLocal(sqlite)

  test('the token may stand in the path or in the body; both routes are one', async () => {
    const host = await start()
    const [ana, bob] = [await pending(host), await pending(host)]
    const answers = [await post(host, `/activate/${ana.link}`), await activate(host, bob.link)]

    for (const { status, body } of answers) expect([status, Object.keys(body)]).toEqual([200, Object.keys(answers[0]?.body)])
    expect((await userOf(host, bob.email)).isActive).toBe(true)
  })

  const misshapen: [what: string, token: string][] = [
    ['a blank', ' '],
    ['NUL', `${'a'.repeat(42)}\0`],
    ['a character short', 'a'.repeat(42)],
    ['a character long', 'a'.repeat(44)],
    ['10 KB', 'a'.repeat(10_240)],
    ['a line feed after it', `${'a'.repeat(43)}\n`],
    ['standard base64', `${'a'.repeat(41)}+/`],
    ['padding', `${'a'.repeat(42)}=`],
    ['a hash', sha256('a')],
    ['SQL', "' or '1'='1' -- aaaaaaaaaaaaaaaaaaaaaaaaaaa"],
    ['another script', 'а'.repeat(43)],
  ]

  test.each(misshapen)('R-087 what cannot be a token is refused before the database is asked: %s', async (_what, token) => {
    const { knex } = opened()
    await createAuthTables(knex)
    const faulty = faultyStore(createKnexStore({ knex }))
    const host = await start({ options: { store: faulty.store } })

    const answers = [
      await sendRaw(host.app, { path: `/auth/activate/${encodeURIComponent(token)}` }),
      await activate(host, token),
      await reset(host, token),
    ]

    for (const { status, body } of answers) expect([401, 422], JSON.stringify(body)).toContain(status)
    expect(faulty.calls).toEqual([])
    expect(host.logs.entries.filter(({ level }) => level !== 'info')).toEqual([])
  })

  test.each<{ token?: unknown }>([{}, { token: null }, { token: '' }, { token: 7 }, { token: {} }, { token: ['a'.repeat(43)] }])(
    'R-087 %j is 422',
    async ({ token }) => {
      const host = await start()
      for (const answer of [
        await post(host, '/activate', { token }),
        await post(host, '/password-reset/confirm', { token, new_password: otherPassword }),
      ])
        expect([answer.status, answer.body.details]).toEqual([422, { errors: [{ path: 'token', rule: expect.any(String) }] }])
    },
  )

  test('an unknown token is 401 INVALID_TOKEN, whatever else the body says; the policy is not asked', async () => {
    const host = await start()
    const unknown = randomBytes(32).toString('base64url')
    const short = await post(host, '/password-reset/confirm', { token: unknown, new_password: 'short' })

    for (const { status, body } of [await activate(host, unknown), await reset(host, unknown), short])
      expect([status, body]).toEqual([401, { detail: 'The token is not valid.', code: 'INVALID_TOKEN', details: {} }])
  })

  test.each(['short', '', 'password123456'])(
    'the policy is checked before the token is spent: %j leaves the link alive',
    async (new_password) => {
      const host = await start()
      const { email } = await signedIn(host)
      const token = await resetLink(host, email)

      const refused = await post(host, '/password-reset/confirm', { token, new_password })

      expect([refused.status, refused.body.code, refused.body.details.rule]).toEqual([
        422,
        'VALIDATION_ERROR',
        new_password.length < 12 ? 'too_short' : 'too_common',
      ])
      expect(refused.text).not.toContain('password123456')
      expect((await reset(host, token)).status).toBe(200)
    },
  )

  test('a link points to the template, or below the mount at the public origin; never to the Host that asked', async () => {
    const evil = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http' }
    const mailed = await start({ before: [(req, _res, next) => next(void req.app.set('trust proxy', 'loopback'))] })
    const email = newAddress()
    await post(mailed, '/signup', { email, password }, evil)
    expect((await mailed.mails.next({ to: email })).url).toMatch(/^https:\/\/app\.example\.test\/activate\/[\w-]{43}$/)

    const templates = {
      activationUrlTemplate: null,
      passwordResetUrlTemplate: null,
      emailVerificationUrlTemplate: null,
      emailChangeUrlTemplate: null,
    }
    const derived = await start({ links: 'shown', prefix: '/api/v1/auth', settings: templates as object })
    const signup = await post(derived, '/signup', { email: newAddress(), password }, evil)
    expect(signup.body.activation_url).toMatch(/^https:\/\/app\.example\.test\/api\/v1\/auth\/activate\/[\w-]{43}$/)
    const active = await signedIn(derived)
    const asked = await post(derived, '/password-reset/request', { email: active.email }, evil)
    expect(asked.body.reset_url).toMatch(/^https:\/\/app\.example\.test\/api\/v1\/auth\/password-reset\/[\w-]{43}$/)
    expect((await post(derived, `/activate/${tokenOf({ url: signup.body.activation_url })}`)).status).toBe(200)
  })
})
