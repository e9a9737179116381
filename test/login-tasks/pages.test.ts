import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { OidcClient, task } from '../../src'
import { ValidationError } from '../../src/core/errors'
import { ask, loginTemplate } from '../email-login/people'
import { otherPassword, password } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { type Browser, setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { codeFor, everyTask, expired, onTasks, type Person, person, throughFactor } from './people'

const html = { Accept: 'text/html' }
const unescaped = (text: string) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'")

/** Sends the nth form of a page with its hidden fields, as a browser without script does. */
function submit(browser: Browser, page: supertest.Response, fields: Record<string, string> = {}, nth = 0): supertest.Test {
  const form = [...page.text.matchAll(/<form[^>]*action="([^"]+)"[^>]*>([\s\S]*?)<\/form>/g)][nth]
  const hidden = [...(form?.[2] ?? '').matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
  const own = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, unescaped(value)]))
  return browser
    .post(unescaped(form?.[1] ?? ''))
    .type('form')
    .set('Origin', 'https://app.example.test')
    .send({ ...own, ...fields })
}

const follow = (browser: Browser, response: supertest.Response) => browser.get(String(response.headers['location'])).set(html)

/** To the page of the first task, by the sign-in page. */
async function begin(browser: Browser, { email }: Person): Promise<supertest.Response> {
  const form = { email, password, return_to: '/after' }
  const sent = await browser.post('/auth/login').type('form').set('Origin', 'https://app.example.test').send(form)
  expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/tasks'])
  return follow(browser, sent)
}

const quiz = task({
  key: 'quiz',
  when: (user) => user.name === 'quizzed',
  complete: (_user, body) => {
    if (body['answer'] !== '42') throw new ValidationError({ details: { rule: 'wrong' } })
  },
  page: { title: 'One question', html: ({ email, error }) => `<p>${email}: ${error}</p><input name="answer">` },
})

