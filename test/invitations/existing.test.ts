import { describe, expect, test } from 'vitest'
import { appFolder, doorward } from '../command/run-command'
import { newAddress, password, post, signedIn } from '../local/people'
import { begin, callBack, newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { everyWay, invite, onInvitations } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onInvitations(sqlite)

const modes = ['open', 'invite', 'approve'] as const
const ownPage = { Origin: 'https://app.example.test', 'Sec-Fetch-Site': 'same-origin' }

describe.each(modes)('in mode %s', (signupMode) => {
  test('31.1.2 an existing account signs in and links, whatever invitation its browser has', async () => {
    const host = await start({ settings: { ...everyWay, signupMode, tokenDelivery: 'cookie', cookieSecure: true } })
    const { id, token } = await invite(host)
    const browser = host.browser()
    await browser.post(`${host.prefix}/invitations/${token}`).set(ownPage).type('form').send({})
    await host.auth.service.invitations.revoke(id)
    const verified = { emailVerifiedAt: host.clock.now() }
    const [linking, byProvider] = [await signedIn(host, verified), await signedIn(host, verified)]

    expect((await browser.post('/auth/login').set(ownPage).send({ email: linking.email, password })).status).toBe(200)
    const { body } = await browser.post('/auth/oauth/corp/link').set(ownPage).send({})
    const { callbackQuery } = host.provider.authorize(body.authorize_url, { profile: newPerson() })
    expect((await browser.get('/auth/oauth/corp/callback').query(callbackQuery)).status).toBeLessThan(400)
    expect(await host.knex('auth_identities').where({ user_id: linking.userId })).toHaveLength(1)

    const profile = newPerson({ email: byProvider.email, email_verified: true })
    for (const _twice of ['links by the verified address', 'is known']) {
      const { query, cookie } = await begin(host, { query: { invitation: String(token) }, profile })
      expect((await callBack(host, query, { cookie })).status).toBe(200)
    }
    await browser.post('/auth/email-login/request').set(ownPage).send({ email: byProvider.email })
    await host.mails.next({ kind: 'email_login', to: byProvider.email })
  })

  test('31.1.1 `users create` and `users import` make active accounts: there the host decides', async () => {
    const host = await start({ settings: { signupMode, invitationsEnabled: signupMode === 'invite' } })
    const folder = appFolder(host.auth)
    const [created, imported] = [newAddress(), newAddress()]
    expect((await doorward(`users create ${created}`, { folder })).exitCode).toBe(0)
    const line = JSON.stringify({ email: imported, name: 'Ada' })
    const done = await doorward('users import - --format jsonl', { folder, stdin: `${line}\n` })
    expect(done.exitCode).toBe(0)
    for (const email of [created, imported]) {
      const found = await host.knex('auth_users').where({ email }).first()
      expect([Boolean(found.is_active), found.approval_requested_at]).toEqual([true, null])
    }
  })
})

test('31.2.6 a login of a provider is refused before it is asked whether the address is taken', async () => {
  const host = await start({ settings: { ...everyWay, oauthLinkByVerifiedEmail: false, signupMode: 'invite' } })
  const { email } = await signedIn(host, { emailVerifiedAt: host.clock.now() })
  const enter = async (address: string, query: Record<string, string>) => {
    const step = await begin(host, { query, profile: newPerson({ email: address }) })
    return (await callBack(host, step.query, { cookie: step.cookie })).body.code
  }
  const good = { invitation: String((await invite(host)).token) }
  for (const query of [{}, { invitation: 'a'.repeat(43) }])
    expect([await enter(email, query), await enter(newAddress(), query)]).toEqual(['INVITATION_REQUIRED', 'INVITATION_REQUIRED'])
  expect(await enter(email, good)).toBe('OAUTH_EMAIL_TAKEN')
  expect((await post(host, '/signup', { email: newAddress(), password, ...good })).status).toBe(201) // nothing was used
})
