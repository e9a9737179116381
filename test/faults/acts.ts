import type { Express } from 'express'
import supertest from 'supertest'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, pending, resetLink, signedIn } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, type EnrolledMember, enrolled } from '../mfa/people'
import { addIdentity, addUser } from '../social/accounts-at-hand'
import { cookiePair, newPerson } from '../social/redirect-steps'
import { tokenOf } from '../support/mailbox'

/** An app in this process, or the origin of one in another. */
export type Target = Express | string
export type Send = (to: Target) => Promise<supertest.Response>

/** One request of a route that changes rows, in one of the ways that differ in the rows. */
export interface Act {
  /** What it answers when nothing happens. */
  status: number
  /** Somebody about to send it. The same request may be sent again. */
  prepare(host: LocalHost): Promise<Send>
  /** What it carries is spent outside of the database: a second try begins anew. */
  isSpentElsewhere?: true
  /** Its work goes on after the answer, which does not know how it ends. */
  answersFirst?: true
}

export const sending =
  (path: string, body: object = {}, headers: Record<string, string> = {}): Send =>
  (to) =>
    supertest(to)
      .post(`/auth${path}`)
      .set(headers)
      .send(body)
      .then((response) => response)

export const acts = {
  'POST /signup': { status: 201, prepare: async () => sending('/signup', { email: newAddress(), password }) },
  'POST /activate': { status: 200, prepare: async (host) => sending('/activate', { token: (await pending(host)).link }) },
  'POST /activation/request': {
    status: 202,
    answersFirst: true,
    prepare: async (host) => sending('/activation/request', { email: (await pending(host)).email }),
  },
  'POST /login': { status: 200, prepare: async (host) => sending('/login', await withPassword(host)) },
  'POST /login that is challenged': { status: 200, prepare: async (host) => sending('/login', credentials(await enrolled(host))) },
  'POST /session/login': { status: 200, prepare: async (host) => sending('/session/login', await withPassword(host)) },
  'POST /password-reset/request': {
    status: 202,
    answersFirst: true,
    prepare: async (host) => sending('/password-reset/request', { email: (await signedIn(host)).email }),
  },
  'POST /password-reset/confirm': {
    status: 200,
    async prepare(host) {
      const { email } = await signedIn(host, { emailVerifiedAt: null })
      const { id } = (await host.knex('auth_users').where({ email }).first('id')) as { id: string }
      await addIdentity(host.knex, id, { subject: 'linked before' })
      return sending('/password-reset/confirm', { token: await resetLink(host, email), new_password: otherPassword })
    },
  },
  'POST /password-change': {
    status: 204,
    prepare: async (host) => sending('/password-change', change, bearerOf(await signedIn(host))),
  },
  'POST /password-change/mfa': {
    status: 204,
    async prepare(host) {
      const person = await enrolled(host)
      return sending('/password-change/mfa', { code: person.app.code(1), new_password: otherPassword }, bearerOf(person))
    },
  },
  'POST /email-verify/request': {
    status: 202,
    answersFirst: true,
    prepare: async (host) => sending('/email-verify/request', {}, bearerOf(await signedIn(host, { emailVerifiedAt: null }))),
  },
  'POST /email-verify/confirm': {
    status: 200,
    async prepare(host) {
      const { userId, email } = await signedIn(host, { emailVerifiedAt: null })
      await addIdentity(host.knex, userId, { subject: 'linked before' })
      await host.auth.service.requestEmailVerification(userId)
      return sending('/email-verify/confirm', { token: tokenOf(await host.mails.next({ kind: 'email_verification', to: email })) })
    },
  },
  'POST /email-change/request': {
    status: 202,
    answersFirst: true,
    prepare: async (host) =>
      sending('/email-change/request', { new_email: newAddress(), current_password: password }, bearerOf(await signedIn(host))),
  },
  'POST /email-change/confirm': {
    status: 200,
    async prepare(host) {
      const { userId } = await signedIn(host)
      const newEmail = newAddress()
      await host.auth.service.requestEmailChange({ userId, newEmail, currentPassword: password })
      return sending('/email-change/confirm', { token: tokenOf(await host.mails.next({ kind: 'email_change', to: newEmail })) })
    },
  },
  'POST /refresh': { status: 200, prepare: async (host) => sending('/refresh', { refresh_token: (await signedIn(host)).refreshToken }) },
  'POST /refresh of a spent token': {
    status: 401,
    async prepare(host) {
      const { refreshToken } = await signedIn(host)
      await host.auth.service.refresh(refreshToken)
      return sending('/refresh', { refresh_token: refreshToken })
    },
  },
  'POST /logout': { status: 204, prepare: async (host) => sending('/logout', { refresh_token: (await signedIn(host)).refreshToken }) },
  'POST /logout of all sessions': {
    status: 204,
    async prepare(host) {
      const { email, refreshToken } = await signedIn(host)
      await host.auth.service.logIn({ email, password })
      await host.auth.service.logInToSession({ email, password })
      return sending('/logout', { refresh_token: refreshToken, all_sessions: true })
    },
  },
  'DELETE /session/:id': {
    status: 204,
    async prepare(host) {
      const [one, other] = await twoDevices(host)
      return async (to) => supertest(to).delete(`/auth/session/${other.id}`).set(one.headers)
    },
  },
  'POST /session/logout': {
    status: 204,
    prepare: async (host) => sending('/session/logout', {}, (await twoDevices(host))[0].headers),
  },
  'POST /mfa/enroll': { status: 200, prepare: async (host) => sending('/mfa/enroll', {}, bearerOf(await signedIn(host))) },
  'POST /mfa/confirm': {
    status: 200,
    async prepare(host) {
      const person = await signedIn(host)
      const { secret } = await host.auth.service.enrollTotp(person.userId)
      return sending('/mfa/confirm', { code: authenticator(secret, host.clock).code() }, bearerOf(person))
    },
  },
  'POST /mfa/verify by an app': verifying('/mfa/verify', ({ app }) => app.code(1)),
  'POST /mfa/verify by a recovery code': verifying('/mfa/verify', ({ recoveryCodes: [code] }) => code),
  'POST /session/mfa/verify': verifying('/session/mfa/verify', ({ app }) => app.code(1)),
  'POST /mfa/disable': {
    status: 204,
    async prepare(host) {
      const person = await enrolled(host)
      return sending('/mfa/disable', { password, code: person.app.code(1) }, bearerOf(person))
    },
  },
  'POST /mfa/recovery-codes': {
    status: 200,
    async prepare(host) {
      const person = await enrolled(host)
      return sending('/mfa/recovery-codes', { code: person.app.code(1) }, bearerOf(person))
    },
  },
  'GET /oauth/corp/callback of a new identity': { status: 200, isSpentElsewhere: true, prepare: (host) => callback(host, newPerson()) },
  'GET /oauth/corp/callback of a known identity': {
    status: 200,
    isSpentElsewhere: true,
    async prepare(host) {
      const { id } = await addUser(host.knex, { email: newAddress() })
      const profile = newPerson()
      await addIdentity(host.knex, id, { subject: profile.sub })
      return callback(host, profile)
    },
  },
  'GET /oauth/corp/callback that links by verified email': {
    status: 200,
    isSpentElsewhere: true,
    async prepare(host) {
      const { email } = await addUser(host.knex, { email: newAddress(), emailVerifiedAt: null })
      return callback(host, newPerson({ email }))
    },
  },
  'GET /oauth/acme/callback that links': {
    status: 200,
    isSpentElsewhere: true,
    async prepare(host) {
      const begun = await sending('/oauth/acme/link', {}, bearerOf(await signedIn(host)))(host.app)
      return backFromProvider(host, 'acme', begun, begun.body.authorize_url, newPerson())
    },
  },
  'POST /oauth/corp/token': {
    status: 200,
    prepare: async (host) => sending('/oauth/corp/token', { access_token: host.provider.issueAccessToken({ profile: newPerson() }) }),
  },
  'POST /oauth/corp/link with a token': {
    status: 201,
    async prepare(host) {
      const access_token = host.provider.issueAccessToken({ profile: newPerson() })
      return sending('/oauth/corp/link', { access_token }, bearerOf(await signedIn(host)))
    },
  },
  'POST /oauth/accounts/unlink': {
    status: 204,
    async prepare(host) {
      const person = await signedIn(host)
      await addIdentity(host.knex, person.userId, { subject: 'linked before' })
      return sending('/oauth/accounts/unlink', { provider: 'corp' }, bearerOf(person))
    },
  },
  'PATCH /admin/users/:id': {
    status: 200,
    async prepare(host) {
      const { id, headers } = await administration(host)
      return async (to) => supertest(to).patch(`/auth/admin/users/${id}`).set(headers).send({ name: 'Renamed', is_admin: true })
    },
  },
  ...Object.fromEntries(
    ['deactivate', 'revoke-sessions', 'reset-mfa'].map((verb): [string, Act] => [
      `POST /admin/users/:id/${verb}`,
      {
        status: 204,
        async prepare(host) {
          const { id, headers } = await administration(host)
          return sending(`/admin/users/${id}/${verb}`, {}, headers)
        },
      },
    ]),
  ),
  'POST /admin/users/:id/activate': {
    status: 204,
    async prepare(host) {
      const { id, headers } = await administration(host)
      await host.auth.service.deactivate(id)
      return sending(`/admin/users/${id}/activate`, {}, headers)
    },
  },
} satisfies Record<string, Act>

