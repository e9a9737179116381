import { describe, expect, test } from 'vitest'
import { activePerson, as, password } from '../account/people'
import type { Browser, Mounted } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { type Mailbox, mailbox, tokenOf } from '../support/mailbox'

const paths = { activation: '/auth/activate', password_reset: '/auth/password-reset', email_verification: '/auth/email-verify' }

async function withPages(start: ReturnType<typeof appPerTest>, settings: object = {}, options: object = {}) {
  const mails = mailbox()
  const mounted = await start({ settings: { backendLinks: true, ...settings }, options: { mailer: mails, ...options } })
  return { mounted, mails, browser: mounted.browser() }
}

/** Where the mailed link leads, on this app. */
const pathOf = (url: string | null) => new URL(String(url)).pathname

async function signedUp(browser: Browser, mails: Mailbox, email = 'ana@example.test') {
  await browser.post('/auth/signup').send({ email, password })
  return pathOf((await mails.next({ kind: 'activation', to: email })).url)
}

async function resetLink(mounted: Mounted, mails: Mailbox, email = 'ana@example.test') {
  await mounted.browser().post('/auth/password-reset/request').send({ email })
  return pathOf((await mails.next({ kind: 'password_reset' })).url)
}

const form = (browser: Browser, path: string, fields: object = {}) => browser.post(path).type('form').send(fields)

