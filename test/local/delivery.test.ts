import { describe, expect, test } from 'vitest'
import { addUser } from '../social/accounts-at-hand'
import { baseUrl, setCookieOf } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import {
  amrOf,
  bearerOf,
  isAlive,
  type LocalHost,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  signedIn,
} from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

type Answer = Awaited<ReturnType<typeof post>>

/** Every local way into a session, with fresh means each time; `base` is '' or '/cookie'. */
const ways: [way: string, enter: (host: LocalHost, base: string, headers?: Record<string, string>) => Promise<Answer>, amr: string][] = [
  ['login', async (host, base, headers) => post(host, `${base}/login`, { email: (await signedIn(host)).email, password }, headers), 'pwd'],
  ['signup, auto-activated', (host, base, headers) => post(host, `${base}/signup`, { email: newAddress(), password }, headers), 'pwd'],
  [
    'activate, by path',
    async (host, base, headers) => post(host, `${base}/activate/${await activationOf(host)}`, undefined, headers),
    'email',
  ],
  [
    'activate, by body',
    async (host, base, headers) => post(host, `${base}/activate`, { token: await activationOf(host) }, headers),
    'email',
  ],
  [
    'password-reset/confirm',
    async (host, base, headers) => {
      const token = await resetLink(host, (await signedIn(host)).email)
      return post(host, `${base}/password-reset/confirm`, { token, new_password: otherPassword }, headers)
    },
    'email',
  ],
]

/** Of an account that waits, also where signups are born active. */
async function activationOf(host: LocalHost): Promise<string> {
  const { email } = await addUser(host.knex, { email: newAddress(), isActive: false, activatedAt: null, emailVerifiedAt: null })
  const link = await host.auth.service.requestActivation(email)
  if (link === null || typeof link === 'symbol') throw new Error('no link')
  return link.token
}

