import { describe, expect, test } from 'vitest'
import { password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { faultOf, fieldValue, noticeOf, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

const cookiesOf = (response: { headers: Record<string, unknown> }) => ((response.headers['set-cookie'] ?? []) as string[]).join('\n')

describe.each(['cookie', 'both', 'session'] as const)('signing in by the page, delivery %s', (tokenDelivery) => {
  const settings = { tokenDelivery }

  test('a person signs in, arrives at the account, and signs out', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const browser = host.browser()

    const page = await browser.get('/auth/login')
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.text).toMatch(/<form method="post" action="\/auth\/login">/)
    expect(page.text).toContain('autocomplete="username"')
    expect(page.text).toContain('autocomplete="current-password"')

    const signed = await signInByPage(browser, { email, password })
    expect([signed.status, signed.headers['location'], signed.text]).toEqual([303, '/auth/account', ''])

    const account = await browser.get('/auth/account')
    expect([account.status, account.text.includes(email)]).toEqual([200, true])

    const out = await sendForm(browser, '/auth/logout')
    expect([out.status, out.headers['location']]).toEqual([303, '/auth/signed-out'])
    expect((await browser.get('/auth/signed-out')).text).toContain('You are signed out')
    const gone = await browser.get('/auth/account')
    expect([gone.status, gone.headers['location']]).toEqual([302, '/auth/login?return_to=%2Fauth%2Faccount'])
  })

  test('no page holds a token, and every one is the answer of this moment alone', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const browser = host.browser()
    const pages = [await browser.get('/auth/login'), await signInByPage(browser, { email, password }), await browser.get('/auth/account')]
    for (const { text, headers } of pages) {
      expect(text).not.toMatch(/eyJ/)
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    }
    const tokens = cookiesOf(pages[1] ?? { headers: {} }).matchAll(/=([\w.-]{40,});/g)
    for (const [, token = ''] of tokens) expect(pages[2]?.text).not.toContain(token)
  })

  test('two tabs that are restored at once after the access token’s end keep their session', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    host.clock.advance(3_600)
    const [one, two] = await Promise.all([browser.get('/auth/account'), browser.get('/auth/account')])
    expect([one.status, two.status]).toEqual([200, 200])
    expect((await browser.get('/auth/account')).status).toBe(200)
  })

  test('who was sent here goes back to where they came from, also over a refused form', async () => {
    const host = await start({ settings: { ...settings, trustedOrigins: ['https://shop.example'] } })
    const { email } = await signedIn(host)
    for (const [back, location] of [
      ['/orders?page=2', '/orders?page=2'],
      ['https://shop.example/cart', 'https://shop.example/cart'],
    ] as const) {
      const browser = host.browser()
      const page = await browser.get('/auth/login').query({ return_to: back })
      expect(fieldValue(page.text, 'return_to')).toBe(back)
      const refused = await sendForm(browser, '/auth/login', { email, password: 'not this one', return_to: back })
      expect([refused.status, fieldValue(refused.text, 'return_to')]).toEqual([400, back])
      const signed = await sendForm(browser, '/auth/login', { email, password, return_to: back })
      expect([signed.status, signed.headers['location']]).toEqual([303, location])
    }
  })
})