describe.each(await databases())('the pages of the tasks of a login on $name', (database) => {
  const { start } = onTasks(database)
  const pages = { pagesEnabled: true } as const

  test.each(['cookie', 'both', 'session'] as const)(
    'delivery %s: all tasks by forms without a script, then back to where the login began',
    async (tokenDelivery) => {
      const host = await start({ settings: { ...pages, tokenDelivery }, options: { loginTasks: [...everyTask, quiz] } })
      const who = await person(host, { ...expired, isAdmin: true, name: 'quizzed' })
      const browser = host.browser()
      const device = await begin(browser, who)
      expect(device.text).toContain(who.email)
      expect(device.text).toContain('Not you?')
      const wrong = await submit(browser, device, { code: '1234' })
      expect([wrong.status, wrong.text.includes('id="code-fault"')]).toEqual([400, true])
      const resent = await submit(browser, device, {}, 1)
      expect(resent.headers['location']).toBe('/auth/tasks')
      await codeFor(host, who)
      const secondPage = await follow(browser, await submit(browser, await follow(browser, resent), { code: await codeFor(host, who) }))
      const mismatch = await submit(browser, secondPage, { new_password: otherPassword, confirm_password: 'another' })
      expect(mismatch.text).toContain('id="confirm_password-fault"')
      const same = await submit(browser, secondPage, { new_password: password, confirm_password: password })
      expect(same.text).toContain('differs from the present one')
      const factorPage = await follow(
        browser,
        await submit(browser, secondPage, { new_password: otherPassword, confirm_password: otherPassword }),
      )
      expect(await host.knex('auth_users').where({ id: who.userId }).first('totp_secret')).toEqual({ totp_secret: null })
      const enrolment = await submit(browser, factorPage)
      const secret = String(/class="key">([A-Z2-7 ]+)</.exec(enrolment.text)?.[1]).replaceAll(' ', '')
      const again = await submit(browser, enrolment, { code: '000000' })
      expect(again.text).toContain(enrolment.text.match(/class="key">[^<]+</)?.[0])
      const codes = await submit(browser, enrolment, { code: authenticator(secret, host.clock).code() })
      expect(codes.text).toContain('recovery-codes.txt')
      const question = await browser.get('/auth/tasks').set(html)
      expect(question.text).toContain(`<p>${who.email}: null</p><input name="answer">`)
      const refused = await submit(browser, question, { answer: '41' })
      expect([refused.status, refused.text.includes(': null<')]).toEqual([400, false])
      const done = await submit(browser, question, { answer: '42' })
      expect([done.status, done.headers['location']]).toEqual([303, '/after'])
      expect(setCookieOf(done, 'login_tasks')?.attributes).toContain('1970')
      expect((await browser.get('/auth/account').set(html)).text).toContain(who.email)
    },
  )

  test('the cookie of an attacker’s login in a victim’s browser: the page names the account, and a form of another account changes nothing', async () => {
    const host = await start({ settings: { ...pages, tokenDelivery: 'cookie' } })
    const [attacker, victim] = [await person(host, expired), await person(host, expired)]
    const browser = host.browser()
    const first = await begin(browser, victim)
    const planted = await begin(browser, attacker)
    expect(planted.text).toContain(attacker.email)
    expect(planted.text).not.toContain(victim.email)
    const sent = await submit(browser, first, { code: await codeFor(host, victim) })
    expect([sent.status, sent.text.includes('different account')]).toEqual([400, true])
    expect((await browser.post('/auth/tasks/device').send({ code: '12345678' })).status).toBe(422)
  })

  test('without our pages, a callback leads to the page of the first task, and its form back to the app', async () => {
    const host = await start({
      settings: { tokenDelivery: 'session', oauthSuccessRedirect: 'https://app.example.test/in' },
      options: { loginTasks: [task({ key: 'terms', when: () => true, complete() {} })] },
    })
    const who = await person(host)
    const profile = newPerson()
    await addIdentity(host.knex, who.userId, { subject: String(profile['sub']) })
    const browser = host.browser()
    const callback = await signIn(host, browser, { profile, headers: html })
    expect([callback.status, callback.headers['location']]).toEqual([302, '/auth/tasks'])
    const page = await follow(browser, callback)
    expect(page.text).toContain('Continue')
    expect(page.headers['content-security-policy']).toContain('https://app.example.test')
    const done = await submit(browser, page)
    expect([done.status, done.headers['location']]).toEqual([303, 'https://app.example.test/in'])
    const none = await browser.get('/auth/tasks').set(html)
    expect([none.status, none.text.includes('sign in again')]).toEqual([400, true])
  })

  test('a login that is over leads to the sign-in page, which says so', async () => {
    const host = await start({ settings: { ...pages, tokenDelivery: 'cookie' } })
    const who = await person(host, expired)
    const browser = host.browser()
    const page = await begin(browser, who)
    await host.auth.service.revokeSessions(who.userId)
    const sent = await submit(browser, page, { code: '12345678' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/login'])
    expect((await follow(browser, sent)).text).toContain('took too long')
  })

  test('*Not you?* ends the login in this browser and leads to the sign-in page; a link of another site does not', async () => {
    const host = await start({ settings: { ...pages, tokenDelivery: 'cookie' } })
    const who = await person(host, expired)
    const browser = host.browser()
    const page = await begin(browser, who)
    const away = unescaped(/<a href="([^"]+)">Not you\?</.exec(page.text)?.[1] ?? '')
    const foreign = await browser.get(away).set({ ...html, 'Sec-Fetch-Site': 'cross-site' })
    expect([foreign.status, foreign.text.includes(who.email)]).toEqual([200, true])
    const left = await browser.get(away).set(html)
    expect([left.status, left.headers['location']]).toEqual([303, '/auth/login?switch=1'])
    expect(setCookieOf(left, 'login_tasks')?.attributes).toContain('1970')
    expect((await browser.get('/auth/tasks').set(html)).text).not.toContain(who.email)
  })

  test('without our pages, *Not you?* is there too, and the page then says to sign in again', async () => {
    const host = await start({ settings: { tokenDelivery: 'session' } })
    const who = await person(host, expired)
    const browser = host.browser()
    await browser.post('/auth/login').send({ email: who.email, password })
    const page = await browser.get('/auth/tasks').set(html)
    const left = await browser.get(unescaped(/<a href="([^"]+)">Not you\?</.exec(page.text)?.[1] ?? '')).set(html)
    expect([left.status, left.text.includes('sign in again'), left.text.includes(who.email)]).toEqual([400, true, false])
    expect(setCookieOf(left, 'login_tasks')?.attributes).toContain('1970')
  })

  test('fields of the host that are no text make no page, and the log says which', async () => {
    const page = { title: 'Terms', html: (async () => '<input name="accept">') as never }
    const host = await start({
      settings: { ...pages, tokenDelivery: 'cookie' },
      options: { loginTasks: [task({ key: 'terms', when: () => true, complete() {}, page })] },
    })
    const answer = await begin(host.browser(), await person(host))
    expect([answer.status, answer.text.includes('[object')]).toEqual([500, false])
    expect(host.logs.text()).toContain('The function html of the task page \\"Terms\\" must return a string')
  })

  test('browsers keep the cookie, however long the names of the tasks and the address to return to', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => letter.repeat(40))
    const many = keys.map((key) => task({ key, when: () => true, complete() {} }))
    const host = await start({
      settings: { ...pages, tokenDelivery: 'cookie', emailLogin: 'link', ...loginTemplate },
      options: { loginTasks: [...everyTask, ...many] },
    })
    const who = await person(host, { ...expired, isAdmin: true, name: 'asked' })
    const returnTo = `/${'x'.repeat(1_023)}`
    const size = (answer: supertest.Response) => `__Host-login_tasks=${setCookieOf(answer, 'login_tasks')?.value}`.length
    const sent = { email: who.email, password, return_to: returnTo }
    const byPage = await host.browser().post('/auth/login').type('form').set('Origin', 'https://app.example.test').send(sent)
    const { browser, token } = await ask(host, who.email, { body: { return_to: returnTo } })
    const byMail = await browser.post('/auth/email-login/confirm').send({ token })
    const again = await throughFactor(host, byMail.body.task_token)
    const next = await browser.post('/auth/tasks/terms-of-use').send({ task_token: again.body.task_token, accept: true })
    expect(next.body.tasks_required).toEqual(keys)
    for (const answer of [byPage, byMail, again, next]) {
      expect(size(answer)).toBeGreaterThan(1_000)
      expect(size(answer)).toBeLessThanOrEqual(4_096)
    }
    let last = next
    for (const key of keys) last = await browser.post(`/auth/tasks/${key}`).send({ task_token: last.body.task_token })
    expect([last.status, last.body.return_to]).toEqual([200, returnTo])
  })

  test('browsers keep the cookie of a login by the provider with the longest key and sid, with the longest keys of tasks', async () => {
    const [key, corp] = ['p'.repeat(50), (provider: FakeProvider) => new OidcClient(provider.oidcOptions())]
    const letters = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => letter.repeat(40))
    const many = [...letters, 'g'.repeat(38)].map((key) => task({ key, when: () => true, complete() {} }))
    const host = await start({
      settings: { tokenDelivery: 'cookie' },
      providers: { [key]: corp },
      options: { loginTasks: [...everyTask.filter((one) => one.kind !== 'host'), ...many] },
    })
    const who = await person(host, { isAdmin: true })
    const profile = newPerson({ sid: 's'.repeat(255) })
    await addIdentity(host.knex, who.userId, { provider: key, subject: String(profile['sub']) })
    const browser = host.browser()
    const answer = await signIn(host, browser, { key, profile, query: { return_to: `/${'x'.repeat(1_023)}` }, headers: html })
    const page = await follow(browser, answer)
    expect([page.status, page.text.includes(who.email)]).toEqual([200, true])
    const size = `__Host-login_tasks=${setCookieOf(answer, 'login_tasks')?.value}`.length
    expect(size).toBeGreaterThan(3_700)
    expect(size).toBeLessThanOrEqual(4_096)
    const quotes = await browser.get(`/auth/oauth/${key}/login`).query({ return_to: `/?${'"'.repeat(600)}` })
    expect(quotes.status).toBe(422)
  })

  test('there is no page in delivery bearer', async () => {
    const host = await start()
    expect((await host.browser().get('/auth/tasks')).status).toBe(404)
  })
})
