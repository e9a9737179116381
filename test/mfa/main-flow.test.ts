import { describe, expect, test } from 'vitest'
import { as, password } from '../account/people'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { authenticator } from './authenticator'
import { mfaSettings } from './people'

for (const database of await databases()) {
  describe(`a second factor, on ${database.name}`, () => {
    const start = appPerTest(database)

    test('enrolled by a code, asked for at login, given by a code or a recovery code, taken off again', async () => {
      const mounted = await start({ settings: { ...mfaSettings, autoActivate: true } })
      const browser = mounted.browser()
      const signup = await browser.post('/auth/signup').send({ email: 'ana@example.test', password })
      const person = { accessToken: signup.body.access_token }

      const enrolled = await browser.post('/auth/mfa/enroll').set(as(person)).send({})
      expect(enrolled.body).toEqual({
        secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
        provisioning_uri: expect.stringMatching(/^otpauth:\/\/totp\/Example:ana%40example\.test\?secret=[A-Z2-7]{32}&issuer=Example&/),
        qr_svg: expect.stringMatching(/^<svg /),
        recovery_codes: expect.any(Array),
      })
      const app = authenticator(enrolled.body.secret, mounted.clock)
      const confirmed = await browser.post('/auth/mfa/confirm').set(as(person)).send({ code: app.code() })
      expect([confirmed.status, confirmed.body.mfa_required]).toEqual([200, false])

      const login = () => browser.post('/auth/login').send({ email: 'ana@example.test', password })
      const challenge = await login()
      expect(challenge.body).toMatchObject({ access_token: null, refresh_token: null, mfa_required: true, mfa_token: expect.any(String) })
      expect((await browser.post('/auth/mfa/verify').send({ mfa_token: challenge.body.mfa_token, code: app.code() })).status).toBe(401) // spent by confirm
      const verified = await browser.post('/auth/mfa/verify').send({ mfa_token: challenge.body.mfa_token, code: app.nextCode() })
      expect(verified.status).toBe(200)

      mounted.clock.advance(86_400) // a younger factor opens no fresh session
      const second = await login()
      const [recovery] = enrolled.body.recovery_codes
      const recovered = await browser.post('/auth/mfa/verify').send({ mfa_token: second.body.mfa_token, code: recovery })
      expect(recovered.status).toBe(200)

      const disable = { password, code: app.nextCode() }
      expect(
        (
          await browser
            .post('/auth/mfa/disable')
            .set(as({ accessToken: recovered.body.access_token }))
            .send(disable)
        ).status,
      ).toBe(204)
      expect((await login()).body.mfa_required).toBe(false)
    })
  })
}