describe('the sign-in page', () => {
  test('a wrong password is told in the form with status 400; the address is kept, the password is not', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const refused = await sendForm(host.browser(), '/auth/login', { email, password: 'not this one' })
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([400, undefined])
    expect(problemOf(refused.text)).toBe('The email address or the password is not correct.')
    expect(refused.text).toContain('<title>Error: Sign in')
    expect(fieldValue(refused.text, 'email')).toBe(email)
    expect(refused.text).not.toContain('not this one')
    expect(refused.text).toMatch(/<p class="problem" role="alert" tabindex="-1" autofocus>/)
  })

  test('what is missing is said beside its field, which gets the focus', async () => {
    const host = await start()
    const { status, text } = await sendForm(host.browser(), '/auth/login', { email: 'ana@example.test', password: '' })
    expect([status, faultOf(text, 'password'), faultOf(text, 'email')]).toEqual([400, 'Please fill this in.', null])
    expect(text).toMatch(/<input id="password"[^>]*aria-describedby="password-fault" aria-invalid="true" autofocus>/)
  })

  test('a field that came twice, or that is no text, is a refused form', async () => {
    const host = await start()
    const twice = await sendForm(host.browser(), '/auth/login', 'email=a%40b.test&email=c%40d.test&password=x' as never)
    expect([twice.status, faultOf(twice.text, 'email')]).toEqual([400, 'This was sent twice. Please enter it only once.'])
    expect(twice.text).not.toContain('a@b.test')
  })

  test('too much text is 413, on the page', async () => {
    const host = await start()
    const { status, headers, text } = await sendForm(host.browser(), '/auth/login', { email: 'x'.repeat(20_000), password: 'x' })
    expect([status, headers['content-type']]).toEqual([413, 'text/html; charset=utf-8'])
    expect(problemOf(text)).toContain('too long')
  })

  test('a form of another site is 403, on the page, and signs nobody in', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    for (const headers of [{ Origin: 'https://elsewhere.example' }, { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' }]) {
      const refused = await host.browser().post('/auth/login').set(headers).type('form').send({ email, password })
      expect([refused.status, cookiesOf(refused)]).toEqual([403, ''])
      expect(problemOf(refused.text)).toContain('another site')
    }
  })

  test('too many attempts are 429 with Retry-After, on the page, with what was typed', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const browser = host.browser()
    for (let count = 0; count < 5; count += 1) await sendForm(browser, '/auth/login', { email, password: 'not this one' })
    const refused = await sendForm(browser, '/auth/login', { email, password: 'not this one' })
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true])
    expect(problemOf(refused.text)).toMatch(/^There were too many attempts\. Please try again in 15 minutes\.$/)
    expect(fieldValue(refused.text, 'email')).toBe(email)
  })

  test('JSON on the same path goes on as before; another content type of a form is 415, another method 405', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const json = await host.browser().post('/auth/login').send({ email, password })
    expect([json.status, json.body.mfa_required]).toEqual([200, false])
    expect((await host.browser().post('/auth/login').set('Content-Type', 'text/plain').send('x')).status).toBe(415)
    const other = await host.browser().delete('/auth/login')
    expect([other.status, other.headers['allow']]).toEqual([405, 'GET, HEAD, POST'])
    const head = await host.browser().head('/auth/login')
    expect([head.status, head.text]).toEqual([200, undefined])
  })

  test('a return_to that we do not follow is a page with status 400 that leads on without it', async () => {
    const host = await start()
    for (const bad of ['//elsewhere.example', 'https://elsewhere.example/x', 'javascript:alert(1)']) {
      const page = await host.browser().get('/auth/login').query({ return_to: bad })
      expect([page.status, page.text.includes('href="/auth/login"')]).toEqual([400, true])
      expect(page.text).not.toContain('elsewhere')
      expect((await sendForm(host.browser(), '/auth/login', { email: 'a@b.test', password: 'x', return_to: bad })).status).toBe(400)
    }
  })

  test('who is signed in already goes on; with switch=1 the form names them, and signing in changes the person', async () => {
    const host = await start()
    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const browser = host.browser()
    await signInByPage(browser, { email: ana.email, password })

    const on = await browser.get('/auth/login').query({ return_to: '/orders' })
    expect([on.status, on.headers['location']]).toEqual([303, '/orders'])
    const form = await browser.get('/auth/login').query({ switch: '1' })
    expect([form.status, form.text.includes(`You are signed in as ${ana.email}.`)]).toEqual([200, true])
    await signInByPage(browser, { email: bob.email, password })
    expect((await browser.get('/auth/account')).text).toContain(bob.email)
  })

  test('a provider is a link that keeps the way back, and its refusal is told in words of ours', async () => {
    const host = await start()
    const page = await host.browser().get('/auth/login').query({ return_to: '/orders' })
    expect(page.text).toContain(
      '<a class="button second" href="/auth/oauth/corp/login?return_to=%2Forders" referrerpolicy="no-referrer">Continue with Corp</a>',
    )
    const denied = await host.browser().get('/auth/login').query({ error: 'OAUTH_PROVIDER_DENIED' })
    expect(problemOf(denied.text)).toContain('cancelled')
    const madeUp = await host.browser().get('/auth/login').query({ error: '<b>call 555-1234' })
    expect([problemOf(madeUp.text), madeUp.text.includes('555')]).toEqual(['The sign-in did not work this time. Please try again.', false])
  })

  test.each([
    ['temporarily_unavailable', 'The provider has a problem at the moment.'],
    ['server_error', 'The provider has a problem at the moment.'],
    ['access_denied', 'The sign-in was cancelled'],
  ])('a provider that answers %s is told apart on the sign-in page', async (error, sentence) => {
    const host = await start()
    const browser = host.browser()
    const begun = await browser.get('/auth/oauth/corp/login')
    const { callbackQuery } = host.provider.deny(String(begun.headers['location']), error)
    const back = await browser.get('/auth/oauth/corp/callback').query(callbackQuery)
    const page = await browser.get(String(back.headers['location']))
    expect(problemOf(page.text)).toContain(sentence)
  })

  test('?lang= is kept by every link, form and redirect, and the other language is one link away', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const browser = host.browser()
    const page = await browser.get('/auth/login').query({ lang: 'pt', return_to: '/x' })
    expect(page.text).toContain('<html lang="pt-BR" dir="ltr">')
    expect(page.text).toContain('action="/auth/login?lang=pt-BR"')
    expect(page.text).toContain('<a lang="en-US" hreflang="en-US" href="?return_to=%2Fx&amp;lang=en-US"')
    const signed = await sendForm(browser, '/auth/login?lang=pt-BR', { email, password })
    expect(signed.headers['location']).toBe('/auth/account?lang=pt-BR')
    const out = await sendForm(browser, '/auth/logout?lang=pt-BR')
    expect(out.headers['location']).toBe('/auth/signed-out?lang=pt-BR')
    expect((await browser.get('/auth/login').set('Accept-Language', 'pt-PT, en')).text).toContain('lang="pt-BR"')
  })

  test('without "keep me signed in" the cookies end with the browser', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const short = await sendForm(host.browser(), '/auth/login', { email, password })
    expect(setCookieOf(short, 'refresh_token')?.attributes).not.toMatch(/max-age|expires/i)
    const long = await signInByPage(host.browser(), { email, password })
    expect(setCookieOf(long, 'refresh_token')?.attributes).toMatch(/max-age/i)
  })

  test('its headers win over those that a middleware of the host has set before', async () => {
    const host = await start({
      settings: { trustedOrigins: ['https://shop.example'] },
      before: [
        (_req, res, next) => {
          res.setHeader('Content-Security-Policy', "default-src 'self' 'unsafe-inline'")
          res.setHeader('Referrer-Policy', 'no-referrer')
          next()
        },
      ],
    })
    const { headers, text } = await host.browser().get('/auth/login')
    expect(headers['referrer-policy']).toBe('same-origin')
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self' https://shop.example; frame-ancestors 'none'; base-uri 'none'",
    )
    expect(text).not.toMatch(/<style|\son\w+=|style="/)
  })

  test('its files may be kept for a year, and their names say what is in them', async () => {
    const host = await start()
    const { text } = await host.browser().get('/auth/login')
    const files = [...text.matchAll(/(?:href|src)="(\/auth\/assets\/pages-[\da-f]{16}\.(?:css|js))"/g)].map(([, file = '']) => file)
    expect(files).toHaveLength(2)
    for (const file of files) {
      const { status, headers } = await host.browser().get(file)
      expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
    }
    expect((await host.browser().get('/auth/assets/pages-0000000000000000.css')).status).toBe(404)
  })
})

