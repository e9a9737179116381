import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { amrOf, bearerOf, openAs, post, signedIn } from '../local/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import {
  age,
  codeOf,
  logIn,
  loginOptions,
  newAuthenticator,
  onPasskeys,
  passkeyOwner,
  register,
  registrationOptions,
  rejected,
  rowsOf,
} from './people'

describe.each(await databases())('passkeys on $name', (database) => {
  const { start } = onPasskeys(database)

  test('a signed-in person adds a passkey, sees it, names it, signs in with it and removes it', async () => {
    const host = await start()
    const person = await signedIn(host, { name: 'Ana' })
    const authenticator = newAuthenticator({ aaguid: 'ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4' })
    const events: unknown[] = []
    for (const name of ['passkey.added', 'passkey.removed', 'login'] as const)
      host.auth.events.on(name, (payload) => events.push([name, payload]))

    const options = await registrationOptions(host, person)
    expect(options).toMatchObject({
      rp: { id: 'app.example.test', name: 'Example' },
      user: { name: person.email, displayName: 'Ana' },
      pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: 'public-key', alg })),
      excludeCredentials: [],
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      attestation: 'none',
    })
    expect(Buffer.from(options.challenge, 'base64url')).toHaveLength(32)
    expect(Buffer.from(options.user.id, 'base64url')).toHaveLength(32)
    const added = await post(
      host,
      '/passkeys/register',
      { credential: authenticator.create(options), challenge_token: options.challenge_token },
      bearerOf(person),
    )
    expect(added.status, added.text).toBe(201)
    const at = host.clock.now().toISOString()
    const presented = {
      id: added.body.id,
      created_at: at,
      last_used_at: null,
      is_backed_up: true,
      aaguid: 'ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4',
    }
    expect(added.body).toEqual({ ...presented, name: 'Google Password Manager' })
    expect(await host.mails.next({ kind: 'notice', to: person.email })).toMatchObject({ subject: 'A passkey was added to your account' })

    const own = (method: 'get' | 'patch' | 'delete', path: string) => host.browser()[method](`${host.prefix}${path}`).set(bearerOf(person))
    expect((await own('patch', `/passkeys/${presented.id}`).send({ name: 'Ana’s phone' })).body).toEqual({
      ...presented,
      name: 'Ana’s phone',
    })
    const login = await logIn(host, authenticator)
    expect(login.status, login.text).toBe(200)
    expect([amrOf(login.body.access_token), login.body.user_id]).toEqual([['passkey'], person.userId])
    expect((await own('get', '/passkeys')).body).toEqual([{ ...presented, name: 'Ana’s phone', last_used_at: at }])

    expect((await own('delete', `/passkeys/${presented.id}`)).status).toBe(204)
    expect((await own('get', '/passkeys')).body).toEqual([])
    expect(codeOf(await logIn(host, authenticator))).toEqual(rejected)
    expect(await host.mails.next({ kind: 'notice', to: person.email })).toMatchObject({
      subject: 'A passkey was removed from your account',
    })
    const { userId } = person
    expect(events).toEqual([
      ['passkey.added', { userId, passkeyId: presented.id }],
      ['login', { userId, amr: ['passkey'] }],
      ['passkey.removed', { userId, passkeyId: presented.id }],
    ])
  })

  test.each(['ES256', 'EdDSA', 'RS256'] as const)('an authenticator that signs by %s registers and signs in', async (algorithm) => {
    const host = await start()
    const person = await signedIn(host)
    const authenticator = newAuthenticator({ algorithm, counts: true, isBackupEligible: false })
    const added = await register(host, person, authenticator, { name: 'x'.repeat(64) })
    expect([added.status, added.body.name, added.body.is_backed_up]).toEqual([201, 'x'.repeat(64), false])
    for (const _ of [1, 2]) expect((await logIn(host, authenticator)).status).toBe(200)
    const [row] = await host.knex('auth_passkeys').where({ id: added.body.id })
    expect(Number(row.sign_count)).toBe(3)
  })

  test('a challenge is spent by the login that it is for', async () => {
    const host = await start()
    const { authenticator, userId } = await passkeyOwner(host)
    const options = await loginOptions(host)
    const answer = { credential: authenticator.get(options), challenge_token: options.challenge_token }
    expect((await post(host, '/passkeys/login', answer)).status).toBe(200)
    const before = await rowsOf(host, userId)
    expect(codeOf(await post(host, '/passkeys/login', answer))).toEqual(rejected)
    const again = { credential: authenticator.get(options), challenge_token: options.challenge_token }
    expect(codeOf(await post(host, '/passkeys/login', again))).toEqual(rejected)
    expect(await rowsOf(host, userId)).toEqual(before)
  })

  test('five tabs with autofill do not put each other out; a login challenge lives 900 s and no longer', async () => {
    const host = await start()
    const { authenticator } = await passkeyOwner(host)
    const tabs = await Promise.all([1, 2, 3, 4, 5].map(() => loginOptions(host)))
    host.clock.advance(899)
    const finish = (options: (typeof tabs)[number]) =>
      post(host, '/passkeys/login', { credential: authenticator.get(options), challenge_token: options.challenge_token })
    for (const tab of tabs.slice(0, 4)) expect((await finish(tab)).status).toBe(200)
    host.clock.advance(1)
    expect(codeOf(await finish(tabs[4]))).toEqual(rejected)
  })

  test('deliveries with cookies and sessions sign in by the same challenge, and need no cookie for it', async () => {
    const both = await start({ settings: { tokenDelivery: 'both' } })
    const owner = await passkeyOwner(both)
    const byCookie = await logIn(both, owner.authenticator, '/cookie/passkeys/login')
    expect([byCookie.status, byCookie.body.access_token]).toEqual([200, null])
    expect(setCookieOf(byCookie, 'refresh_token')?.value).toBeTruthy()
    const bySession = await logIn(both, owner.authenticator, '/session/passkeys/login')
    expect([bySession.status, Object.keys(bySession.body)]).toEqual([200, ['user_id', 'expires_at']])
    expect((await loginOptions(both)).challenge_token).toBeTruthy()
    expect(setCookieOf(await post(both, '/passkeys/login/options'), 'refresh_token')).toBeNull()

    const sessions = await start({ settings: { tokenDelivery: 'session' } })
    const other = await passkeyOwner(sessions)
    const login = await logIn(sessions, other.authenticator)
    expect([login.status, login.body.mfa_required]).toEqual([200, false])
    expect(setCookieOf(login, 'auth_session')?.value).toBeTruthy()
  })

  test('24.1: a passkey of less than a day signs in, and its session is not fresh', async () => {
    const host = await start()
    const young = await passkeyOwner(host, { isYoung: true })
    const { body } = await logIn(host, young.authenticator)
    const refused = await post(host, '/passkeys/register/options', {}, bearerOf({ token: body.access_token }))
    expect(codeOf(refused)).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
    expect(refused.body.details.methods).toEqual(['password', 'email'])
    await age(host, young.passkeyId)
    const old = await logIn(host, young.authenticator)
    expect((await post(host, '/passkeys/register/options', {}, bearerOf({ token: old.body.access_token }))).status).toBe(200)
    const stale = await openAs(host, young.userId)
    host.clock.advance(901)
    const again = await post(host, '/passkeys/register/options', {}, bearerOf(stale))
    expect(codeOf(again)).toEqual([401, 'TOKEN_EXPIRED'])
  })

  test('options are for a proven address and a fresh session; the answer comes from the session that asked', async () => {
    const host = await start()
    const unproven = await signedIn(host, { emailVerifiedAt: null })
    expect(codeOf(await post(host, '/passkeys/register/options', {}, bearerOf(unproven)))).toEqual([403, 'EMAIL_NOT_VERIFIED'])
    const person = await signedIn(host)
    const elsewhere = { ...person, ...(await openAs(host, person.userId)) }
    const options = await registrationOptions(host, person)
    const answer = { credential: newAuthenticator().create(options), challenge_token: options.challenge_token }
    expect(codeOf(await post(host, '/passkeys/register', answer, bearerOf(elsewhere)))).toEqual([422, 'PASSKEY_INVALID'])
    const other = await signedIn(host)
    expect(codeOf(await post(host, '/passkeys/register', answer, bearerOf(other)))).toEqual([422, 'PASSKEY_INVALID'])
    host.clock.advance(299)
    expect((await post(host, '/passkeys/register', answer, bearerOf(person))).status).toBe(201)
    expect(codeOf(await post(host, '/passkeys/register', answer, bearerOf(person)))).toEqual([422, 'PASSKEY_INVALID'])
  })

  test('a registration challenge lives 300 s', async () => {
    const host = await start()
    const person = await signedIn(host)
    const options = await registrationOptions(host, person)
    host.clock.advance(300)
    const answer = { credential: newAuthenticator().create(options), challenge_token: options.challenge_token }
    expect(codeOf(await post(host, '/passkeys/register', answer, bearerOf(person)))).toEqual([422, 'PASSKEY_INVALID'])
  })

  test('a credential is one passkey, whosever it is; a browser is told which ones the account has', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const [id] = owner.authenticator.credentialIds
    const options = await registrationOptions(host, owner)
    expect(options.excludeCredentials).toEqual([{ id, type: 'public-key', transports: ['hybrid', 'internal'] }])
    expect(() => owner.authenticator.create(options)).toThrow('excluded')

    const [thief, copy] = [await signedIn(host), newAuthenticator()]
    const begun = await registrationOptions(host, thief)
    const answer = { credential: copy.create(begun), challenge_token: begun.challenge_token }
    await host.knex('auth_passkeys').where({ id: owner.passkeyId }).update({ credential_id: copy.credentialIds[0] })
    const before = [await rowsOf(host, owner.userId), await rowsOf(host, thief.userId)]
    expect(codeOf(await post(host, '/passkeys/register', answer, bearerOf(thief)))).toEqual([409, 'PASSKEY_TAKEN'])
    expect([await rowsOf(host, owner.userId), await rowsOf(host, thief.userId)]).toEqual(before)
  })

  test('an account has twenty passkeys at most: the next is refused at the options already, and at the end', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    const begun = await registrationOptions(host, owner)
    const [row] = await host.knex('auth_passkeys').where({ id: owner.passkeyId })
    const more = Array.from({ length: 19 }, (_, place) => ({ ...row, id: randomUUID(), credential_id: `copy-${place}-${owner.userId}` }))
    await host.knex('auth_passkeys').insert(more)
    expect(codeOf(await post(host, '/passkeys/register/options', {}, bearerOf(owner)))).toEqual([409, 'PASSKEY_LIMIT'])
    const answer = { credential: newAuthenticator().create(begun), challenge_token: begun.challenge_token }
    expect(codeOf(await post(host, '/passkeys/register', answer, bearerOf(owner)))).toEqual([409, 'PASSKEY_LIMIT'])
  })

  test('the user handle is no id, and that of the first passkey stays under another secret', async () => {
    const host = await start()
    const person = await signedIn(host)
    const options = await registrationOptions(host, person)
    expect((await registrationOptions(host, person)).user.id).toBe(options.user.id)
    expect(Buffer.from(options.user.id, 'base64url').toString('utf8')).not.toContain(person.userId)
    await register(host, person, newAuthenticator())
    const secret = 'another secret of forty characters or so'
    const rotated = await start({ settings: { jwtSecret: [secret, 'a test secret of forty characters, or so'] } })
    const begun = await rotated.auth.service.passkeyRegistrationOptions({ userId: person.userId })
    expect(begun.options.user.id).toBe(options.user.id)
  })

  test('without the setting there is no such route', async () => {
    const host = await start({ settings: { passkeysEnabled: false } })
    expect((await post(host, '/passkeys/login/options')).status).toBe(404)
  })
})
