import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { argon2idHasher, bcryptHasher, ConfigurationError, createTokenVerifier, GitHubClient, idempotency, OidcClient } from '../../src'
import type { MountOptions } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { answer } from '../support/fake-provider'
import { linkTemplates, mailbox } from '../support/mailbox'
import { type Client, claimsOf, clientOf, codeOf, newPassword, password, writtenWith } from './client'

type Mounting = Omit<MountOptions, 'knex'>

interface Difference {
  /** The host with default settings, beyond what every case has. */
  host?: Mounting
  /** What restores the specification: settings of the host, or `request`: the client sends more. Null: nothing does. */
  restore: Mounting | 'request' | null
  ask(client: Client, isRestored: boolean): Promise<unknown>
  /** What the specification says. */
  written: unknown
  /** What doorward does by default. */
  found: unknown
}

const sixClaims = ['amr', 'email', 'exp', 'iat', 'sub', 'typ']
const oneRate = { attempts: 5, windowSeconds: 900 }
const throttleOff = { routes: false, login: false } as const

/** Every difference by its id in docs/specification.md. */
const differences: Readonly<Record<string, Difference>> = {
  'mfa-confirm': {
    restore: 'request',
    async ask({ member, enrol, post, host }, isRestored) {
      if (!isRestored) return (await enrol(await member())).confirmed.body.refresh_token
      const person = await member()
      const begun = await post('/mfa/enroll', {}, person.token)
      const { authenticator } = await import('../mfa/authenticator')
      const code = authenticator(begun.body.secret, host.clock).code()
      return (await post('/mfa/confirm', { code, refresh_token: person.refreshToken }, person.token)).body.refresh_token
    },
    written: expect.any(String),
    found: null,
  },
  claims: {
    restore: { settings: { accessTokenSessionClaims: false } },
    ask: async ({ member }) => Object.keys(claimsOf((await member()).token)).sort(),
    written: sixClaims,
    found: [...sixClaims, 'auth_time', 'sid'].sort(),
  },
  'fresh-session': {
    restore: { settings: { freshSessionSeconds: 0 } },
    async ask({ member, post, host }) {
      const person = await member()
      host.clock.advance(901)
      const { body } = await post('/refresh', { refresh_token: person.refreshToken })
      return codeOf(await post('/oauth/accounts/unlink', { provider: 'corp' }, body.access_token))
    },
    written: [404, 'OAUTH_ACCOUNT_NOT_LINKED'],
    found: [403, 'REAUTHENTICATION_REQUIRED'],
  },
  'young-credential': {
    restore: { settings: { youngCredentialSeconds: 0 } },
    async ask({ enrolled, post }) {
      const { app, token } = await enrolled()
      return codeOf(await post('/password-change/mfa', { code: app.nextCode(), new_password: newPassword }, token))
    },
    written: [204, undefined],
    found: [403, 'MFA_FACTOR_TOO_NEW'],
  },
  bcrypt: {
    host: { options: { passwordHasher: argon2idHasher() } },
    restore: { options: { passwordHasher: bcryptHasher({ cost: 12 }) } },
    ask: async ({ member, host }) => (await hashOf(host, (await member()).userId)).slice(0, 7),
    written: '$2b$12$',
    found: '$argon2',
  },
  'generated-password': {
    restore: null,
    ask: async ({ social, host }) => (await hashOf(host, (await social()).body.user_id)).slice(0, 1),
    written: '$',
    found: '!',
  },
  'login-limit': {
    restore: { options: { throttle: { login: { pair: oneRate, email: oneRate, client: oneRate } } } },
    async ask({ post, newEmail }) {
      for (let count = 0; count < 5; count++) await post('/login', { email: `one-${count}@example.test`, password })
      return codeOf(await post('/login', { email: newEmail(), password }))
    },
    written: [429, 'LOGIN_THROTTLED'],
    found: [401, 'UNAUTHORIZED'],
  },
  'recovery-code-limit': {
    restore: null,
    async ask({ enrolled, post }) {
      const { email, recoveryCodes } = await enrolled()
      const { body } = await post('/login', { email, password })
      for (let count = 0; count < 5; count++) await post('/mfa/verify', { mfa_token: body.mfa_token, code: '000000' })
      return codeOf(await post('/mfa/verify', { mfa_token: body.mfa_token, code: recoveryCodes[0] }))
    },
    written: [429, 'MFA_THROTTLED'],
    found: [200, undefined],
  },
  'twenty-codes': {
    restore: null,
    async ask({ enrolled, post, host }) {
      const { email, app } = await enrolled()
      const verify = async (code: () => string) => {
        const { body } = await post('/login', { email, password })
        return post('/mfa/verify', { mfa_token: body.mfa_token, code: code() })
      }
      for (let window = 0; window < 4; window++) {
        for (let count = 0; count < 5; count++) await verify(() => '000000')
        host.clock.advance(901)
      }
      return codeOf(await verify(() => app.nextCode()))
    },
    written: [200, undefined],
    found: [429, 'MFA_THROTTLED'],
  },
  'password-classes': {
    restore: { settings: { passwordRequireComplexity: true } },
    ask: async ({ post, newEmail }) => codeOf(await post('/signup', { email: newEmail(), password })),
    written: [422, 'VALIDATION_ERROR'],
    found: [201, undefined],
  },
  'signup-token': {
    restore: null,
    ask: async ({ signUp }) => Object.keys((await signUp()).response.body).sort(),
    written: ['access_token', 'activation_required', 'activation_url', 'refresh_token', 'user_id'],
    found: ['access_token', 'activation_required', 'activation_url', 'refresh_token', 'signup_token', 'user_id'],
  },
  'github-email': {
    host: { providers: { github: (provider) => new GitHubClient(provider.githubOptions()) } },
    restore: { providers: { github: (provider) => new GitHubClient(provider.githubOptions({ scopes: ['read:user'] })) } },
    async ask({ social, host }, isRestored) {
      const profile = { ...host.provider.githubProfile, email: null }
      host.provider.githubProfile = profile
      // Without the scope user:email GitHub does not show the list of addresses; the fake provider knows no scopes.
      if (isRestored)
        host.provider.on('user', (request, response) =>
          answer(request.url.endsWith('/emails') ? 404 : 200, request.url.endsWith('/emails') ? {} : profile)(request, response),
        )
      return codeOf(await social(undefined, 'github'))
    },
    written: [422, 'OAUTH_EMAIL_MISSING'],
    found: [200, undefined],
  },
  'unverified-address': {
    host: { settings: { ...linkTemplates, autoActivate: true }, options: { mailer: mailbox() } },
    restore: null,
    async ask({ post, newEmail }) {
      const { body } = await post('/signup', { email: newEmail(), password })
      return codeOf(await post('/mfa/enroll', {}, body.access_token))
    },
    written: [200, undefined],
    found: [403, 'EMAIL_NOT_VERIFIED'],
  },
  'first-verification': {
    host: { settings: { autoActivate: true } },
    restore: 'request',
    async ask({ post, newEmail, enrol, resetToken }, isRestored) {
      const email = newEmail()
      const { body } = await post('/signup', { email, password })
      await enrol({ token: body.access_token })
      const token = await resetToken({ email })
      const confirm = { token, new_password: newPassword, ...(isRestored && { password }) }
      return (await post('/password-reset/confirm', confirm)).body.mfa_required
    },
    written: true,
    found: false,
  },
  'links-in-production': {
    restore: { settings: { linksInProduction: true } },
    ask: async () => 'boots',
    written: 'boots',
    found: expect.any(ConfigurationError),
    host: { options: { environment: 'production', throttle: throttleOff } },
  },
  'key-set-stale': {
    restore: 'request',
    async ask({ host }, isRestored) {
      const verifier = verifierOf(host, isRestored ? { staleIfErrorSeconds: 0 } : {})
      const token = tokenOf(host)
      await verifier.verify(token())
      host.provider.on('jwks', answer(503, {}))
      host.clock.advance(301)
      return verifier.verify(token()).then(
        () => 'verified',
        (error: { code: string }) => error.code,
      )
    },
    written: 'OAUTH_PROVIDER_UNAVAILABLE',
    found: 'verified',
  },
  'key-set-retry': {
    restore: null,
    async ask({ host }) {
      host.provider.on('jwks', answer(503, {}))
      const verifier = verifierOf(host, {})
      for (let count = 0; count < 2; count++) {
        await verifier.verify(tokenOf(host)()).catch(() => undefined)
        host.clock.advance(5)
      }
      return host.provider.requestsTo('jwks').length
    },
    written: 1,
    found: 2,
  },
  'token-kind': {
    restore: null,
    host: {
      providers: {
        corp: ({ issuer, jwksUri, ...provider }) =>
          new OidcClient({ ...provider.oidcOptions(), tokenVerifier: createTokenVerifier({ issuer, jwksUri, algorithms: ['RS256'] }) }),
      },
    },
    ask: async ({ host, post }) => (await post('/oauth/corp/token', { access_token: tokenOf(host)() })).status,
    written: 200,
    found: 401,
  },
  'unknown-caller': {
    restore: 'request',
    async ask(_client, isRestored) {
      let count = 0
      const app = express().use(idempotency(), (_req, res) => void res.json(++count))
      const headers = { 'Idempotency-Key': 'order-one', ...(isRestored && { Authorization: 'Basic b25l' }) }
      const order = async () => (await supertest(app).post('/orders').set(headers)).body
      return [await order(), await order()]
    },
    written: [1, 1],
    found: [1, 2],
  },
}

