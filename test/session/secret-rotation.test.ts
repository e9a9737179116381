import { describe, expect, test } from 'vitest'
import { createGuards, createKnexStore, csrfGuard, csrfToken, OidcClient } from '../../src'
import { read } from '../admin/people'
import { bearerOf, type LocalHost, password, post, signedIn } from '../local/people'
import { challengeOf, enrolled, onMfa, verify } from '../mfa/people'
import { begin, callBack, cookiePair, newPerson } from '../social/redirect-steps'
import { setCookieOf, testSecret } from '../support/app'
import { type TestClock, testClock } from '../support/clock'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'

const newSecret = 'another secret of forty characters, or so'

/** What a host may say to something that was made with a secret. */
type Use = (host: LocalHost) => Promise<unknown>

interface Carrier {
  /** The hosts keep sessions, with a grace window. */
  isStored?: boolean
  /** Makes one on this host. */
  make(host: LocalHost): Promise<Use>
  /** What is said to one under a secret that is not listed. */
  refused: unknown
}

const outcome = ({ status, body }: { status: number; body: Record<string, unknown> }) => (status < 300 ? 'fine' : [status, body['code']])

const carriers: Record<string, Carrier> = {
  'an access token': {
    async make(host) {
      const person = await signedIn(host)
      return async (at) => outcome(await at.browser().get('/auth/me').set(bearerOf(person)))
    },
    refused: [401, 'INVALID_TOKEN'],
  },
  'an access token, at guards without a router': {
    async make(host) {
      const person = await signedIn(host)
      return async (at) => outcome(await at.browser().get('/guarded').set(bearerOf(person)))
    },
    refused: [401, 'INVALID_TOKEN'],
  },
  'a stateless refresh token': {
    async make(host) {
      const { refreshToken } = await signedIn(host)
      return async (at) => outcome(await post(at, '/refresh', { refresh_token: refreshToken }))
    },
    refused: [401, 'INVALID_TOKEN'],
  },
  'a refresh token': {
    isStored: true,
    async make(host) {
      const { refreshToken } = await signedIn(host)
      return async (at) => outcome(await post(at, '/refresh', { refresh_token: refreshToken }))
    },
    refused: [401, 'INVALID_TOKEN'],
  },
  'a used refresh token, within the grace window': {
    isStored: true,
    async make(host) {
      const { refreshToken } = await signedIn(host)
      const first = await post(host, '/refresh', { refresh_token: refreshToken })
      return async (at) => {
        const again = await post(at, '/refresh', { refresh_token: refreshToken })
        if (again.status === 200) expect(again.body.refresh_token).toBe(first.body.refresh_token)
        return outcome(again)
      }
    },
    refused: [401, 'INVALID_TOKEN'],
  },
  'a session cookie': {
    isStored: true,
    async make(host) {
      const { email } = await signedIn(host)
      const value = setCookieOf(await post(host, '/session/login', { email, password }), 'auth_session')?.value
      return async (at) => outcome(await at.browser().get('/auth/session/me').set('Cookie', `auth_session=${value}`))
    },
    refused: [401, 'UNAUTHORIZED'],
  },
  'the challenge of a second factor': {
    async make(host) {
      const person = await enrolled(host)
      const challenge = await challengeOf(host, person)
      return async (at) => outcome(await verify(at, challenge, person.recoveryCodes[0]))
    },
    refused: [401, 'MFA_TOKEN_INVALID'],
  },
  'the state of a login by a provider': {
    async make(host) {
      const { query, cookie } = await begin(host, { profile: newPerson() })
      return async (at) => outcome(await callBack(at, query, { cookie }))
    },
    refused: [401, 'OAUTH_STATE_MISMATCH'],
  },
  'the state of a linking': {
    async make(host) {
      const person = await signedIn(host)
      host.clock.advance(1)
      const started = await post(host, '/oauth/corp/link', {}, bearerOf(person))
      const { callbackQuery } = host.provider.authorize(started.body.authorize_url, { profile: newPerson() })
      return async (at) => outcome(await callBack(at, callbackQuery, { cookie: cookiePair(started) }))
    },
    refused: [401, 'OAUTH_STATE_MISMATCH'],
  },
  'the cursor of a list': {
    async make(host) {
      await signedIn(host)
      const list = await read(host, await enrolled(host, { isAdmin: true }), '?limit=1')
      return async (at) => outcome(await read(at, await enrolled(at, { isAdmin: true }), `?limit=1&cursor=${list.body.next_cursor}`))
    },
    refused: [422, 'VALIDATION_ERROR'],
  },
  'a CSRF token': {
    async make(host) {
      const page = await host.browser().get('/form')
      const binding = `csrf_binding=${setCookieOf(page, 'csrf_binding')?.value}`
      const headers = { Cookie: `${binding}; csrf_token=${page.text}`, 'X-CSRF-Token': page.text }
      return async (at) => outcome(await at.browser().post('/form').set(headers))
    },
    refused: [403, 'CSRF_VALIDATION_FAILED'],
  },
}