const change = { current_password: password, new_password: otherPassword }

const credentials = ({ email }: { email: string }) => ({ email, password })

async function withPassword(host: LocalHost) {
  const hashedPassword = await host.hasher.hash(password)
  return credentials(await addUser(host.knex, { email: newAddress(), hashedPassword }))
}

/** The second step of a login. */
function verifying(path: string, codeOf: (person: EnrolledMember) => string | undefined): Act {
  return {
    status: 200,
    async prepare(host) {
      const person = await enrolled(host)
      return sending(path, { mfa_token: await challengeOf(host, person), code: codeOf(person) })
    },
  }
}

async function callback(host: LocalHost, profile: ReturnType<typeof newPerson>): Promise<Send> {
  const login = await supertest(host.app).get('/auth/oauth/corp/login')
  return backFromProvider(host, 'corp', login, String(login.headers['location']), profile)
}

function backFromProvider(host: LocalHost, key: string, begun: supertest.Response, url: string, profile: object): Send {
  const { callbackQuery } = host.provider.authorize(url, { profile: { ...profile } })
  const headers = { Cookie: cookiePair(begun) ?? '' }
  return async (to) => supertest(to).get(`/auth/oauth/${key}/callback`).set(headers).query(callbackQuery)
}

/** One person with a session on each of two devices. */
async function twoDevices(host: LocalHost) {
  const input = await withPassword(host)
  const open = async () => {
    const login = await host.auth.service.logInToSession(input)
    if (login.kind !== 'session') throw new Error('no second factor was enrolled')
    const headers = { Cookie: `auth_session=${login.sessionToken}` }
    const { body } = await supertest(host.app).get('/auth/session/list').set(headers)
    return { headers, id: String(body.find(({ is_current }: { is_current: boolean }) => is_current).id) }
  }
  return [await open(), await open()] as const
}

/** An administrator, in a session with its factor, and somebody with a factor and sessions of both kinds. */
async function administration(host: LocalHost) {
  const admin = await enrolled(host, { isAdmin: true })
  const person = await enrolled(host)
  const verified = await host.auth.service.verifyMfaToSession({ mfaToken: await challengeOf(host, person), code: person.app.code(1) })
  if (verified.kind !== 'session') throw new Error('a code that is right opens a session')
  return { id: person.userId, headers: bearerOf(admin) }
}
