import { describe, expect, test } from 'vitest'
import { addIdentity } from '../social/accounts-at-hand'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { linkTemplates, mailbox, tokenOf } from '../support/mailbox'
import { activePerson, as, password } from './people'

for (const database of await databases()) {
  describe(`proving the account's own address, on ${database.name}`, () => {
    const start = appPerTest(database)

    async function unproven() {
      const mails = mailbox()
      const mounted = await start({ settings: { ...linkTemplates, autoActivate: true }, options: { mailer: mails } })
      const browser = mounted.browser()
      const { body } = await browser.post('/auth/signup').send({ email: 'ana@example.test', password })
      const row = () => mounted.knex('auth_users').where({ id: body.user_id }).first()
      return { mounted, mails, browser, person: { id: body.user_id, accessToken: body.access_token }, row }
    }

    test('the link goes to the address, and redeemed with the password, proves it; no session is needed, and none is given', async () => {
      const { mounted, mails, browser, person, row } = await unproven()
      const heard: unknown[] = []
      mounted.auth.events.on('email.verified', (payload) => heard.push(payload))

      const request = await browser.post('/auth/email-verify/request').set(as(person))
      expect([request.status, request.body]).toEqual([202, { message: expect.any(String), verify_url: null }])
      expect((await row()).email_verified_at).toBeNull()
      const mail = await mails.next({ kind: 'email_verification', to: 'ana@example.test' })

      const confirm = await mounted
        .browser()
        .post('/auth/email-verify/confirm')
        .send({ token: tokenOf(mail), password })
      expect([confirm.status, Object.keys(confirm.body)]).toEqual([200, ['message']])
      expect(confirm.headers['set-cookie']).toBeUndefined()
      expect((await row()).email_verified_at).not.toBeNull()
      expect(heard).toEqual([{ userId: person.id }])

      const again = await browser.post('/auth/email-verify/confirm').send({ token: tokenOf(mail) })
      expect([again.status, again.body.code]).toEqual([401, 'INVALID_TOKEN'])
    })

    test('an identity that a stranger linked before the first proof is gone, and observers hear of it', async () => {
      const { mounted, mails, browser, person } = await unproven()
      await addIdentity(mounted.knex, person.id, { subject: 'the-stranger', email: 'stranger@example.test', emailVerified: true })
      const heard: unknown[] = []
      mounted.auth.events.on('identity.unlinked', (payload) => heard.push(payload))

      await browser.post('/auth/email-verify/request').set(as(person))
      const mail = await mails.next({ kind: 'email_verification' })
      await browser.post('/auth/email-verify/confirm').send({ token: tokenOf(mail) })

      expect(await mounted.knex('auth_identities').where({ user_id: person.id })).toEqual([])
      expect(heard).toEqual([{ userId: person.id, provider: 'corp' }])
      expect((await signIn(mounted, mounted.browser(), { profile: { sub: 'the-stranger' } })).body.user_id).not.toBe(person.id)
    })

    test('a link is bound to its address: after a change of address, or a deactivation, it proves nothing', async () => {
      const { mounted, mails, browser, person, row } = await unproven()
      await browser.post('/auth/email-verify/request').set(as(person))
      const token = tokenOf(await mails.next({ kind: 'email_verification' }))

      await mounted.knex('auth_users').where({ id: person.id }).update({ email: 'other@example.test' })
      expect((await browser.post('/auth/email-verify/confirm').send({ token })).status).toBe(401)
      await mounted.knex('auth_users').where({ id: person.id }).update({ email: 'ana@example.test', is_active: false })
      expect((await browser.post('/auth/email-verify/confirm').send({ token })).status).toBe(401)
      expect((await row()).email_verified_at).toBeNull()

      await mounted.knex('auth_users').where({ id: person.id }).update({ is_active: true })
      expect((await browser.post('/auth/email-verify/confirm').send({ token })).status).toBe(200)
    })
  })
}

describe('asking for the link', () => {
  const start = appPerTest()

  test('needs a session of an active account', async () => {
    const mails = mailbox()
    const mounted = await start({ settings: linkTemplates, options: { mailer: mails } })
    const person = await activePerson(mounted, mails, 'ana@example.test')
    const ask = () => mounted.browser().post('/auth/email-verify/request').set(as(person))

    expect((await mounted.browser().post('/auth/email-verify/request')).status).toBe(401)
    await mounted.auth.service.deactivate(person.id)
    expect([(await ask()).status, (await ask()).body.code]).toEqual([403, 'ACCOUNT_INACTIVE'])
  })

  test('is budgeted: five per 900 s for one address, and a new link kills the one before', async () => {
    const mails = mailbox()
    const mounted = await start({ settings: linkTemplates, options: { mailer: mails, throttle: { mail: false } } })
    const person = await activePerson(mounted, mails, 'ana@example.test')
    const ask = () => mounted.browser().post('/auth/email-verify/request').set(as(person))

    const tokens: string[] = []
    for (let count = 0; count < 5; count++) {
      expect((await ask()).status).toBe(202)
      tokens.push(tokenOf(await mails.next({ kind: 'email_verification' })))
    }
    expect([(await ask()).status, (await ask()).body.code]).toEqual([429, 'TOO_MANY_REQUESTS'])

    const confirm = (token = '') => mounted.browser().post('/auth/email-verify/confirm').send({ token })
    expect((await confirm(tokens[3])).status).toBe(401)
    expect((await confirm(tokens[4])).status).toBe(200)
  })

  test('an expired link proves nothing', async () => {
    const mails = mailbox()
    const mounted = await start({ settings: { ...linkTemplates, accessTokenTtlSeconds: 86_400 }, options: { mailer: mails } })
    const person = await activePerson(mounted, mails, 'ana@example.test')
    await mounted.browser().post('/auth/email-verify/request').set(as(person))
    const token = tokenOf(await mails.next({ kind: 'email_verification' }))

    mounted.clock.advance(86_400)
    expect((await mounted.browser().post('/auth/email-verify/confirm').send({ token })).status).toBe(401)
  })

  test('without a mailer the link stands in the body', async () => {
    const mounted = await start({ settings: { autoActivate: true } })
    const browser = mounted.browser()
    const { body } = await browser.post('/auth/signup').send({ email: 'ana@example.test', password })

    const { body: asked } = await browser.post('/auth/email-verify/request').set(as({ accessToken: body.access_token }))
    expect(asked.verify_url).toMatch(/^https:\/\/app\.example\.test\/auth\/email-verify\/[\w-]{43}$/)
    const token = tokenOf({ url: asked.verify_url })
    expect((await browser.post('/auth/email-verify/confirm').send({ token })).status).toBe(200)
  })
})
