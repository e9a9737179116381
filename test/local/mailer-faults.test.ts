import { expect, test, vi } from 'vitest'
import type { AuthMail, Mailer } from '../../src'
import { appPerTest } from '../support/app-per-test'
import { linkTemplates, mailbox, tokenOf } from '../support/mailbox'

/** Takes up all the room there is for work after answers. */
let fillUp: () => void

vi.mock('../../src/core/background', async (original) => {
  const { createBackground } = await original<typeof import('../../src/core/background')>()
  return {
    createBackground(...given: Parameters<typeof createBackground>) {
      const background = createBackground(...given)
      fillUp = () => {
        while (background.runIfRoom('hangs', () => new Promise(() => {})));
      }
      return background
    },
  }
})

const start = appPerTest()
const password = 'a quiet harbour in winter'
const pending = 'pending@example.test'
const active = 'active@example.test'
const nobody = 'nobody@example.test'

const works: Mailer['send'] = async () => {}
const faults: [string, Mailer['send']][] = [
  ['hangs', () => new Promise(() => {})],
  ['rejects', () => Promise.reject(new Error('refused'))],
  [
    'throws before its first await',
    () => {
      throw new Error('refused')
    },
  ],
  ['takes a minute', () => new Promise((resolve) => void setTimeout(resolve, 60_000).unref())],
  ['answers nothing', () => undefined as never],
]

/** Every route that mails, for every kind of address; what differs by chance is left out. */
async function answers(send: Mailer['send']): Promise<{ answers: unknown[]; asked: () => number }> {
  const good = mailbox()
  let current: Mailer['send'] = (mail) => good.send(mail)
  const asked = new Set<AuthMail>() // a mail that is tried again is the same one
  const mailer: Mailer = { send: (mail) => current(mail) }
  const mounted = await start({
    settings: { ...linkTemplates, mailConcurrency: 20 },
    options: { mailer, throttle: { links: false, mail: false } },
  })
  const browser = mounted.browser()
  for (const email of [pending, active]) await browser.post('/auth/signup').send({ email, password })
  await browser.post('/auth/activate').send({ token: tokenOf(await good.next({ to: active })) })
  await browser.post('/auth/password-reset/request').send({ email: active })
  const token = tokenOf(await good.next({ kind: 'password_reset' }))
  current = (mail) => {
    asked.add(mail)
    return send(mail)
  }

  const seen: unknown[] = []
  async function post(path: string, body: object, accessToken?: string) {
    const response = await browser
      .post(`/auth${path}`)
      .set(accessToken ? { Authorization: `Bearer ${accessToken}` } : {})
      .send(body)
    const { user_id, access_token, refresh_token, signup_token: _random, ...rest } = response.body
    seen.push([
      path,
      body,
      response.status,
      rest,
      [user_id, access_token, refresh_token].map((value) => (value === null ? null : typeof value)),
    ])
    return response
  }
  const reset = await post('/password-reset/confirm', { token, new_password: 'another quiet harbour' })
  const change = { current_password: 'another quiet harbour', new_password: password }
  await post('/password-change', change, reset.body.access_token)
  await post('/signup', { email: 'new@example.test', password })
  await post('/signup', { email: active, password })
  for (const email of [pending, active, nobody]) {
    await post('/activation/request', { email })
    await post('/password-reset/request', { email })
  }
  return { answers: JSON.parse(JSON.stringify(seen).replaceAll(token, 'token')), asked: () => asked.size }
}

test.each(faults)('R-084, F11: a mailer that %s changes neither status nor body of any route', async (_what, send) => {
  const [usual, faulty] = [await answers(works), await answers(send)]
  expect(faulty.answers).toEqual(usual.answers)
  expect(faulty.answers.map((answer) => (answer as unknown[])[2])).toEqual([200, 204, 201, 201, 202, 202, 202, 202, 202, 202])
  // Two notices, new, taken, pending twice, active once.
  for (let waited = 0; faulty.asked() < 7 && waited < 400; waited++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(faulty.asked()).toBe(7)
})

test('where too much is under way already, a mail is left out with an event, and what it was about is done all the same', async () => {
  const mails = mailbox()
  const mounted = await start({
    settings: { ...linkTemplates, autoActivate: false },
    options: { mailer: mails, throttle: { links: false } },
  })
  const browser = mounted.browser()
  await browser.post('/auth/signup').send({ email: active, password })
  await browser.post('/auth/activate').send({ token: tokenOf(await mails.next()) })
  await browser.post('/auth/password-reset/request').send({ email: active })
  const token = tokenOf(await mails.next({ kind: 'password_reset' }))
  const failures: unknown[] = []
  mounted.auth.events.on('mail.failed', (payload) => failures.push(payload))

  fillUp()
  const full = await browser.post('/auth/password-reset/request').send({ email: nobody })
  expect([full.status, (await browser.post('/auth/password-reset/request').send({ email: active })).status]).toEqual([503, 503])
  const reset = await browser.post('/auth/password-reset/confirm').send({ token, new_password: 'another quiet harbour' })
  expect([reset.status, typeof reset.body.refresh_token]).toEqual([200, 'string'])
  const taken = await browser.post('/auth/signup').send({ email: active, password })
  const free = await browser.post('/auth/signup').send({ email: 'new@example.test', password })
  expect([taken.status, Object.keys(taken.body)]).toEqual([free.status, Object.keys(free.body)])
  await vi.waitFor(
    () =>
      expect(failures).toEqual([
        { kind: 'notice', userId: reset.body.user_id, reason: 'too_many' },
        { kind: 'activation', userId: free.body.user_id, reason: 'too_many' },
      ]),
    { timeout: 10_000 },
  )
})
