import { afterEach, describe, expect, test } from 'vitest'
import { type AuthStore, createAuthTables, createKnexStore, type HostTables, purgeExpired } from '../../src'
import { createPeople, PEOPLE, PEOPLE_COUNT } from '../store/host-tables'
import { type Mounted, type MountOptions, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { linkTemplates, type Mailbox, mailbox, tokenOf } from '../support/mailbox'
import { bearerOf, otherPassword, password, post } from './people'

// Contract section 13 (c): integer keys, and no activated_at, last_login_at, email_verified_at, password_set_at, name.
describe.each(await databases())("local accounts in an existing app's table on $name", (database) => {
  let opened: OpenDatabase
  let mounted: Mounted | undefined
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  const nameless: HostTables = { users: { ...PEOPLE.users, columns: { ...PEOPLE.users?.columns, name: false } } }

  async function start(
    settings: MountOptions['settings'] = {},
    options: MountOptions['options'] = {},
    wrap: (store: AuthStore) => AuthStore = (store) => store,
  ): Promise<Mounted & { mails: Mailbox; store: AuthStore }> {
    opened = await database.open()
    await createPeople(opened.knex, database.name)
    await createAuthTables(opened.knex, nameless)
    const mails = mailbox()
    const store = wrap(createKnexStore({ knex: opened.knex, users: nameless.users ?? {} }))
    mounted = await mount({
      knex: opened.knex,
      settings: { ...linkTemplates, oauthEnabled: false, ...settings },
      options: { store, mailer: mails, ...options },
    })
    return Object.assign(mounted, { mails, store })
  }

  const rowOf = (mail: string) => opened.knex('people').where({ mail }).first()
  const email = 'ana@example.test'

  test('keys that are no UUIDs are shown for no signup that waits: a new account and a taken address look the same', async () => {
    const host = await start()
    const answers = [await post(host, '/signup', { email, password }), await post(host, '/signup', { email, password })]

    expect(answers.map(({ status, body }) => [status, body])).toEqual(
      Array(2).fill([
        201,
        {
          user_id: null,
          activation_required: true,
          activation_url: null,
          access_token: null,
          refresh_token: null,
          signup_token: expect.any(String),
        },
      ]),
    )
  })

  test('the whole life of an account: signup, activation, login, reset, change; the answers show no key that counts upwards', async () => {
    const host = await start()
    const signup = await post(host, '/signup', { email, password, name: 'Ana' })
    expect(signup.status, signup.text).toBe(201)
    expect(signup.body.user_id).toBeNull()
    const row = await rowOf(email)
    expect(row).toMatchObject({ person_id: PEOPLE_COUNT + 1, full_name: null, tenant_code: 'main' })

    const activated = await post(host, '/activate', { token: tokenOf(await host.mails.next({ kind: 'activation', to: email })) })
    expect([activated.status, activated.body.user_id]).toEqual([200, String(PEOPLE_COUNT + 1)])
    expect((await post(host, '/login', { email, password })).status).toBe(200)
    await post(host, '/password-reset/request', { email })
    const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
    const reset = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })
    const change = await post(
      host,
      '/password-change',
      { current_password: otherPassword, new_password: password },
      bearerOf({ token: reset.body.access_token }),
    )
    expect([reset.status, change.status]).toEqual([200, 204])
    expect((await post(host, '/login', { email, password })).status).toBe(200)
    const me = await host
      .browser()
      .get('/auth/me')
      .set(bearerOf({ token: reset.body.access_token }))
    expect(me.body).toMatchObject({ id: String(PEOPLE_COUNT + 1), email, name: null, last_login_at: null, is_admin: false })
  })

  test('with autoActivate the pair comes at once, under the real key', async () => {
    const host = await start({ autoActivate: true })
    const { body } = await post(host, '/signup', { email, password })

    expect(body).toMatchObject({ user_id: String(PEOPLE_COUNT + 1), activation_required: false, access_token: expect.any(String) })
  })

  test('10.4 without activated_at: pending is who never redeemed an activation link; one who did, and was switched off, is not revived', async () => {
    const host = await start({ singleActiveToken: false })
    await post(host, '/signup', { email, password })
    const first = await host.mails.next({ kind: 'activation', to: email })
    await post(host, '/activation/request', { email })
    const second = await host.mails.next({ kind: 'activation', to: email })
    expect((await post(host, '/activate', { token: tokenOf(first) })).status).toBe(200)
    await opened.knex('people').where({ mail: email }).update({ enabled: false })

    expect((await post(host, '/activate', { token: tokenOf(second) })).body.code).toBe('INVALID_TOKEN')
    await post(host, '/activation/request', { email })
    await post(host, '/password-reset/request', { email })
    await post(host, '/password-reset/request', { email: 'person1@example.test' })
    await host.mails.next({ kind: 'password_reset', to: 'person1@example.test' })
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(host.mails.mails.filter(({ to }) => to === email)).toHaveLength(2)
    expect(Boolean((await rowOf(email)).enabled)).toBe(false)
  })

  test.each(['before its first activation', 'after it'])(
    'deactivate %s leaves a trace, which purgeExpired keeps, so that no link revives the account',
    async (when) => {
      const host = await start()
      await post(host, '/signup', { email, password })
      const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      if (when === 'after it') await post(host, '/activate', { token })

      await host.auth.service.deactivate(String(PEOPLE_COUNT + 1))
      host.clock.advance(400 * 86_400)
      await purgeExpired(host.store, { before: host.clock.now() })

      expect((await post(host, '/activate', { token })).body.code).toBe('INVALID_TOKEN')
      expect(await host.auth.service.requestActivation(email)).toBeNull()
      expect(Boolean((await rowOf(email)).enabled)).toBe(false)
    },
  )

  test('where the store leaves no trace, an account is not closed', async () => {
    const host = await start({ autoActivate: true }, {}, (real) => {
      const faulty = faultyStore(real)
      faulty.break('userTokens.consume', () => null)
      return faulty.store
    })
    await post(host, '/signup', { email, password })

    await expect(host.auth.service.deactivate(String(PEOPLE_COUNT + 1))).rejects.toThrow('could not use a token')
    expect(Boolean((await rowOf(email)).enabled)).toBe(true)
  })

  test('a person of before gets in by a reset, and one whom the app switched off does not', async () => {
    const host = await start()
    expect(await host.auth.service.requestPasswordReset('person9@example.test')).toBeNull() // every tenth is switched off
    await post(host, '/password-reset/request', { email: 'PERSON7@example.test' })
    const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: 'person7@example.test' }))

    const { status, body } = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })

    expect([status, body.user_id]).toEqual([200, '8'])
    expect((await post(host, '/login', { email: 'person7@example.test', password: otherPassword })).status).toBe(200)
  })

  test('a link that was refused does not count as redeemed: once the refusal is lifted, the account can be activated', async () => {
    const refusing = new Set<string>()
    const host = await start({}, { refusesEmailLink: ({ email }: { email: string }) => refusing.has(email) })
    await post(host, '/signup', { email, password })
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    refusing.add(email)
    expect((await post(host, '/activate', { token })).status).toBe(403)
    refusing.clear()

    await post(host, '/activation/request', { email })
    const fresh = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    expect((await post(host, '/activate', { token: fresh })).status).toBe(200)
  })
})
