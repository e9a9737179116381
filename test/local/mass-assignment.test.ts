import { describe, expect, test } from 'vitest'
import { type AuthStore, createAuthTables, createKnexStore } from '../../src'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { sendRaw } from '../support/send-raw'
import { bearerOf, newAddress, onLocal, otherPassword, password, post, resetLink, signedIn, userOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

/** Every field of the account, by both spellings, and of a token. */
const fields = {
  id: 'mallory',
  user_id: 'mallory',
  userId: 'mallory',
  is_admin: true,
  isAdmin: true,
  is_active: true,
  isActive: true,
  activated_at: 1,
  activatedAt: 1,
  email_verified_at: 1,
  emailVerifiedAt: 1,
  hashed_password: 'mallory',
  hashedPassword: 'mallory',
  password_set_at: null,
  last_login_at: 1,
  created_at: 1,
  totp_secret: 'mallory',
  totpSecret: 'mallory',
  revoke_sessions: false,
  revokeSessions: false,
  amr: ['otp'],
  extra: { is_admin: true },
  locale: 'pt-BR',
  client: null,
  keep: {},
  purpose: 'ACTIVATION',
}

describe('mass assignment', () => {
  const { start, opened } = onLocal(sqlite)

  test.each([
    ['columns', JSON.stringify(fields).slice(1, -1)],
    ['__proto__', `"__proto__":${JSON.stringify(fields)}`],
    ['constructor', `"constructor":{"prototype":${JSON.stringify(fields)}}`],
    ['toString and valueOf', '"toString":1,"valueOf":1,"hasOwnProperty":1'],
  ])(
    'R-066 through signup, activation, login, request, reset, change and unlink nothing beyond their fields is ever written: %s',
    async (_what, extra) => {
      const host = await start()
      const email = newAddress()
      const send = async (path: string, body: object, headers: Record<string, string> = {}) => {
        const own = JSON.stringify(body).slice(1, -1)
        const text = `{${[extra, own].filter((members) => members !== '').join(',')}}`
        return sendRaw(host.app, { path: `/auth${path}`, headers: { 'Content-Type': 'application/json', ...headers }, body: text })
      }

      expect((await send('/signup', { email, password })).status).toBe(201)
      const born = await userOf(host, email)
      const now = host.clock.now()
      expect(born).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        email,
        hashedPassword: await host.hasher.hash(password),
        name: null,
        isActive: false,
        isAdmin: false,
        createdAt: now,
        updatedAt: now,
        lastLoginAt: null,
        totpSecret: null,
        totpEnabledAt: null,
        totpLastStep: null,
        emailVerifiedAt: null,
        activatedAt: null,
        passwordSetAt: now,
      })
      expect((await send('/activation/request', { email })).status).toBe(202)
      await host.mails.next({ kind: 'activation', to: email })
      const link = await host.mails.next({ kind: 'activation', to: email })
      expect(link.locale).toBe('en-US')
      expect((await send('/activate', { token: tokenOf(link) })).status).toBe(200)
      const active = await userOf(host, email)
      expect(active).toEqual({ ...born, isActive: true, activatedAt: now, emailVerifiedAt: now })

      const login = await send('/login', { email, password })
      expect(login.status).toBe(200)
      const token = await resetLink(host, email)
      const confirm = await send('/password-reset/confirm', { token, new_password: otherPassword })
      expect(confirm.status).toBe(200)
      expect((await post(host, '/refresh', { refresh_token: login.body['refresh_token'] })).status).toBe(401) // no opting out of it
      const bearer = bearerOf({ token: String(confirm.body['access_token']) })
      expect((await send('/password-change', { current_password: otherPassword, new_password: password }, bearer)).status).toBe(204)
      expect((await send('/oauth/accounts/unlink', { provider: 'corp' }, bearer)).status).toBe(404)
      expect(await userOf(host, email)).toEqual({ ...active, lastLoginAt: now })
      expect(({} as Record<string, unknown>)['is_admin']).toBeUndefined()
    },
  )

  test('R-067 what an adapter returns beside the fields of the contract reaches no answer of these routes', async () => {
    const leak = { hashed_password: 'LEAK-1', totp_secret: 'LEAK-2', hint: 'LEAK-3', toJSON: () => ({ leak: 'LEAK-4' }) }
    const { knex } = opened()
    await createAuthTables(knex)
    const talkative = (real: AuthStore): AuthStore => {
      const { users, userTokens } = real
      const spoken = <Row extends object>(row: Row): Row => ({ ...row, ...leak })
      const orNull = <Row extends object>(row: Row | null) => row && spoken(row)
      return {
        ...real,
        users: {
          ...users,
          find: async (id) => orNull(await users.find(id)),
          findByEmail: async (email) => orNull(await users.findByEmail(email)),
          lock: async (id) => orNull(await users.lock(id)),
          insert: async (user) => spoken(await users.insert(user)),
          recordLogin: async (seen, at, changes) => orNull(await users.recordLogin(seen, at, changes)),
        },
        userTokens: {
          ...userTokens,
          insert: async (token) => spoken(await userTokens.insert(token)),
          find: async (hash) => orNull(await userTokens.find(hash)),
          consume: async (hash, purpose, at) => orNull(await userTokens.consume(hash, purpose, at)),
        },
        transaction: (work) => real.transaction((inside) => work(talkative(inside))),
      }
    }
    const host = await start({ options: { store: talkative(createKnexStore({ knex })) } })
    const born = await start({ settings: { autoActivate: true }, options: { store: talkative(createKnexStore({ knex })) } })
    const email = newAddress()
    const signup = await post(host, '/signup', { email, password })
    const activated = await post(host, '/activate', { token: tokenOf(await host.mails.next({ to: email })) })
    const login = await post(host, '/login', { email, password })
    const request = await post(host, '/password-reset/request', { email })
    const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
    const confirmed = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })
    const bearer = bearerOf({ token: confirmed.body.access_token })
    const change = await post(host, '/password-change', { current_password: otherPassword, new_password: password }, bearer)
    const me = await host.browser().get('/auth/me').set(bearer)
    const active = await post(born, '/signup', { email: newAddress(), password })

    const answers = [signup, activated, login, request, confirmed, change, me, active]
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 202, 200, 204, 200, 201])
    for (const { text, headers } of answers) expect(text + JSON.stringify(headers)).not.toContain('LEAK')
    for (const { access_token } of [activated.body, login.body, confirmed.body, active.body])
      expect(Object.keys(JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString())).sort()).toEqual([
        'amr',
        'auth_time',
        'email',
        'exp',
        'iat',
        'sid',
        'sub',
        'typ',
      ])
    expect(JSON.stringify(host.mails.mails)).not.toContain('LEAK')
  })

  test('nobody else’s identity or session is reached by naming another user', async () => {
    const host = await start()
    const [ana, mallory] = [await signIn(host), await signedIn(host)]
    const unlink = await post(host, '/oauth/accounts/unlink', { provider: 'corp', user_id: ana.body.user_id }, bearerOf(mallory))

    expect([unlink.status, unlink.body.code]).toEqual([404, 'OAUTH_ACCOUNT_NOT_LINKED'])
  })
})