describe('the challenge of a second factor', () => {
  test('it is a page of its own, and leads on where the login was to', async () => {
    const host = await start({ settings: mfaSettings })
    const person = await enrolled(host)
    const browser = host.browser()

    const first = await sendForm(browser, '/auth/login', { email: person.email, password, return_to: '/orders' })
    expect([first.status, first.headers['location']]).toEqual([303, '/auth/mfa'])
    expect(setCookieOf(first, 'mfa_challenge')?.attributes).toMatch(/Max-Age=300; Path=\/auth;.*HttpOnly; SameSite=Lax/)
    expect(setCookieOf(first, 'access_token')).toBeNull()

    const page = await browser.get('/auth/mfa')
    expect([page.status, page.text.includes('autocomplete="one-time-code"')]).toEqual([200, true])
    const wrong = await sendForm(browser, '/auth/mfa', { code: '000000' })
    expect([wrong.status, problemOf(wrong.text)?.slice(0, 25), wrong.text.includes('000000')]).toEqual([
      400,
      'This code is not correct,',
      false,
    ])
    const right = await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })
    expect([right.status, right.headers['location']]).toEqual([303, '/orders'])
    expect((await browser.get('/auth/account')).text).toContain(person.email)
    expect((await browser.get('/auth/mfa')).headers['location']).toBe('/auth/login')
  })

  test('without a login that waits for it, and where that took too long, it leads to the sign-in page', async () => {
    const host = await start({ settings: mfaSettings })
    const person = await enrolled(host)
    const browser = host.browser()
    expect((await browser.get('/auth/mfa')).headers['location']).toBe('/auth/login')
    await signInByPage(browser, { email: person.email, password })
    host.clock.advance(301)
    expect((await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })).headers['location']).toBe('/auth/login')
  })
})

