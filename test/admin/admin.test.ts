import { describe, expect, test } from 'vitest'
import { type AuthEventName, createKnexStore } from '../../src'
import { loginAs } from '../../src/testing'
import { bearerOf, isAlive, mailsTo, newAddress, password, pending, post, settled, signedIn, tokenRows, userOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, mfaSettings, onMfa, outcome, verify } from '../mfa/people'
import { addUser, someTime } from '../social/accounts-at-hand'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { act, actions, adminOn, patch, read } from './people'

const nobody = '00000000-0000-4000-8000-000000000000'

for (const database of await databases()) {
  describe(`administrators on ${database.name}`, { timeout: 30_000 }, () => {
    const { start, opened } = onMfa(database)
    const startPlain = () => start({ settings: { mfaEnabled: false } })

    /** What happened, in order. */
    const heard = (host: Awaited<ReturnType<typeof start>>, names: AuthEventName[]) => {
      const events: unknown[] = []
      for (const name of names) host.auth.events.on(name, (payload) => events.push([name, payload]))
      return events
    }

    test('a list is filtered, goes on where the page before ended, and holds what an owner sees of itself and two dates', async () => {
      const host = await startPlain()
      const admin = await adminOn(host)
      const mark = newAddress().split('@')[0]
      const made = []
      for (let index = 0; index < 5; index++)
        made.push(
          await addUser(host.knex, { email: `${mark}-${index}@example.test`, createdAt: new Date(someTime.getTime() + (index >> 1)) }),
        )
      const expected = made.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1))
      const query = `?email__startswith=${mark}-&is_active=true`

      const whole = await read(host, admin, query)
      expect(whole.status).toBe(200)
      expect(whole.body.next_cursor).toBeNull()
      expect(whole.body.items.map(({ id }: { id: string }) => id)).toEqual(expected.map(({ id }) => id))
      expect(whole.body.items[0]).toEqual({
        ...{ id: expected[0]?.id, email: expected[0]?.email, name: 'There Before', is_active: true, is_admin: false },
        ...{ created_at: someTime.toISOString(), updated_at: someTime.toISOString(), last_login_at: null, mfa_enabled: false },
        ...{ email_verified_at: someTime.toISOString(), activated_at: someTime.toISOString() },
      })
      expect(whole.text).not.toMatch(/hash|secret|test\$old|password/i)

      expect((await read(host, admin, `${query}&lang=pt-BR`)).body).toEqual(whole.body) // the language of errors, and no filter
      expect((await read(host, admin, `?email__startswith=${String(mark).toUpperCase()}-`)).body).toEqual(whole.body)

      const first = await read(host, admin, `${query}&limit=2`)
      await addUser(host.knex, { email: `${mark}-new@example.test`, createdAt: new Date(someTime.getTime() - 1) })
      await host.knex('auth_users').where({ id: expected[1]?.id }).delete() // the very row the cursor stands on
      const second = await read(host, admin, `?is_active=true&email__startswith=${mark}-&limit=100&cursor=${first.body.next_cursor}`)
      expect([...first.body.items, ...second.body.items]).toEqual(whole.body.items)
      expect(second.body.next_cursor).toBeNull()

      const { items } = await host.auth.service.listUsers({ filters: { email: made[4]?.email ?? '' }, limit: 1 })
      expect(items).toEqual([await host.auth.service.findUser(made[4]?.id ?? '')])
    })

    test('S31: what is no filter, no value or no cursor of this very list is 422, before the users are asked', async () => {
      const host = await startPlain()
      const admin = await adminOn(host)
      await addUser(host.knex, { isAdmin: true })
      const cursor = String((await read(host, admin, '?is_admin=true&limit=1')).body.next_cursor)
      const unsigned = cursor.split('.')[0]
      const rows: [query: string, code: string, filter?: string][] = [
        ['?hashed_password__startswith=$argon2id', 'UNKNOWN_FILTER_KEY', 'hashed_password__startswith'],
        ['?totp_secret=x', 'UNKNOWN_FILTER_KEY', 'totp_secret'],
        ['?email__regex=x', 'UNKNOWN_FILTER_KEY', 'email__regex'],
        ['?__proto__=x', 'UNKNOWN_FILTER_KEY', '__proto__'],
        ['?constructor__eq=x', 'UNKNOWN_FILTER_KEY', 'constructor__eq'],
        ['?email[]=x', 'UNKNOWN_FILTER_KEY', 'email[]'],
        ['?email=x&email=x', 'INVALID_FILTER_VALUE', 'email'],
        ['?created_at__between=2026-01-01', 'INVALID_FILTER_VALUE', 'created_at__between'],
        ['?is_active=1', 'INVALID_FILTER_VALUE', 'is_active'],
        ...['0', '101', '-1', '1e1', '', '50&limit=50', '1.5'].map((limit): [string, string] => [`?limit=${limit}`, 'VALIDATION_ERROR']),
        ...[
          '',
          'x',
          '.',
          unsigned,
          `${unsigned}.`,
          `${cursor}x`,
          `${cursor}=`,
          `${cursor}.`,
          `.${cursor}`,
          `${cursor}&cursor=${cursor}`,
        ].map((other): [string, string] => [`?is_admin=true&cursor=${other}`, 'VALIDATION_ERROR']),
        [`?cursor=${cursor}`, 'VALIDATION_ERROR'],
        [`?is_admin=false&cursor=${cursor}`, 'VALIDATION_ERROR'],
      ]
      for (const [query, code, filter] of rows) {
        const statements = recordQueries(host.knex)
        const { status, body } = await read(host, admin, query)
        expect(statements.stop(), query).toHaveLength(2) // the guard's own, and the session's
        expect([status, body.code, body.details.filter], query).toEqual([422, code, filter])
      }
      expect((await read(host, admin, `?is_admin=true&cursor=${cursor}`)).status).toBe(200)
    })

    test('R-066, R-067: PATCH writes name and is_admin and nothing else; a demoted or closed administrator is out at once (R-106)', async () => {
      const host = await startPlain()
      const [admin, member] = [await adminOn(host), await signedIn(host)]
      const before = await createKnexStore({ knex: host.knex }).users.find(member.userId)
      const foreign = {
        id: nobody,
        email: 'x@example.test',
        is_active: false,
        hashed_password: 'x',
        email_verified_at: null,
        constructor: 1,
      }

      const changed = await patch(host, admin, member.userId, { ...foreign, name: 'New Name', is_admin: true })
      expect(changed.body).toMatchObject({ id: member.userId, email: member.email, name: 'New Name', is_active: true, is_admin: true })
      expect(Object.keys(changed.body)).toEqual(Object.keys((await read(host, admin, `/${member.userId}`)).body))
      const after = await createKnexStore({ knex: host.knex }).users.find(member.userId)
      expect(after).toEqual({ ...before, name: 'New Name', isAdmin: true, updatedAt: after?.updatedAt })
      expect((await patch(host, admin, member.userId, {})).body).toEqual(changed.body)
      for (const body of [{ name: 7 }, { name: 'x'.repeat(121) }, { is_admin: 'true' }, { is_admin: null }, { name: 'a\0' }])
        expect((await patch(host, admin, member.userId, body)).status, JSON.stringify(body)).toBe(422)

      expect((await read(host, member, '')).status).toBe(200) // with the token of before
      expect((await patch(host, admin, member.userId, { is_admin: false, name: '' })).body).toMatchObject({ name: null, is_admin: false })
      expect(outcome(await read(host, member, ''))).toBe('FORBIDDEN')
      await patch(host, admin, member.userId, { is_admin: true })
      expect((await act(host, admin, member.userId, 'deactivate')).status).toBe(204)
      expect(outcome(await read(host, member, ''))).toBe('ACCOUNT_INACTIVE')
    })

    test('deactivate ends everything, activate brings nothing of it back, revoke-sessions ends sessions alone', async () => {
      const host = await startPlain()
      const events = heard(host, ['account.deactivated', 'activation', 'session.revoked'])
      const [admin, member, other] = [await adminOn(host), await signedIn(host), await signedIn(host)]
      const { userId } = member

      expect((await act(host, admin, other.userId, 'revoke-sessions')).status).toBe(204)
      expect(await isAlive(host, other.refreshToken)).toBe(false)
      expect((await post(host, '/login', { email: other.email, password })).status).toBe(200)

      await post(host, '/password-reset/request', { email: member.email })
      await host.mails.next({ kind: 'password_reset', to: member.email })
      for (const _twice of [1, 2]) expect((await act(host, admin, userId, 'deactivate')).status).toBe(204)
      expect((await post(host, '/login', { email: member.email, password })).status).toBe(401)
      for (const _twice of [1, 2]) expect((await act(host, admin, userId, 'activate')).status).toBe(204)
      expect(await isAlive(host, member.refreshToken)).toBe(false)
      expect((await tokenRows(host, userId)).every(({ isUsed }) => isUsed)).toBe(true)
      expect((await post(host, '/login', { email: member.email, password })).status).toBe(200)

      // The host cleared the flag alone: what it left open does not come back with the flag.
      await host.knex('auth_users').where({ id: other.userId }).update({ is_active: false })
      const reopened = await signedIn(host)
      await host.knex('auth_users').where({ id: reopened.userId }).update({ is_active: false })
      await act(host, admin, reopened.userId, 'activate')
      expect(await isAlive(host, reopened.refreshToken)).toBe(false)
      const count = expect.any(Number)
      expect(events).toEqual([
        ['session.revoked', { userId: other.userId, count, actorId: admin.userId }],
        ...[1, 2].map(() => ['account.deactivated', { userId, actorId: admin.userId }]),
        ['activation', { userId, actorId: admin.userId }],
        ['activation', { userId: reopened.userId, actorId: admin.userId }],
      ])
    })

    test('an account that waits is activated without proving its address, and its link is dead', async () => {
      const host = await startPlain()
      const [admin, waiting] = [await adminOn(host), await pending(host)]
      expect(outcome(await patch(host, admin, waiting.userId, { is_admin: true })), 'no power for who is not in').toBe('CONFLICT')
      expect((await act(host, admin, waiting.userId, 'activate')).status).toBe(204)
      const user = await userOf(host, waiting.email)
      expect(user).toMatchObject({ isActive: true, emailVerifiedAt: null, activatedAt: expect.any(Date) })
      expect((await post(host, '/activate', { token: waiting.link })).status).toBe(401)
      expect((await post(host, '/login', { email: waiting.email, password })).status).toBe(200)
    })

    test('a stolen access token makes nobody an administrator by a factor that the thief adds', async () => {
      const host = await start()
      const [admin, mate] = [await adminOn(host), await signedIn(host)]
      expect(outcome(await patch(host, admin, mate.userId, { is_admin: true }))).toBe('MFA_REQUIRED')
      const enrolment = await post(host, '/mfa/enroll', {}, bearerOf(admin))
      host.clock.advance(1)
      const code = authenticator(enrolment.body.secret, host.clock).code()
      const confirmed = await post(host, '/mfa/confirm', { code }, bearerOf(admin))
      host.clock.advance(10)
      const withFactor = { ...admin, token: confirmed.body.access_token }
      expect(outcome(await patch(host, withFactor, mate.userId, { is_admin: true }))).toBe('REAUTHENTICATION_REQUIRED')

      const presented = await post(host, '/reauthenticate', { password }, bearerOf(withFactor))
      const owner = { ...admin, token: presented.body.access_token }
      expect((await patch(host, owner, mate.userId, { is_admin: true })).status).toBe(200)
    })

    test('with MFA on, the session must have shown its factor; reset-mfa takes a factor off, and all that hung on it', async () => {
      const host = await start()
      const events = heard(host, ['mfa.disabled'])
      const admin = await enrolled(host, { isAdmin: true })
      const [plainAdmin, member, lost] = [await adminOn(host), await signedIn(host), await enrolled(host)]
      for (const path of ['', `/${member.userId}`]) expect(outcome(await read(host, plainAdmin, path))).toBe('MFA_REQUIRED')
      expect(outcome(await patch(host, plainAdmin, member.userId, { is_admin: true }))).toBe('MFA_REQUIRED')
      for (const action of actions) expect(outcome(await act(host, plainAdmin, member.userId, action))).toBe('MFA_REQUIRED')
      expect(outcome(await read(host, member, ''))).toBe('FORBIDDEN')

      const challenge = await challengeOf(host, lost)
      expect((await read(host, admin, `?mfa_enabled=true&id=${lost.userId}`)).body.items).toHaveLength(1)
      expect((await act(host, admin, lost.userId, 'reset-mfa')).status).toBe(204)
      expect(await userOf(host, lost.email)).toMatchObject({ totpSecret: null, totpEnabledAt: null, totpLastStep: null })
      expect(await host.knex('auth_recovery_codes').where({ user_id: lost.userId })).toEqual([])
      expect(await isAlive(host, lost.refreshToken)).toBe(false)
      expect(outcome(await verify(host, challenge, lost.app.nextCode()))).toBe('MFA_TOKEN_INVALID')
      expect((await post(host, '/login', { email: lost.email, password })).body.access_token).toEqual(expect.any(String))

      expect((await act(host, admin, member.userId, 'reset-mfa')).status).toBe(204) // without a factor nothing happens
      expect(await isAlive(host, member.refreshToken)).toBe(true)
      await settled(host)
      expect(events.filter((event) => JSON.stringify(event).includes(lost.userId))).toEqual([
        ['mfa.disabled', { userId: lost.userId, actorId: admin.userId }],
      ])
      expect(mailsTo(host, lost.email).at(-1)).toBe('notice')
      expect(mailsTo(host, member.email)).toEqual([])

      const later = await start({ settings: { mfaEnabled: false, mfaSecretKey: mfaSettings.mfaSecretKey } }) // switched off since
      const enrolledBefore = await addUser(opened().knex, { email: newAddress(), totpSecret: 'x', totpEnabledAt: someTime })
      expect((await act(later, await adminOn(later), enrolledBefore.id, 'reset-mfa')).status).toBe(204)
      expect((await userOf(later, enrolledBefore.email)).totpEnabledAt).toBeNull()
    })

    test('nobody takes power from themselves or from the last active administrator', async () => {
      const host = await startPlain()
      await host.knex('auth_users').update({ is_admin: false })
      const [admin, member] = [await adminOn(host), await signedIn(host)]
      const closed = await addUser(host.knex, { isAdmin: true, isActive: false })
      const attempts = [
        () => act(host, admin, admin.userId, 'deactivate'),
        () => act(host, admin, admin.userId, 'reset-mfa'),
        () => patch(host, admin, admin.userId, { is_admin: false, name: 'Still' }),
      ]
      for (const attempt of attempts) expect(outcome(await attempt())).toBe('CONFLICT')
      expect(await userOf(host, admin.email)).toMatchObject({ isActive: true, isAdmin: true, name: 'An Administrator' })
      const fine = [
        () => patch(host, admin, admin.userId, { is_admin: true, name: 'Me' }),
        () => act(host, admin, admin.userId, 'activate'),
        () => act(host, admin, member.userId, 'deactivate'),
        () => patch(host, admin, closed.id, { is_admin: false }),
        () => act(host, admin, admin.userId, 'revoke-sessions'),
      ]
      for (const attempt of fine) expect((await attempt()).status).toBeLessThan(300)

      const { service } = host.auth
      await expect(service.resetMfa(admin.userId, { by: member.userId })).rejects.toMatchObject({ code: 'CONFLICT' })
      await expect(service.updateUser(member.userId, { isAdmin: true }, { by: member.userId })).rejects.toMatchObject({ code: 'FORBIDDEN' })
      const unnamed = { by: undefined } as unknown as { by: string } // a host in JavaScript
      await expect(service.deactivate(admin.userId, unnamed)).rejects.toThrow(TypeError)
      await service.resetMfa(admin.userId) // the host itself, say for the one administrator who lost the factor
      expect(outcome(await read(host, admin, ''))).toBe('INVALID_TOKEN') // which ended the sessions
      await service.updateUser(admin.userId, { isAdmin: false })
      expect(outcome(await read(host, { ...admin, token: (await loginAs(host.auth, { id: admin.userId })).accessToken }, ''))).toBe(
        'FORBIDDEN',
      )
    })

    test('R-064: who is no administrator learns nothing; an administrator meets 404 for what nobody has', async () => {
      const host = await startPlain()
      const [admin, member] = [await adminOn(host), await signedIn(host)]
      const nobodyAtAll = { token: 'x', userId: nobody }
      for (const id of [nobody, member.userId]) {
        const asks = (person: typeof nobodyAtAll) => [
          read(host, person, `/${id}`),
          patch(host, person, id, { name: 'x' }),
          ...actions.map((action) => act(host, person, id, action)),
        ]
        for (const ask of [...asks(member), read(host, member, '?nonsense=1')]) expect(outcome(await ask)).toBe('FORBIDDEN')
        for (const ask of [...asks(nobodyAtAll), read(host, nobodyAtAll, '')]) expect((await ask).status).toBe(401)
      }
      for (const id of [nobody, 'x', '0', '%00', `${nobody}%20`, '..%2f']) {
        expect(outcome(await read(host, admin, `/${id}`)), id).toBe('NOT_FOUND')
        expect(outcome(await patch(host, admin, id, { is_admin: true })), id).toBe('NOT_FOUND')
        for (const action of actions) expect(outcome(await act(host, admin, id, action)), id).toBe('NOT_FOUND')
      }
      expect(await host.auth.service.findUser(nobody)).toBeNull()
      expect((await host.browser().delete('/auth/admin/users/x').set(bearerOf(admin))).status).toBe(405)
    })
  })
}