for (const database of await databases()) {
  describe(`the pages behind mailed links, on ${database.name}`, () => {
    const start = appPerTest(database)

    test('R-086 GET and HEAD of every link spend nothing, however often; the form then redeems it', async () => {
      const { mounted, mails, browser } = await withPages(start)
      const scan = async (path: string) => {
        for (let count = 0; count < 3; count++) {
          expect((await mounted.browser().get(path)).status).toBe(200)
          expect((await mounted.browser().head(path)).status).toBe(200)
        }
        const rows = await mounted.knex('auth_user_tokens').whereNull('used_at')
        expect(rows).toHaveLength(1)
      }

      const activation = await signedUp(browser, mails)
      expect(activation).toMatch(/^\/auth\/activate\/[\w-]{43}$/)
      await scan(activation)
      expect((await mounted.knex('auth_users').first()).is_active).toBeFalsy()
      expect((await form(browser, activation)).status).toBe(200)
      expect((await mounted.knex('auth_users').first()).is_active).toBeTruthy()

      const reset = await resetLink(mounted, mails)
      await scan(reset)
      const passwords = { new_password: 'a harbour in the spring', confirm_password: 'a harbour in the spring' }
      expect((await form(browser, reset, passwords)).status).toBe(200)
      const login = await browser.post('/auth/login').send({ email: 'ana@example.test', password: 'a harbour in the spring' })
      expect(login.status).toBe(200)

      const person = { accessToken: login.body.access_token }
      await browser.post('/auth/email-verify/request').set(as(person))
      const verification = pathOf((await mails.next({ kind: 'email_verification' })).url)
      await scan(verification)
      expect((await form(browser, verification)).status).toBe(200)

      const change = { new_email: 'ana@new.example.test', current_password: 'a harbour in the spring' }
      await browser.post('/auth/email-change/request').set(as(person)).send(change)
      const changing = pathOf((await mails.next({ kind: 'email_change' })).url)
      await scan(changing)
      expect((await form(browser, changing)).status).toBe(400)
      expect((await form(browser, changing, { password: 'a harbour in the spring' })).status).toBe(200)
      expect((await mounted.knex('auth_users').first()).email).toBe('ana@new.example.test')
    })

    test('they never put tokens in the body and never set cookies, and leave no session that nobody holds', async () => {
      const { mounted, mails, browser } = await withPages(start, { tokenDelivery: 'cookie' })
      const activation = await signedUp(browser, mails)
      const pages = [await browser.get(activation), await form(browser, activation)]
      const reset = await resetLink(mounted, mails)
      const passwords = { new_password: 'a harbour in the spring', confirm_password: 'a harbour in the spring' }
      pages.push(await browser.get(reset), await form(browser, reset, passwords))

      for (const page of pages) {
        expect([page.status, page.headers['set-cookie']]).toEqual([200, undefined])
        expect(page.text).not.toContain(tokenOf({ url: `https://x${activation}` }))
        expect(page.text).not.toContain(tokenOf({ url: `https://x${reset}` }))
        expect(page.text.replaceAll(/nonce="[^"]*"/g, '')).not.toMatch(/eyJ|token/)
      }
      expect(await mounted.knex('auth_sessions')).toEqual([])
    })
  })
}

describe('the pages behind mailed links', () => {
  const start = appPerTest()

  test('a browser that signed nobody up is asked for the password of the sign-up; the Enter key does not drop it', async () => {
    const { mounted, mails, browser } = await withPages(start, { activationBinding: 'strict' })
    const activation = await signedUp(browser, mails)
    const { text } = await mounted.browser().get(activation)
    expect(text).toContain('The password that you chose when you signed up.')
    expect(text).toContain('aria-describedby="password-hint"')
    // Enter presses the first button of a form.
    expect([...text.matchAll(/<button type="submit"([^>]*)>/g)].map(([, attributes]) => attributes)).toEqual([
      '',
      ' name="forgot" value="1" class="second" formnovalidate',
    ])
    const refused = await form(mounted.browser(), activation, { password: 'not this one' })
    expect([refused.status, refused.text.includes('aria-describedby="password-hint password-fault" aria-invalid="true"')]).toEqual([
      400,
      true,
    ])
    expect((await form(mounted.browser(), activation, { password })).status).toBe(200)
  })

  test('without a password to ask for, the page of a change of address leads to the browser that asked; if the host asked, to the sign-in (25.3.1)', async () => {
    const { mounted, mails, browser } = await withPages(start, { loginUrl: 'https://app.example/login', singleActiveToken: false })
    const person = await activePerson(mounted, mails, 'ana@example.test')
    await browser.post('/auth/email-change/request').set(as(person)).send({ new_email: 'ana@new.example.test' })
    const asked = pathOf((await mails.next({ kind: 'email_change' })).url)
    await mounted.auth.service.requestEmailChange({ userId: person.id, newEmail: 'ana@host.example.test' })
    const changing = pathOf((await mails.next({ kind: 'email_change', to: 'ana@host.example.test' })).url)
    await mounted.knex('auth_users').update({ hashed_password: `!${'x'.repeat(43)}` })
    const { text: elsewhere } = await mounted.browser().get(asked)
    expect(elsewhere).toContain('Open this link in the browser or app in which you asked for the change')
    expect([elsewhere.includes('app.example/login'), elsewhere.includes('type="password"')]).toEqual([false, false])
    const { text } = await mounted.browser().get(changing)
    expect(text).toContain('First sign in to your account in this browser')
    expect(text).toContain('<a class="button second" href="https://app.example/login" referrerpolicy="no-referrer">')
    expect(text).not.toContain('type="password"')
  })

  test('a bad, spent, expired or foreign link is a page with status 400, and so is its form', async () => {
    const { mounted, mails, browser } = await withPages(start)
    const activation = await signedUp(browser, mails)
    const token = tokenOf({ url: `https://x${activation}` })
    for (const path of [
      `/auth/password-reset/${token}`,
      `/auth/email-verify/${token}`,
      '/auth/activate/no-token',
      `/auth/activate/${'x'.repeat(43)}`,
    ]) {
      for (const page of [await browser.get(path), await form(browser, path, { new_password: 'x', confirm_password: 'x' })]) {
        expect([page.status, page.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
        expect(page.text).toContain('This link is no longer valid')
      }
    }
    expect((await form(browser, activation)).status).toBe(200)
    expect([(await browser.get(activation)).status, (await form(browser, activation)).status]).toEqual([400, 400])

    const reset = await resetLink(mounted, mails)
    mounted.clock.advance(3_600)
    expect((await browser.get(reset)).status).toBe(400)
  })

  test('when refusesEmailLink matches, these pages render the error page with status 403, and the reset form is not shown', async () => {
    const refusing = new Set<string>()
    const { mounted, mails, browser } = await withPages(
      start,
      {},
      { refusesEmailLink: ({ email }: { email: string }) => refusing.has(email) },
    )
    await activePerson(mounted, mails, 'ana@example.test')
    const reset = await resetLink(mounted, mails)
    const activation = await signedUp(browser, mails, 'bob@example.test')
    refusing.add('ana@example.test').add('bob@example.test')

    for (const path of [reset, activation]) {
      const page = await browser.get(path)
      expect([page.status, page.text.includes('<form')]).toEqual([403, false])
      expect((await browser.get(path)).status).toBe(403)
    }
    const passwords = { new_password: 'a harbour in the spring', confirm_password: 'a harbour in the spring' }
    expect((await form(browser, reset, passwords)).status).toBe(403)
    expect((await form(browser, reset, passwords)).status).toBe(400) // spent by the refusal
    expect((await browser.post('/auth/login').send({ email: 'ana@example.test', password })).status).toBe(200)
  })

  test.each([
    [{ new_password: 'a harbour in the spring', confirm_password: 'another one' }, 'not the same'],
    [{ new_password: 'short', confirm_password: 'short' }, 'at least 12 characters'],
    [{ new_password: '', confirm_password: '' }, 'at least 12 characters'],
    [{ new_password: 'passwordpassword', confirm_password: 'passwordpassword' }, 'easy to guess'],
    [{}, 'cannot be used'],
    [{ new_password: ['a', 'b'], confirm_password: 'a' }, 'cannot be used'],
  ])('a refused form is shown again with status 400, its reason, and the link alive: %j', async (fields, reason) => {
    const { mounted, mails, browser } = await withPages(start)
    await activePerson(mounted, mails, 'ana@example.test')
    const reset = await resetLink(mounted, mails)

    const page = await form(browser, reset, fields)
    expect(page.status).toBe(400)
    expect(page.text).toMatch(/<form method="post">.*role="alert"/s)
    expect(page.text).toContain(reason)
    expect(page.text).not.toContain('value=')
    const passwords = { new_password: 'a harbour in the spring', confirm_password: 'a harbour in the spring' }
    expect((await form(browser, reset, passwords)).status).toBe(200)
  })

  test('R-088 a page loads nothing, runs nothing, is framed nowhere, and tells nobody where it is', async () => {
    const { mails, browser } = await withPages(start)
    const page = await browser.get(await signedUp(browser, mails))

    const policy = String(page.headers['content-security-policy'])
    const [, nonce] =
      /^default-src 'none'; style-src 'nonce-([\w+/=]{24})'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/.exec(policy) ??
      []
    expect(page.text).toContain(`<style nonce="${nonce}">`)
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(page.text).not.toMatch(/<script|<img|<link|https?:|\bsrc=|\burl\(/)
    expect(page.text).toMatch(/^<!doctype html>\n<html lang="en-US" dir="ltr">/)
  })

  test('they speak the reader’s language', async () => {
    const { mounted, mails, browser } = await withPages(start, { loginUrl: '/entrar?a=1&b=2' })
    await activePerson(mounted, mails, 'ana@example.test')
    const reset = await resetLink(mounted, mails)

    const page = await browser.get(`${reset}?lang=pt-BR`)
    expect(page.text).toContain('<html lang="pt-BR" dir="ltr">')
    expect(page.text).toContain('Escolha uma nova senha')
    const accepted = await browser
      .post(reset)
      .set('Accept-Language', 'pt-BR')
      .type('form')
      .send({ new_password: 'curta', confirm_password: 'curta' })
    expect(accepted.text).toContain('Escolha uma senha com pelo menos 12 caracteres.')
    const done = await form(browser, reset, { new_password: 'a harbour in the spring', confirm_password: 'a harbour in the spring' })
    expect(done.text).toContain('href="/entrar?a=1&amp;b=2"')
  })

  test('JSON goes on as before: POST /activate/:token answers JSON, and GET on request and confirm is 405', async () => {
    const { mails, browser } = await withPages(start)
    const activation = await signedUp(browser, mails)

    expect((await browser.post(activation).set('Content-Type', 'text/plain').send('x')).status).toBe(415)
    const activated = await browser.post(activation).send({})
    expect([activated.status, typeof activated.body.access_token]).toEqual([200, 'string'])
    for (const path of [
      '/auth/password-reset/confirm',
      '/auth/password-reset/request',
      '/auth/email-verify/confirm',
      '/auth/email-change/request',
    ]) {
      expect([(await browser.get(path)).status, (await browser.get(path)).headers['allow']]).toEqual([405, 'POST'])
    }
    const json = await browser.post(`/auth/password-reset/${'x'.repeat(43)}`).send({})
    expect([json.status, json.body.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })

  test('a browser’s own form is taken: it says Origin null under no-referrer, and there is nothing to protect', async () => {
    const { mails, browser } = await withPages(start, { tokenDelivery: 'cookie' })
    const activation = await signedUp(browser, mails)

    const page = await browser.post(activation).set({ Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }).type('form').send('')
    expect([page.status, page.headers['set-cookie']]).toEqual([200, undefined])
  })

  test('with pages off there are none, and the form type is refused', async () => {
    const mounted = await start()
    for (const path of Object.values(paths)) {
      const page = await mounted.browser().get(`${path}/${'x'.repeat(43)}`)
      expect([404, 405]).toContain(page.status)
    }
    expect((await form(mounted.browser(), `/auth/activate/${'x'.repeat(43)}`)).status).toBe(415)
  })

  test('a host’s own page is shown instead, and ours when it fails', async () => {
    const templates = {
      pages: {
        activate: ({ locale, styleNonce }: { locale: string; styleNonce: string }) =>
          `<p lang="${locale}" data-nonce="${styleNonce}">mine</p>`,
        activated: () => {
          throw new Error('canary')
        },
      },
    }
    const { mounted, mails, browser } = await withPages(start, {}, { templates })
    const activation = await signedUp(browser, mails)

    const page = await browser.get(activation)
    expect(page.text).toMatch(/^<p lang="en-US" data-nonce="[\w+/=]{24}">mine<\/p>$/)
    expect((await form(browser, activation)).text).toContain('Your account is active')
    expect(mounted.logs.text()).toContain('a page template failed')
    expect(mounted.logs.text()).not.toContain('canary')
  })

  test('too many requests and a broken database are pages too', async () => {
    const { mails, browser } = await withPages(start, {}, { throttle: { routes: { attempts: 1, windowSeconds: 60 } } })
    const activation = await signedUp(browser, mails)
    expect((await browser.get(activation)).status).toBe(200)

    const page = await browser.get(activation)
    expect([page.status, page.headers['content-type'], page.headers['retry-after']]).toEqual([429, 'text/html; charset=utf-8', '60'])
    expect(page.text).toContain('Please wait a moment')
  })
})
