import { expect, test } from 'vitest'
import { onLocal } from '../local/people'
import { setCookies } from '../social/redirect-steps'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { mailbox } from '../support/mailbox'
import { recordQueries } from '../support/record-queries'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

test('client-config says which forms exist, to everybody in the same bytes', async () => {
  const host = await start({
    settings: {
      tokenDelivery: 'both',
      emailLogin: 'code',
      passkeysEnabled: true,
      mfaEnabled: true,
      mfaIssuer: 'Example',
      refreshReuseGraceSeconds: 10,
      passwordMinLength: 15,
    },
    options: { mailer: mailbox() },
    providers: { corp: {}, github: {} },
  })
  const queries = recordQueries(host.knex)
  const answer = await host.browser().get('/auth/client-config')
  expect([answer.status, answer.headers['cache-control'], answer.headers['pragma']]).toEqual([200, 'public, max-age=300', undefined])
  expect(answer.body).toEqual({
    delivery: 'both',
    providers: [
      { key: 'corp', name: 'Corp' },
      { key: 'github', name: 'GitHub' },
    ],
    features: { signup: true, password: true, email_login: 'code', passkeys: true, second_factor: true },
    password: { min_length: 15 },
    refresh_grace_seconds: 10,
  })
  const someone = await host
    .browser()
    .get('/auth/client-config')
    .set({ Cookie: 'access_token=x; auth_hint=1', Origin: 'https://evil.example', 'Accept-Language': 'pt', ...oldBrowser })
  expect(someone.text).toBe(answer.text)
  expect([setCookies(answer), setCookies(someone), queries.stop()]).toEqual([[], [], []])
})

test('client-config follows the settings that turn a form off', async () => {
  const features = async (settings: object) => {
    const host = await start({ settings: { tokenDelivery: 'cookie', ...settings }, options: { mailer: mailbox() } })
    const { body } = await host.browser().get('/auth/client-config')
    return { features: body.features, password: body.password, providers: body.providers.length }
  }
  const plain = { signup: true, password: true, email_login: 'off', passkeys: false, second_factor: false }
  expect(await features({})).toEqual({ features: plain, password: { min_length: 12 }, providers: 1 })
  expect(await features({ signupEnabled: false })).toMatchObject({ features: { ...plain, signup: false } })
  expect(await features({ localAccountsEnabled: false })).toMatchObject({
    features: { ...plain, signup: false, password: false },
    password: null,
  })
  expect(await features({ passwordLogin: false, emailLogin: 'link', backendLinks: true })).toMatchObject({
    features: { ...plain, password: false, email_login: 'link' },
    password: null,
  })
  expect(await features({ oauthEnabled: false })).toMatchObject({ providers: 0 })
})