type Host = Client['host']

async function hashOf({ knex }: Host, id: string): Promise<string> {
  return (await knex('auth_users').where({ id }).first()).hashed_password
}

function verifierOf({ provider, clock }: Host, options: object) {
  return createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'], now: clock.now, ...options })
}

const tokenOf =
  ({ provider }: Host) =>
  () =>
    provider.signJwt(provider.idTokenClaims())

const page = readFileSync(join(import.meta.dirname, '../../docs/specification.md'), 'utf8')
/** The rows of the page's tables by their id: what is written, what is done, why, and what restores it. */
const rows = new Map(
  page
    .split('\n')
    .filter((line) => /^\| `[a-z-]+` \|/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, id = '', ...cells]) => [id.replaceAll('`', ''), cells] as const),
)

describe('docs/specification.md', () => {
  const start = appPerTest()
  const clientWith = async (mounting: Mounting) => clientOf(await start(writtenWith(mounting)))
  const merged = ({ settings, options, providers }: Mounting = {}, more: Mounting = {}): Mounting => ({
    settings: { ...settings, ...more.settings },
    options: { ...options, ...more.options },
    ...((more.providers ?? providers) && { providers: more.providers ?? providers ?? {} }),
  })

  test('lists exactly the differences that this walk knows, begins with /mfa/confirm, and says of each what restores it (25.9.8)', () => {
    expect([...rows.keys()]).toEqual(Object.keys(differences))
    for (const [id, cells] of rows) {
      const [, , , restores = ''] = cells
      const { restore = null } = differences[id] ?? {}
      const settings =
        restore === null || restore === 'request' ? [] : Object.keys({ ...restore.settings, ...restore.options, ...restore.providers })
      expect([id, cells.filter((cell) => cell !== '').length]).toEqual([id, 4])
      if (restore === null) expect([id, restores]).toEqual([id, 'nothing'])
      for (const setting of settings) expect([id, restores]).toEqual([id, expect.stringContaining(setting)])
    }
  })

  test.each(Object.entries(differences))('%s: by default doorward differs as the page says (25.9.8)', async (_id, { host, ask, found }) => {
    expect(
      await clientWith(merged(host))
        .then((client) => ask(client, false))
        .catch((error) => error),
    ).toEqual(found)
  })

  test.each(Object.entries(differences).filter(([, { restore }]) => restore !== null))(
    '%s: with what the page names, doorward answers as written (25.9.8)',
    async (_id, { host, restore, ask, written }) => {
      const client = await clientWith(merged(host, restore === 'request' || restore === null ? {} : restore))
      expect(await ask(client, true)).toEqual(written)
    },
  )
})
