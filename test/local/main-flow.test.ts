import { describe, expect, test } from 'vitest'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { linkTemplates, mailbox, tokenOf } from '../support/mailbox'

const password = 'a quiet harbour in winter'

for (const database of await databases()) {
  describe(`an email and a password, on ${database.name}`, () => {
    const start = appPerTest(database)

    test('signup, activation by the mailed link, login, a forgotten password, and a change of it', async () => {
      const mails = mailbox()
      const mounted = await start({ settings: linkTemplates, options: { mailer: mails } })
      const browser = mounted.browser()

      const signup = await browser.post('/auth/signup').send({ email: 'Ana@Example.test', password, name: 'Ana' })
      expect([signup.status, signup.body]).toEqual([
        201,
        {
          user_id: expect.any(String),
          activation_required: true,
          activation_url: null,
          access_token: null,
          refresh_token: null,
          signup_token: expect.any(String),
        },
      ])
      expect((await browser.post('/auth/login').send({ email: 'ana@example.test', password })).status).toBe(401)

      const activation = await mails.next({ kind: 'activation', to: 'ana@example.test' })
      const activated = await browser.post(`/auth/activate/${tokenOf(activation)}`)
      expect([activated.status, activated.body.user_id]).toEqual([200, signup.body.user_id])

      const login = await browser.post('/auth/login').send({ email: 'ANA@example.test', password })
      expect([login.status, login.body.mfa_required]).toEqual([200, false])

      expect((await browser.post('/auth/password-reset/request').send({ email: 'ana@example.test' })).status).toBe(202)
      const reset = await mails.next({ kind: 'password_reset' })
      const confirmed = await browser
        .post('/auth/password-reset/confirm')
        .send({ token: tokenOf(reset), new_password: 'another quiet harbour' })
      expect(confirmed.status).toBe(200)
      expect((await browser.post('/auth/refresh').send({ refresh_token: login.body.refresh_token })).status).toBe(401)

      const change = await browser
        .post('/auth/password-change')
        .set('Authorization', `Bearer ${confirmed.body.access_token}`)
        .send({ current_password: 'another quiet harbour', new_password: 'yet another harbour' })
      expect(change.status).toBe(204)
      expect((await browser.post('/auth/login').send({ email: 'ana@example.test', password: 'yet another harbour' })).status).toBe(200)
    })
  })
}