describe('a secret that is changed', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start, opened } = onMfa(sqlite)

  /** Deployments after one another: the same tables, provider and clock, other secrets. */
  async function rotation(isStored = false): Promise<{ before: LocalHost; during: LocalHost; after: LocalHost }> {
    const before = await deploy({ jwtSecret: testSecret, clock: testClock(), isStored })
    const { clock, provider } = before
    const later = (jwtSecret: string[]) => deploy({ jwtSecret, clock, provider, isStored })
    return { before, during: await later([newSecret, testSecret]), after: await later([newSecret]) }
  }

  interface Deployment {
    jwtSecret: string | string[]
    clock: TestClock
    provider?: FakeProvider
    isStored: boolean
  }

  async function deploy({ jwtSecret, clock, provider, isStored }: Deployment): Promise<LocalHost> {
    const { knex } = opened()
    const host = await start({
      settings: { jwtSecret, refreshReuseGraceSeconds: isStored ? 10 : 0 },
      options: { store: isStored ? createKnexStore({ knex }) : createKnexStore({ knex, sessions: false }), now: clock.now },
      providers: { corp: (own) => new OidcClient((provider ?? own).oidcOptions({ providerName: 'corp' })) },
      host(app) {
        const guards = createGuards({ settings: { jwtSecret }, now: clock.now })
        app.get('/guarded', guards.requireAuth(), (_req, res) => void res.json({}))
        app.use('/form', csrfToken({ secret: jwtSecret, secure: false }), csrfGuard({ secret: jwtSecret }))
        app.get('/form', (_req, res) => void res.send(res.locals['csrfToken']))
        app.post('/form', (_req, res) => void res.json({}))
      },
    })
    return Object.assign(host, { clock, provider: provider ?? host.provider })
  }

  describe.each(Object.entries(carriers))('%s', (_what, { make, refused, isStored = false }) => {
    test('goes on while its secret is listed; afterwards it is refused, and nothing is ended', async () => {
      const { before, during, after } = await rotation(isStored)
      const use = await make(before)

      expect(await use(after)).toEqual(refused)
      expect(await use(during)).toBe('fine')
    })

    test('is made under the first secret of the list', async () => {
      const { before, during, after } = await rotation(isStored)
      const use = await make(during)

      expect(await use(before)).toEqual(refused)
      expect(await use(after)).toBe('fine')
    })
  })

  test('an attempt that waits in the cookie beside a newer one keeps its own secret, verifier and nonce', async () => {
    const { before, during, after } = await rotation()
    const first = await begin(before, { profile: newPerson() })
    const second = await begin(during, { cookie: first.cookie, profile: newPerson() })

    const returned = await callBack(during, first.query, { cookie: second.cookie })
    expect(returned.status, returned.text).toBe(200)
    expect((await callBack(after, second.query, { cookie: second.cookie })).status).toBe(200)
  })
})