describe('the account area', () => {
  test('an access cookie alone, and a Bearer header, open no page', async () => {
    const host = await start()
    const { email, token } = await signedIn(host)
    const login = await signInByPage(host.browser(), { email, password })
    const access = setCookieOf(login, 'access_token')?.value
    expect((await host.browser().get('/auth/account').set('Cookie', `access_token=${access}`)).status).toBe(302)
    expect((await host.browser().get('/auth/account').set('Authorization', `Bearer ${token}`)).status).toBe(302)
  })

  test('one person’s access cookie beside another’s refresh cookie is the other’s page', async () => {
    const host = await start()
    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const access = setCookieOf(await signInByPage(host.browser(), { email: ana.email, password }), 'access_token')?.value
    const refresh = setCookieOf(await signInByPage(host.browser(), { email: bob.email, password }), 'refresh_token')?.value
    const page = await host.browser().get('/auth/account').set('Cookie', `access_token=${access}; refresh_token=${refresh}`)
    expect([page.text.includes(bob.email), page.text.includes(ana.email)]).toEqual([true, false])
  })
})

describe('GET /logout', () => {
  test('is a page with one button, and ends nothing', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    const page = await browser.get('/auth/logout').query({ return_to: '/bye' })
    expect([page.status, page.text.match(/<button/g)?.length, page.text.includes(email)]).toEqual([200, 1, true])
    expect((await browser.get('/auth/account')).status).toBe(200)
    const out = await sendForm(browser, '/auth/logout', { return_to: '/bye' })
    expect(out.headers['location']).toBe('/bye')
  })
})

test('without pagesEnabled there is no page, and GET of a route is 405 as before', async () => {
  const host = await start({ settings: { pagesEnabled: false } })
  expect((await host.browser().get('/auth/login')).status).toBe(405)
  expect((await host.browser().get('/auth/account')).status).toBe(404)
  expect((await host.browser().get('/auth/signed-out')).status).toBe(404)
})

test('a notice is shown once', async () => {
  const host = await start({ settings: mfaSettings })
  const person = await enrolled(host)
  const browser = host.browser()
  await sendForm(browser, '/auth/login', { email: person.email, password })
  await host.knex('auth_users').where({ id: person.userId }).update({ is_active: false })
  await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })
  expect(noticeOf((await browser.get('/auth/login')).text)).toBe('This took too long. Please sign in again.')
  expect(noticeOf((await browser.get('/auth/login')).text)).toBeNull()
})
