import { describe, expect, test } from 'vitest'
import { enrolled, mfaSettings } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { onPages, problemOf, sendForm } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

describe.each(['cookie', 'both', 'session'] as const)(
  'a provider’s sign-in of somebody with a second factor, delivery %s',
  (tokenDelivery) => {
    test.each([
      ['to return_to', {}, '/orders?page=2', '/orders?page=2'],
      ['to the account', {}, null, '/auth/account'],
      [
        'to the success redirect of the host',
        { oauthSuccessRedirect: 'https://app.example.test/home' },
        null,
        'https://app.example.test/home',
      ],
    ])('leads to /mfa and on %s', async (_name, settings, back, landing) => {
      const host = await start({ settings: { ...mfaSettings, ...settings, tokenDelivery } })
      const person = await enrolled(host)
      const { subject } = await addIdentity(host.knex, person.userId, { createdAt: new Date(host.clock.now().getTime() - 172_800_000) })
      const browser = host.browser()
      const begun = await browser.get('/auth/oauth/corp/login').query(back === null ? {} : { return_to: back })
      const { callbackQuery } = host.provider.authorize(String(begun.headers['location']), { profile: { sub: subject } })

      const answer = await browser.get('/auth/oauth/corp/callback').set('Accept', 'text/html').query(callbackQuery)
      expect([answer.status, answer.headers['location'], answer.text]).toEqual([302, '/auth/mfa', ''])
      expect((await browser.get('/auth/account')).status).toBe(302)
      const wrong = await sendForm(browser, '/auth/mfa', { code: '000000' })
      expect([wrong.status, problemOf(wrong.text)]).toEqual([
        400,
        'This code is not correct, or it was already used. Check it, or wait for the next code.',
      ])
      expect((await browser.get('/auth/mfa')).headers['content-security-policy']).toContain("form-action 'self'")
      const done = await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })
      expect([done.status, done.headers['location']]).toEqual([303, landing])
      expect((await browser.get('/auth/account')).status).toBe(200)
    })
  },
)
