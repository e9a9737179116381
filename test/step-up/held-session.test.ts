import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { type AuthStore, createKnexStore, OidcClient } from '../../src'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, post, settled, signedIn, tokenRows } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { enrolled, onMfa, outcome } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { needs } from './needs'

/** Makes all that the request needs, and returns who asks and how. The session ends when the guards have let the request in. */
type Preparation = (
  host: LocalHost,
) => Promise<{ person: { userId: string; token: string }; ask: (headers: Record<string, string>) => supertest.Test }>

const asked =
  (path: string, body: object = {}) =>
  (host: LocalHost) =>
  (headers: Record<string, string>) =>
    post(host, path, body, headers)

const byCode =
  (path: string, body: object = {}): Preparation =>
  async (host) => {
    const person = await enrolled(host)
    return { person, ask: asked(path, { ...body, code: person.app.nextCode() })(host) }
  }

const byMember =
  (path: string, body: object = {}): Preparation =>
  async (host) => ({ person: await signedIn(host), ask: asked(path, body)(host) })

const byAdmin =
  (action: string): Preparation =>
  async (host) => {
    const person = await enrolled(host, { isAdmin: true })
    const other = await enrolled(host)
    const path = `${host.prefix}/admin/users/${other.userId}${action}`
    return {
      person,
      ask: (headers) =>
        action === '' ? host.browser().patch(path).set(headers).send({ is_admin: true }) : host.browser().post(path).set(headers).send({}),
    }
  }

const preparations: Readonly<Record<string, Preparation>> = {
  'POST /mfa/enroll': byMember('/mfa/enroll'),
  'POST /mfa/enroll, to replace': byCode('/mfa/enroll'),
  async 'POST /mfa/confirm'(host) {
    const person = await signedIn(host)
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf(person)).expect(200)
    return { person, ask: asked('/mfa/confirm', { code: authenticator(body.secret, host.clock).code() })(host) }
  },
  'POST /mfa/disable': byCode('/mfa/disable', { password }),
  'POST /mfa/recovery-codes': byCode('/mfa/recovery-codes'),
  'POST /password-change/mfa': byCode('/password-change/mfa', { new_password: otherPassword }),
  'POST /password-change': byMember('/password-change', { current_password: password, new_password: otherPassword }),
  async 'POST /password/first'(host) {
    const person = await signedIn(host)
    const marker = { hashed_password: `!${'a'.repeat(43)}`, password_set_at: null }
    await host.knex('auth_users').where({ id: person.userId }).update(marker)
    return { person, ask: asked('/password/first', { new_password: otherPassword })(host) }
  },
  'POST /reauthenticate': byMember('/reauthenticate', { password }),
  'POST /reauthenticate/email': byMember('/reauthenticate/email'),
  async 'POST /oauth/:provider/link'(host) {
    const accessToken = host.provider.issueAccessToken({ profile: newPerson() })
    return { person: await signedIn(host), ask: asked('/oauth/introspecting/link', { access_token: accessToken })(host) }
  },
  async 'POST /oauth/accounts/unlink'(host) {
    const person = await signedIn(host)
    await addIdentity(host.knex, person.userId)
    return { person, ask: asked('/oauth/accounts/unlink', { provider: 'corp' })(host) }
  },
  'PATCH /me': async (host) => ({
    person: await signedIn(host),
    ask: (headers) => host.browser().patch(`${host.prefix}/me`).set(headers).send({ name: 'A stranger' }),
  }),
  'PATCH /admin/users/:id': byAdmin(''),
  'POST /admin/users/:id/deactivate': byAdmin('/deactivate'),
  'POST /admin/users/:id/activate': byAdmin('/activate'),
  'POST /admin/users/:id/revoke-sessions': byAdmin('/revoke-sessions'),
  'POST /admin/users/:id/reset-mfa': byAdmin('/reset-mfa'),
}

/** Writing routes whose change another test meets, or that change nothing of the account. */
const elsewhere: Readonly<Record<string, string>> = {
  'POST /email-change/request': 'answers before its work: the test below',
  'POST /email-verify/request': 'answers before its work: the test below',
  'POST /oauth/link/redeem': 'test/social/link-ticket.test.ts',
  'POST /oauth/:provider/reauthenticate': 'begins an attempt and writes nothing',
  'DELETE /sessions/:id': 'ends sessions only',
  'POST /sessions/revoke-others': 'ends sessions only',
}

test('every guarded route that writes is in one of the tables', () => {
  const writing = Object.keys(needs).filter((name) => !name.startsWith('GET '))
  const missing = writing.filter((name) => !(name in preparations) && !(name in elsewhere))
  expect(missing).toEqual([])
})

describe.each(await databases())('a session that ends between the guard and the change, on $name', (database) => {
  const { start } = onMfa(database)

  /** `end()` is called once, before the next unit of work of a request. */
  async function racing() {
    const before = { unit: null as null | (() => Promise<unknown>) }
    const { knex } = await start()
    const real = createKnexStore({ knex })
    const transaction: AuthStore['transaction'] = async (work, options) => {
      const end = before.unit
      before.unit = null
      await end?.()
      return real.transaction(work, options)
    }
    const host = await start({
      providers: {
        corp: {},
        introspecting: (provider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })),
      },
      options: { store: { ...real, transaction } },
    })
    return { host, before }
  }

  test.each(Object.entries(preparations))('%s changes nothing', async (_name, prepare) => {
    const { host, before } = await racing()
    const { person, ask } = await prepare(host)
    const users = await host.knex('auth_users').orderBy('id')
    before.unit = () =>
      host
        .knex('auth_sessions')
        .where({ user_id: person.userId })
        .update({ revoked_at: revokedAt(host) })

    expect(outcome(await ask(bearerOf(person)))).toBe('INVALID_TOKEN')
    expect(before.unit).toBeNull()
    expect((await host.knex('auth_users').orderBy('id')).map(withoutStep)).toEqual(users.map(withoutStep))
  })

  test('POST /email-change/request mails no link', async () => {
    const { host, before } = await racing()
    const person = await signedIn(host)
    const to = newAddress()
    before.unit = () =>
      host
        .knex('auth_sessions')
        .where({ user_id: person.userId })
        .update({ revoked_at: revokedAt(host) })
    await post(host, '/email-change/request', { new_email: to }, bearerOf(person)).expect(202)
    await settled(host)
    expect(host.mails.mails.filter((mail) => mail.to === to)).toEqual([])
    expect((await tokenRows(host, person.userId)).filter(({ purpose }) => purpose === 'EMAIL_CHANGE')).toEqual([])
  })

  test('POST /email-verify/request mails no link', async () => {
    const { host, before } = await racing()
    const person = await signedIn(host)
    before.unit = () =>
      host
        .knex('auth_sessions')
        .where({ user_id: person.userId })
        .update({ revoked_at: revokedAt(host) })
    await post(host, '/email-verify/request', {}, bearerOf(person)).expect(202)
    await settled(host)
    expect(host.mails.mails.filter((mail) => mail.to === person.email)).toEqual([])
    expect(await tokenRows(host, person.userId)).toEqual([])
  })

  const revokedAt = (host: LocalHost) => (database.name === 'sqlite' ? host.clock.now().getTime() : host.clock.now())
  const withoutStep = ({ totp_last_step: _step, ...row }: Record<string, unknown>) => row
})