const [anyDatabase] = await databases()
if (!anyDatabase) throw new Error('no database answers')

describe('the admin routes', () => {
  const { start, opened } = onMfa(anyDatabase)

  test('by cookie, only this site changes something', async () => {
    const host = await start({ settings: { mfaEnabled: false, tokenDelivery: 'cookie' } })
    const [admin, member] = [await adminOn(host), await signedIn(host)]
    const login = await post(host, '/login', { email: admin.email, password }, { Origin: 'https://app.example.test' })
    const cookie = ((login.headers['set-cookie'] ?? []) as string[]).map((line) => line.split(';')[0]).join('; ')
    const ask = (method: 'post' | 'patch', path: string, origin: string) =>
      host
        .browser()
        [method](`/auth/admin/users/${member.userId}${path}`)
        .set({ Cookie: cookie, Origin: origin, ...oldBrowser })
        .send({})
    for (const action of actions) expect(outcome(await ask('post', `/${action}`, 'https://evil.example'))).toBe('CSRF_VALIDATION_FAILED')
    expect(outcome(await ask('patch', '', 'https://evil.example'))).toBe('CSRF_VALIDATION_FAILED')
    expect((await ask('patch', '', 'https://app.example.test')).status).toBe(200)
    expect(
      (
        await host
          .browser()
          .get('/auth/admin/users')
          .set({ Cookie: cookie, Origin: 'https://evil.example', ...oldBrowser })
      ).status,
    ).toBe(200)
  })

  test('are not there where the users table cannot say who is an administrator', async () => {
    const store = createKnexStore({ knex: opened().knex, users: { table: 'auth_users', columns: { isAdmin: false } } })
    const host = await start({ settings: { mfaEnabled: false }, options: { store } })
    for (const path of ['', '/x']) expect((await host.browser().get(`/auth/admin/users${path}`)).text, path).toContain('Cannot GET')
  })

  test('who was activated by an administrator was active once, also where no column says so', async () => {
    const store = createKnexStore({ knex: opened().knex, users: { table: 'auth_users', columns: { activatedAt: false } } })
    const host = await start({ settings: { mfaEnabled: false }, options: { store } })
    const [admin, waiting] = [await adminOn(host), await pending(host)]
    await act(host, admin, waiting.userId, 'activate')
    await host.knex('auth_users').where({ id: waiting.userId }).update({ is_active: false }) // closed by the host's own hand
    expect(await host.auth.service.requestActivation(waiting.email)).toBeNull()
    expect(outcome(await read(host, admin, '?activated_at__isnull=true'))).toBe('UNKNOWN_FILTER_KEY')
  })

  test('R-067: an adapter that returns more columns, or rows nobody asked for, leaks neither', async () => {
    const host = await start({ settings: { mfaEnabled: false } })
    const [admin, stranger] = [await adminOn(host), await addUser(host.knex, { name: 'A Stranger' })]
    const store = createKnexStore({ knex: host.knex })
    const careless = { ...store, users: { ...store.users, list: async () => ({ users: [{ ...stranger, salary: 7 }], next: null }) } }
    const leaky = await start({ settings: { mfaEnabled: false }, options: { store: careless } })
    expect((await read(leaky, admin, '?name=Somebody%20Else')).body).toEqual({ items: [], next_cursor: null })
    expect(leaky.logs.text()).toContain('users.list')
    expect((await read(leaky, admin, '')).text).not.toMatch(/salary|hash|secret|test\$old/)
  })
})
