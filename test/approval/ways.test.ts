import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import type { Route } from '../../src/http/routes'
import { type LocalHost, type LocalMember, newAddress, otherPassword, password, pending, post, resetLink, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { appSettings, browse, exchange, nativeApp } from '../oauth-code/apps'
import { loginOptions, passkeyOwner, passkeySettings } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson, setCookies } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { mountedRoutes } from '../support/mounted-routes'
import { isPending, onApproval, putOnList, rowsOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onApproval(sqlite)

type Person = Pick<LocalMember, 'email' | 'userId'>

interface Door {
  /** An account that is then put on the list. */
  readonly person: (host: LocalHost) => Promise<Person>
  readonly open: (host: LocalHost, path: string, person: Person) => Promise<supertest.Response>
  /** Default: 403 APPROVAL_PENDING. */
  readonly answers?: readonly [number, string]
}

const unproven = [401, 'INVALID_TOKEN'] as const
const withPassword = (host: LocalHost): Promise<Person> => signedIn(host, { emailVerifiedAt: host.clock.now() })

const byPassword: Door = { person: withPassword, open: (host, path, { email }) => post(host, path, { email, password }) }

/** The link of a sign-up, which the account of the list no longer has. */
const links = new Map<string, string>()
const withLink = async (host: LocalHost): Promise<Person> => {
  const { link, ...person } = await pending(host)
  links.set(person.userId, link)
  return person
}
const activation: Door = {
  person: withLink,
  open: (host, path, { userId }) => {
    const token = links.get(userId) ?? ''
    return path.endsWith(':token') ? post(host, path.replace(':token', token), {}) : post(host, path, { token })
  },
  answers: unproven,
}

const profiles = new Map<string, ReturnType<typeof newPerson>>()
const withProvider = async (host: LocalHost, provider = 'corp'): Promise<Person> => {
  const person = await withPassword(host)
  const profile = newPerson()
  profiles.set(person.userId, profile)
  await addIdentity(host.knex, person.userId, { subject: String(profile.sub), provider })
  return person
}
const profileOf = ({ userId }: Person) => profiles.get(userId) ?? newPerson()

const passkeys = new Map<string, Awaited<ReturnType<typeof passkeyOwner>>>()
const factors = new Map<string, Awaited<ReturnType<typeof enrolled>>>()
const codes = new Map<string, { code: string; verifier: string }>()

/** Every login-shaped route of the mounted ones, below `/cookie` or `/session` or not. */
const doors: Readonly<Record<string, Door>> = {
  'POST /login': byPassword,
  'POST /activate': activation,
  'POST /activate/:token': activation,
  'POST /password-reset/confirm': {
    async person(host) {
      const person = await withPassword(host)
      links.set(person.userId, await resetLink(host, person.email))
      return person
    },
    open: (host, path, { userId }) => post(host, path, { token: links.get(userId), new_password: otherPassword }),
    answers: unproven,
  },
  'POST /email-login/confirm': {
    person: withPassword,
    async open(host, path, { email }) {
      const { url } = await host.auth.service.requestEmailLogin(email)
      return post(host, path, { token: url?.split('/').at(-1) })
    },
  },
  'GET /oauth/:provider/callback': {
    person: withProvider,
    open: async (host, _path, person) => signIn(host, host.browser(), { profile: profileOf(person) }),
  },
  'POST /oauth/:provider/token': {
    person: (host) => withProvider(host, 'introspecting'),
    open: (host, path, person) =>
      post(host, path.replace(':provider', 'introspecting'), {
        access_token: host.provider.issueAccessToken({ profile: profileOf(person) }),
      }),
  },
  'POST /oauth/exchange': {
    async person(host) {
      const person = await withProvider(host)
      codes.set(person.userId, await browse(host, { redirectTo: nativeApp, profile: profileOf(person) }))
      return person
    },
    open: (host, _path, { userId }) => exchange(host, codes.get(userId) ?? { code: '', verifier: '' }),
    answers: [401, 'OAUTH_CODE_INVALID'],
  },
  'POST /passkeys/login': {
    async person(host) {
      const owner = await passkeyOwner(host, { changes: { emailVerifiedAt: host.clock.now() } })
      passkeys.set(owner.userId, owner)
      return owner
    },
    async open(host, path, { userId }) {
      const options = await loginOptions(host)
      return post(host, path, { credential: passkeys.get(userId)?.authenticator.get(options), challenge_token: options.challenge_token })
    },
  },
  'POST /mfa/verify': {
    async person(host) {
      const person = await enrolled(host, { emailVerifiedAt: host.clock.now() })
      factors.set(person.userId, person)
      return person
    },
    async open(host, path, { email, userId }) {
      const base = path.replace('/mfa/verify', '')
      const first = await post(host, `${base}/login`, { email, password })
      expect([first.status, first.body.mfa_required]).toEqual([200, true])
      return post(host, path, { mfa_token: first.body.mfa_token, code: factors.get(userId)?.app.nextCode() })
    },
  },
}

/** They go on from a session, which a waiting account has not. */
const ofSessions = ['POST /refresh', 'POST /mfa/confirm']

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/(cookie|session)(?=\/)/, '')}`
const introspecting = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('a waiting account in delivery %s', (tokenDelivery) => {
  test('rule 4: every way to log in refuses a right credential alike, and opens, extends and freshens nothing', async () => {
    mountedRoutes.length = 0
    const isOfApps = tokenDelivery === 'bearer' || tokenDelivery === 'both'
    const host = await start({
      settings: {
        tokenDelivery,
        emailLogin: 'both',
        emailLoginUrlTemplate: 'https://app.example.test/in/{token}',
        ...mfaSettings,
        ...passkeySettings,
        ...(isOfApps && appSettings),
      },
      options: { throttle: { mail: false, routes: false, login: { attempts: 1, windowSeconds: 900 } } },
      providers: { corp: {}, introspecting },
    })
    const failures: { reason: string; userId: string | null; clientKey: string | null }[] = []
    const opened: unknown[] = []
    host.auth.events.on('login.failed', (failure) => failures.push(failure))
    host.auth.events.on('login', (login) => opened.push(login))
    const shaped = (mountedRoutes[0] ?? []).filter(({ delivers }) => delivers === 'login')
    const names = new Set(shaped.map(nameOf))
    expect([...names].filter((name) => !(name in doors) && !ofSessions.includes(name))).toEqual([])
    expect(Object.keys(doors).filter((name) => !names.has(name))).toEqual(isOfApps ? [] : ['POST /oauth/exchange'])

    for (const route of shaped.filter((one) => nameOf(one) in doors)) {
      const door = doors[nameOf(route)]
      if (!door) throw new Error(`nobody knows how to open ${route.path}`)
      const person = await door.person(host)
      await putOnList(host, person)
      const before = await rowsOf(host, person)
      failures.length = 0
      opened.length = 0
      // Three right credentials, of which the limit of one attempt counts none.
      const times = nameOf(route) === 'POST /login' ? 3 : 1
      for (let time = 0; time < times; time++) {
        const response = await door.open(host, route.path, person)
        expect([route.path, response.status, response.body.code]).toEqual([route.path, ...(door.answers ?? isPending)])
        expect([route.path, setCookies(response).filter((line) => /^(auth_session|access_token|refresh_token)=[^;]/.test(line))]).toEqual([
          route.path,
          [],
        ])
      }
      await host.auth.drain()
      expect([route.path, await rowsOf(host, person)]).toEqual([route.path, before])
      expect([route.path, opened]).toEqual([route.path, []])
      if (door.answers) continue
      expect([route.path, failures.map(({ reason, userId }) => ({ reason, userId }))]).toEqual([
        route.path,
        Array.from({ length: times }, () => ({ reason: 'APPROVAL_PENDING', userId: person.userId })),
      ])
      expect(failures[0]).toMatchObject({ clientKey: '127.0.0.1' })
    }
  })
})

describe('a waiting account', () => {
  test('rule 4: the redirect of a provider carries only the code', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie', oauthErrorRedirect: 'https://app.example.test/failed' } })
    const person = await withProvider(host)
    await putOnList(host, person)
    const { headers } = await signIn(host, host.browser(), { profile: profileOf(person) })
    expect(headers['location']).toBe('https://app.example.test/failed?error=APPROVAL_PENDING')
  })

  test('31.3.2 a wrong password and a pending account get the usual 401', async () => {
    const host = await start()
    const person = await withPassword(host)
    await putOnList(host, person)
    const { email } = await pending(host)
    const wrong = await post(host, '/login', { email: person.email, password: otherPassword })
    const waits = await post(host, '/login', { email, password })
    const nobody = await post(host, '/login', { email: newAddress(), password })
    expect([wrong.status, wrong.body.code]).toEqual([401, 'UNAUTHORIZED'])
    expect([waits.body, nobody.body]).toEqual([wrong.body, wrong.body])
  })

  test('a provider that the account does not have is neither linked nor a way in', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie', oauthLinkByVerifiedEmail: true } })
    const person = await withPassword(host)
    await putOnList(host, person)
    const before = await rowsOf(host, person)
    const profile = newPerson({ email: person.email, email_verified: true })
    const answer = await signIn(host, host.browser(), { profile })
    expect([answer.status, answer.body.code]).toEqual([...isPending])
    expect(await host.knex('auth_identities').where({ user_id: person.userId })).toEqual([])
    expect(await rowsOf(host, person)).toEqual(before)
  })
})
