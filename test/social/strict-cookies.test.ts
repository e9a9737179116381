import { describe, expect, test } from 'vitest'
import { type Mounted, setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'
import { begin, callBack, onDatabase } from './redirect-steps'

/** Section 25.7, rule 8: SameSite=Strict with providers. A redirect of the callback would count as a navigation of the provider's site. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })
const strict = { cookieSamesite: 'strict', tokenDelivery: 'session', oauthSuccessRedirect: '/home' } as const
const targetOf = (page: string) => /http-equiv="refresh" content="0;url=([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
const fromProvider = { 'Sec-Fetch-Site': 'cross-site' }

describe('a login with strict cookies', () => {
  test.each([
    [{}, '/home'],
    [{ return_to: '/orders?page=2&x=%22%3E' }, '/orders?page=2&x=%22%3E'],
  ])('ends in a page that goes on to the target by itself, with %j', async (query, target) => {
    const host = await start({ settings: strict })
    const response = await signIn(host, host.browser(), { query })
    expect([response.status, response.headers['location'], response.headers['cache-control']]).toEqual([200, undefined, 'no-store'])
    expect(response.headers['referrer-policy']).toBe('no-referrer')
    expect(targetOf(response.text)).toBe(target)
    expect(response.text).toContain('>Continue</a>')
    expect(setCookieOf(response, 'auth_session')?.attributes).toContain('SameSite=Strict')
  })

  test.each([
    [{ cookieSamesite: 'lax' }, 302],
    [{ tokenDelivery: 'bearer', oauthSuccessRedirect: null }, 200],
  ] as const)('with %j is as it was', async (more, status) => {
    const host = await start({ settings: { ...strict, ...more } })
    const response = await signIn(host)
    expect([response.status, targetOf(response.text ?? '')]).toEqual([status, undefined])
  })

  test('without the state of this browser shows no page, whatever the address says', async () => {
    const host = await start({ settings: strict })
    const { query } = await begin(host)
    for (const more of [{}, { again: '1' }, { return_to: 'https://evil.example/' }, { target: 'https://evil.example/' }]) {
      const response = await callBack(host, { ...query, ...more }, { headers: fromProvider })
      expect([response.status, response.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
      expect(response.text).not.toContain('evil.example')
    }
  })
})

describe('linking with strict cookies', () => {
  let people = 0
  /** As a browser does: a navigation from the provider brings no strict cookie. */
  const withoutStrict = (cookies: string) =>
    cookies
      .split('; ')
      .filter((pair) => !pair.startsWith('auth_session='))
      .join('; ')

  async function linking(host: Mounted) {
    const cookies = new Map<string, string>()
    const keep = (response: { headers: Record<string, unknown> }) => {
      for (const line of (response.headers['set-cookie'] ?? []) as string[]) {
        const [pair = ''] = line.split(';')
        cookies.set(pair.split('=')[0] ?? '', pair)
      }
    }
    const first = await begin(host)
    keep(first.response)
    keep(await callBack(host, first.query, { cookie: [...cookies.values()].join('; ') }))
    host.clock.advance(60)
    const browser = host.browser()
    const started = await browser
      .post('/auth/oauth/other/link')
      .set({ Cookie: [...cookies.values()].join('; '), Origin: 'https://app.example.test', 'Sec-Fetch-Site': 'same-origin' })
      .send({})
    keep(started)
    const location = String(started.body.authorize_url)
    people += 1
    const subject = `second-${people}`
    const { callbackQuery } = host.provider.authorize(location, {
      profile: { sub: subject, email: `${subject}@example.test`, email_verified: true },
    })
    return { cookies: [...cookies.values()].join('; '), callbackQuery, subject }
  }

  test('loads the callback again from this site, where the session is known, and then links', async () => {
    const host = await start({ settings: strict, providers: { corp: {}, other: {} } })
    const { cookies, callbackQuery, subject } = await linking(host)
    const first = await callBack(host, callbackQuery, { key: 'other', cookie: withoutStrict(cookies), headers: fromProvider })
    expect(first.status, first.text).toBe(200)
    const target = String(targetOf(first.text))
    expect(target).toMatch(/^\?[^#]*&again=1$/) // a query alone: the page can lead to no other address
    expect(first.headers['set-cookie']).toBeUndefined()

    const second = await callBack(host, target.slice(1), { key: 'other', cookie: cookies, headers: { 'Sec-Fetch-Site': 'same-origin' } })
    expect(second.status, second.text).toBe(200)
    expect(targetOf(second.text)).toBe('/home')
    expect(await host.knex('auth_identities').where({ subject, provider: 'other' })).toHaveLength(1)
  })

  test('does not load again twice, and without the session the answer is a ticket', async () => {
    const host = await start({ settings: strict, providers: { corp: {}, other: {} } })
    const { cookies, callbackQuery, subject } = await linking(host)
    const again = { ...callbackQuery, again: '1' }
    const response = await callBack(host, again, { key: 'other', cookie: withoutStrict(cookies), headers: fromProvider })
    expect([response.status, String(response.headers['location'])]).toEqual([302, expect.stringMatching(/^\/home#link_ticket=/)])
    expect(await host.knex('auth_identities').where({ provider: 'other', subject })).toHaveLength(0)
  })
})
