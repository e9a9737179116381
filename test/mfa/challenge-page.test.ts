import { describe, expect, test } from 'vitest'
import { as } from '../account/people'
import { type Browser, type Mounted, setCookieOf, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { authenticator } from './authenticator'

const start = appPerTest()
const html = { Accept: 'text/html,application/xhtml+xml;q=0.9' }

/** Somebody who signs in by a provider and has a second factor. */
async function enrolled(settings: object) {
  const mfa = { mfaEnabled: true, mfaIssuer: 'Example', tokenDelivery: 'both', oauthSuccessRedirect: 'https://web.example.test/home' }
  const mounted = await start({ settings: { ...mfa, ...settings } as never }) // delivery by name
  const browser = mounted.browser()
  await signIn(mounted, browser)
  const accessToken = setCookieOf(await signIn(mounted, browser), 'access_token')?.value ?? ''
  const enrolment = await browser.post('/auth/mfa/enroll').set(as({ accessToken })).send({})
  const app = authenticator(enrolment.body.secret, mounted.clock)
  await browser.post('/auth/mfa/confirm').set(as({ accessToken })).send({ code: app.code() })
  return { mounted, app }
}

/** What the page's form would send. */
function formOf(page: { text: string }): { action: string; mfaToken: string } {
  const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(page.text) ?? []
  const [, mfaToken = ''] = /name="mfa_token" value="([^"]+)"/.exec(page.text) ?? []
  return { action, mfaToken }
}

const submit = (
  browser: Browser,
  action: string,
  fields: object,
  headers: Record<string, string> = { Origin: 'null', 'Sec-Fetch-Site': 'same-origin', 'User-Agent': 'a phone' },
) => browser.post(action).set(headers).type('form').send(fields)

const arrive = (mounted: Mounted, browser: Browser) => signIn(mounted, browser, { headers: html })

describe('a challenge on the callback of a person who is on the way to the success redirect', () => {
  test.each([
    ['both', '/auth/cookie/mfa/verify'],
    ['cookie', '/auth/mfa/verify'],
  ])('delivery %s: is a page whose form, without script, finishes the login and follows the redirect', async (tokenDelivery, path) => {
    const { mounted, app } = await enrolled({ tokenDelivery })
    const browser = mounted.browser()
    const page = await arrive(mounted, browser)
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect([setCookieOf(page, 'access_token'), setCookieOf(page, 'refresh_token')]).toEqual([null, null])
    const { action, mfaToken } = formOf(page)
    expect(action).toBe(path)

    const wrong = await submit(browser, action, { mfa_token: mfaToken, code: app.code(-9) })
    expect([wrong.status, formOf(wrong), setCookieOf(wrong, 'access_token')]).toEqual([400, { action, mfaToken }, null])
    expect(wrong.text).toContain('role="alert"')

    const done = await submit(browser, action, { mfa_token: mfaToken, code: app.nextCode() })
    expect([done.status, done.headers['location']]).toEqual([302, 'https://web.example.test/home'])
    expect(setCookieOf(done, 'access_token')?.attributes).toContain('HttpOnly')
    expect(setCookieOf(done, 'refresh_token')).not.toBeNull()
    expect(done.text).toBe('')
    const opened = await mounted.knex('auth_sessions').where({ user_agent: 'a phone' })
    expect(opened).toMatchObject([{ kind: 'tokens', amr: 'ext otp', provider: 'corp', ip: expect.stringMatching(/127\.0\.0\.1$/) }])

    const again = await submit(browser, action, { mfa_token: mfaToken, code: app.nextCode() })
    expect([again.status, setCookieOf(again, 'access_token')]).toEqual([400, null])
    expect(again.text).toContain('Please sign in again')
  })

  test('its policy lets the form lead to the redirect, and nothing else', async () => {
    const { mounted } = await enrolled({})
    const page = await arrive(mounted, mounted.browser())

    expect(page.headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'nonce-[\w+/=]+'; form-action 'self' https:\/\/web\.example\.test; frame-ancestors 'none'; base-uri 'none'$/,
    )
    expect(page.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })

  test('is JSON in the body for whoever does not ask for HTML, and where there is no success redirect', async () => {
    const { mounted } = await enrolled({})
    const json = await signIn(mounted, mounted.browser())
    expect([json.status, json.body.mfa_required]).toEqual([200, true])

    const plain = await enrolled({ oauthSuccessRedirect: '' })
    const body = await arrive(plain.mounted, plain.mounted.browser())
    expect(body.body.mfa_required).toBe(true)
  })

  test.each([
    ['another site', { Origin: 'https://evil.example' }],
    ['a sandboxed frame of another site', { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' }],
    ['a sibling site', { Origin: 'null', 'Sec-Fetch-Site': 'same-site' }],
    ['nobody knows whom', { Origin: 'null' }],
  ])('its form is refused when it comes from %s: nobody is signed in to somebody else’s account', async (_whom, headers) => {
    const { mounted, app } = await enrolled({})
    const browser = mounted.browser()
    const { action, mfaToken } = formOf(await arrive(mounted, browser))

    const refused = await submit(browser, action, { mfa_token: mfaToken, code: app.nextCode() }, headers)
    expect([refused.status, setCookieOf(refused, 'access_token')]).toEqual([403, null])
    expect((await submit(browser, action, { mfa_token: mfaToken, code: app.code() })).status).toBe(302)
  })

  test('five wrong codes later it is a page that says to wait', async () => {
    const { mounted, app } = await enrolled({})
    const browser = mounted.browser()
    const { action, mfaToken } = formOf(await arrive(mounted, browser))
    for (let count = 0; count < 5; count++)
      expect((await submit(browser, action, { mfa_token: mfaToken, code: '000000' })).status).toBe(400)

    const page = await submit(browser, action, { mfa_token: mfaToken, code: app.nextCode() })
    expect([page.status, page.headers['retry-after']]).toEqual([429, '870'])
  })
})