describe('delivery of the local routes', () => {
  const { start } = onLocal(sqlite)
  const settings = (tokenDelivery: 'bearer' | 'cookie' | 'both') => ({ tokenDelivery, autoActivate: true })

  test.each(ways)('bearer (default): %s answers both tokens in the body and sets no cookie', async (_way, enter, amr) => {
    const host = await start({ settings: settings('bearer') })
    const { body, headers } = await enter(host, '')

    expect([amrOf(body.access_token), headers['set-cookie']]).toEqual([[amr], undefined])
    expect(await isAlive(host, body.refresh_token)).toBe(true)
  })

  test.each(ways)('bearer: below /cookie there is nothing for %s', async (_way, enter) => {
    expect((await enter(await start({ settings: settings('bearer') }), '/cookie')).status).toBe(404)
  })

  test.each([
    ['cookie', ''],
    ['both', '/cookie'],
  ] as const)('%s, paths below "%s": every way sets both as HttpOnly cookies; body fields null', async (delivery, base) => {
    const host = await start({ settings: settings(delivery) })
    for (const [way, enter, amr] of ways) {
      const answer = await enter(host, base)
      expect([answer.status, answer.body], way).toEqual([
        way.startsWith('signup') ? 201 : 200,
        expect.objectContaining({ user_id: expect.any(String), access_token: null, refresh_token: null }),
      ])
      const [access, refresh] = [setCookieOf(answer, 'access_token'), setCookieOf(answer, 'refresh_token')]
      expect(amrOf(String(access?.value)), way).toEqual([amr])
      expect(access?.attributes).toMatch(/^Max-Age=900; Path=\/; .*HttpOnly; SameSite=Lax$/)
      expect(refresh?.attributes).toMatch(new RegExp(`^Max-Age=604800; Path=/auth${base}; .*HttpOnly; SameSite=Lax$`))
      const refreshed = await post(host, `${base}/refresh`, undefined, { Cookie: `refresh_token=${refresh?.value}` })
      expect(refreshed.status, way).toBe(200)
    }
  })

  test('both: the plain paths answer in the body and set no cookie', async () => {
    const host = await start({ settings: settings('both') })
    for (const [way, enter, amr] of ways) {
      const { body, headers } = await enter(host, '')
      expect([amrOf(body.access_token), headers['set-cookie']], way).toEqual([[amr], undefined])
    }
  })

  test('a pending signup sets no login cookie in any delivery, and only the cookie that binds it to its browser', async () => {
    for (const [tokenDelivery, base] of [
      ['cookie', ''],
      ['both', '/cookie'],
    ] as const) {
      const host = await start({ settings: { tokenDelivery } })
      const { status, headers, body } = await post(host, `${base}/signup`, { email: newAddress(), password })
      expect([status, headers['set-cookie'], body.access_token]).toEqual([201, [expect.stringMatching(/^signup_binding=/)], null])
    }
    expect((await pending(await start())).link).toMatch(/^[\w-]{43}$/)
  })

  const foreign = [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: baseUrl.replace('https', 'http') },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'same-origin' },
  ]

  test.each([
    ['cookie', ''],
    ['both', '/cookie'],
  ] as const)(
    'R-122 %s, below "%s": another site is refused with 403 CSRF_VALIDATION_FAILED, and spends nothing',
    async (delivery, base) => {
      const host = await start({ settings: settings(delivery) })
      for (const headers of foreign as Record<string, string>[]) {
        for (const [way, enter] of ways) {
          const answer = await enter(host, base, headers)
          expect([answer.status, answer.body.code, answer.headers['set-cookie']], `${way} ${JSON.stringify(headers)}`).toEqual([
            403,
            'CSRF_VALIDATION_FAILED',
            undefined,
          ])
        }
      }
      const token = await activationOf(host)
      await post(host, `${base}/activate`, { token }, { Origin: 'https://evil.example' })
      expect((await post(host, `${base}/activate`, { token }, { Origin: baseUrl })).status).toBe(200)
    },
  )

  test.each([
    { Origin: baseUrl },
    { 'Sec-Fetch-Site': 'same-origin' },
    { 'Sec-Fetch-Site': 'none' },
    { Origin: 'https://spa.example.test' },
    {},
  ])('R-122 the public origin, a trusted one, and clients that send neither header pass: %j', async (headers) => {
    const host = await start({ settings: { ...settings('cookie'), trustedOrigins: ['https://spa.example.test'] } })
    for (const [way, enter] of ways) expect((await enter(host, '', headers as Record<string, string>)).status, way).toBeLessThan(300)
  })

  test('the lines that answer in the body ask for no origin: they set and use no cookie', async () => {
    const host = await start({ settings: settings('both') })
    for (const [way, enter] of ways) expect((await enter(host, '', { Origin: 'https://evil.example' })).status, way).toBeLessThan(300)
  })

  describe('password-change', () => {
    const body = { current_password: password, new_password: otherPassword }

    test('cookie: the access cookie signs in, the refresh cookie names the session that goes on; from another site 403', async () => {
      const host = await start({ settings: settings('cookie') })
      const { email, refreshToken: other } = await signedIn(host)
      const login = await post(host, '/login', { email, password })
      const [access, refresh] = ['access_token', 'refresh_token'].map((name) => setCookieOf(login, name)?.value)
      const cookies = { Cookie: `access_token=${access}; refresh_token=${refresh}` }

      for (const headers of foreign as Record<string, string>[])
        expect((await post(host, '/password-change', body, { ...cookies, ...headers, ...oldBrowser })).body.code).toBe(
          'CSRF_VALIDATION_FAILED',
        )
      const change = await post(host, '/password-change', body, { ...cookies, Origin: baseUrl })

      const kept = setCookieOf(change, 'refresh_token')?.value
      expect([change.status, change.text, setCookieOf(change, 'access_token')]).toEqual([204, '', null])
      expect((await post(host, '/refresh', undefined, { Cookie: `refresh_token=${kept}` })).status).toBe(200)
      expect((await post(host, '/refresh', undefined, { Cookie: `refresh_token=${other}` })).status).toBe(401)
    })

    test('both: /cookie/password-change keeps the cookie’s session; the plain path with a cookie is refused from another site', async () => {
      const host = await start({ settings: settings('both') })
      const { email, refreshToken: other } = await signedIn(host)
      const login = await post(host, '/cookie/login', { email, password })
      const [access, refresh] = ['access_token', 'refresh_token'].map((name) => setCookieOf(login, name)?.value)
      const cookies = { Cookie: `access_token=${access}; refresh_token=${refresh}` }

      const evil = { Cookie: `access_token=${access}`, Origin: 'https://evil.example', ...oldBrowser }
      expect((await post(host, '/password-change', body, evil)).status).toBe(403)
      expect((await post(host, '/cookie/password-change', body, { ...evil, ...cookies })).status).toBe(403)
      const change = await post(host, '/cookie/password-change', body, cookies)
      expect(change.status).toBe(204)
      const kept = setCookieOf(change, 'refresh_token')?.value
      expect((await post(host, '/cookie/refresh', undefined, { Cookie: `refresh_token=${kept}` })).status).toBe(200)
      expect(await isAlive(host, other)).toBe(false)
    })

    test('R-116 the Authorization header wins over the cookie', async () => {
      const host = await start({ settings: settings('cookie') })
      const [ana, bob] = [await signedIn(host), await signedIn(host)]
      const headers = { ...bearerOf(ana), Cookie: `access_token=${bob.token}`, Origin: baseUrl }

      expect((await post(host, '/password-change', body, headers)).status).toBe(204)

      expect((await post(host, '/login', { email: ana.email, password: otherPassword })).status).toBe(200)
      expect((await post(host, '/login', { email: bob.email, password })).status).toBe(200)
      const broken = { Authorization: 'Bearer nonsense', Cookie: `access_token=${bob.token}`, Origin: baseUrl }
      expect((await post(host, '/password-change', body, broken)).body.code).toBe('INVALID_TOKEN')
    })
  })
})
