import { describe, expect, test } from 'vitest'
import { adminOn, read } from '../admin/people'
import { loginTemplate, request } from '../email-login/people'
import { bearerOf, isAlive, type LocalHost, mailsTo, newAddress, password, post, settled, signedIn, userOf } from '../local/people'
import { challengeOf, enrolled, mfaSettings, verify } from '../mfa/people'
import { passkeyOwner, passkeySettings } from '../passkeys/people'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { moveTo, undo, undoTokenOf } from '../undo/people'
import { askDeletion, codeOf, dayMs, immediate, isGone, isLeaving, leave, onDeletion, purge, restore, restoreTokenOf, tell } from './people'

const remove = (host: LocalHost, admin: { token: string }, id: string) =>
  host.browser().delete(`${host.prefix}/admin/users/${id}`).set(bearerOf(admin))

describe.each(await databases())('deletion on $name', (database) => {
  const { start } = onDeletion(database)

  test('32.1.1 soft: the account closes, its sessions end, and after the days it is gone', async () => {
    const host = await start()
    const told = tell(host)
    const person = await signedIn(host)
    const { userId, email } = person
    const other = await post(host, '/login', { email, password })
    const { status, body } = await askDeletion(host, person)
    const deletesAt = new Date(host.clock.now().getTime() + 30 * dayMs).toISOString()
    expect([status, body]).toEqual([202, { message: expect.stringContaining('closed'), deletes_at: deletesAt }])
    expect(await userOf(host, email)).toMatchObject({ isActive: false, deletionRequestedAt: host.clock.now() })
    expect([await isAlive(host, person.refreshToken), await isAlive(host, other.body.refresh_token)]).toEqual([false, false])
    expect(await host.knex('auth_user_tokens').where({ user_id: userId, purpose: 'UNDO' })).toEqual([])
    await host.auth.drain()
    expect(mailsTo(host, email)).toEqual(['account_deletion'])

    host.clock.advance(30 * 86_400 - 1)
    await purge(host)
    expect(await isGone(host, userId)).toBe(false)
    host.clock.advance(1)
    expect((await purge(host))['deletions']).toBeGreaterThan(0)
    expect(await isGone(host, userId)).toBe(true)
    expect(told.filter(([name]) => String(name).startsWith('account.'))).toEqual([
      ['account.deletion_requested', { userId }],
      ['account.deleted', { userId }],
    ])
    await post(host, '/signup', { email, password }).expect(201)
    expect((await userOf(host, email)).id).not.toBe(userId)
  })

  test('32.1.1 an account whose address nobody has verified is gone at once, and its owner can sign up', async () => {
    const host = await start()
    const person = await signedIn(host, { emailVerifiedAt: null })
    host.clock.advance(61)
    expect((await askDeletion(host, person)).headers['www-authenticate']).toContain('max_age="60"')
    const again = await post(host, '/login', { email: person.email, password })
    expect((await askDeletion(host, { token: again.body.access_token })).status).toBe(204)
    expect(await isGone(host, person.userId)).toBe(true)
    expect(mailsTo(host, person.email)).toEqual([])
    expect((await post(host, '/signup', { email: person.email, password })).status).toBe(201)
  })

  test('immediate: a credential of the last 60 seconds, a right code or a passkey; nothing older', async () => {
    const host = await start({ settings: { ...immediate, ...mfaSettings, ...passkeySettings } })
    const [plain, coded, keyed] = [await signedIn(host), await enrolled(host), await passkeyOwner(host)]
    host.clock.advance(90)
    const old = await askDeletion(host, plain)
    expect(codeOf(old)).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
    expect(old.headers['www-authenticate']).toContain('max_age="60"')
    expect(codeOf(await askDeletion(host, plain, { code: '123456' }))).toEqual([422, 'MFA_NOT_ENROLLED'])
    expect(codeOf(await askDeletion(host, coded, { code: '000000' }))).toEqual([401, 'MFA_CODE_INVALID'])
    expect(codeOf(await askDeletion(host, keyed, { credential: {}, challenge_token: 'x' }))).toEqual([401, 'PASSKEY_REJECTED'])
    for (const { userId } of [plain, coded, keyed]) expect(await isGone(host, userId)).toBe(false)

    expect((await askDeletion(host, coded, { code: coded.app.nextCode() })).status).toBe(204)
    const { body: options } = await post(host, '/reauthenticate/passkey/options', {}, bearerOf(keyed))
    const credential = keyed.authenticator.get(options)
    expect((await askDeletion(host, keyed, { credential, challenge_token: options.challenge_token })).status).toBe(204)
    const { body } = await post(host, '/reauthenticate', { password }, bearerOf(plain))
    expect((await askDeletion(host, { token: body.access_token })).status).toBe(204)
    for (const { userId } of [plain, coded, keyed]) expect(await isGone(host, userId)).toBe(true)
  })

  test('cookies are cleared', async () => {
    const host = await start({ settings: { ...immediate, tokenDelivery: 'cookie' } })
    const person = await signedIn(host)
    const browser = host.browser()
    await browser.post('/auth/login').send({ email: person.email, password }).expect(200)
    const { status, headers } = await browser.post('/auth/account/delete').set('Sec-Fetch-Site', 'same-origin').send({})
    expect(status).toBe(204)
    expect(String(headers['set-cookie'])).toMatch(/access_token=;.*refresh_token=;/)
    expect((await browser.get('/auth/me')).status).toBe(401)
  })

  test('32.1.2 the mail brings the account back once, without a session; the old session stays closed', async () => {
    const host = await start()
    const told = tell(host)
    const person = await signedIn(host)
    const token = await leave(host, person)
    expect(codeOf(await restore(host, 'nonsense'))).toEqual([401, 'INVALID_TOKEN'])
    const { status, body } = await restore(host, token)
    expect([status, body]).toEqual([200, { message: expect.stringContaining('back') }])
    expect(codeOf(await restore(host, token))).toEqual([401, 'INVALID_TOKEN'])
    expect(await userOf(host, person.email)).toMatchObject({ isActive: true })
    expect((await userOf(host, person.email)).deletionRequestedAt).toBeUndefined()
    expect(await isAlive(host, person.refreshToken)).toBe(false)
    expect((await post(host, '/login', { email: person.email, password })).status).toBe(200)
    expect(told.slice(1, 3)).toEqual([
      ['account.deletion_requested', { userId: person.userId }],
      ['account.deletion_cancelled', { userId: person.userId }],
    ])
    host.clock.advance(40 * 86_400)
    await purge(host)
    expect(await isGone(host, person.userId)).toBe(false)
  })

  test('32.1.2 a right login says until when, and its token brings the account back for 15 minutes', async () => {
    const host = await start()
    const person = await signedIn(host)
    const failed: unknown[] = []
    await leave(host, person)
    host.auth.events.on('login.failed', ({ reason, userId }) => failed.push([reason, userId]))
    expect(codeOf(await post(host, '/login', { email: person.email, password: 'a wrong password, surely' }))).toEqual([401, 'UNAUTHORIZED'])
    const { body } = await post(host, '/login', { email: person.email, password })
    const deletesAt = new Date(host.clock.now().getTime() + 30 * dayMs).toISOString()
    expect(body.details).toEqual({ deletes_at: deletesAt, restore_token: expect.any(String) })
    expect(failed).toEqual([
      ['UNAUTHORIZED', person.userId],
      ['DELETION_PENDING', person.userId],
    ])
    host.clock.advance(901)
    expect(codeOf(await restore(host, body.details.restore_token))).toEqual([401, 'INVALID_TOKEN'])
    const token = await restoreTokenOf(host, person)
    expect((await restore(host, token)).status).toBe(200)
    await post(host, '/login', { email: person.email, password }).expect(200)
    expect(codeOf(await restore(host, token))).toEqual([401, 'INVALID_TOKEN'])
  })

  test('a token of an earlier request does not bring back a later one', async () => {
    const host = await start()
    const person = await signedIn(host)
    const mailed = await leave(host, person)
    const early = await restoreTokenOf(host, person)
    await restore(host, mailed).expect(200)
    host.clock.advance(1)
    const { body } = await post(host, '/login', { email: person.email, password })
    await leave(host, { ...person, token: body.access_token })
    for (const token of [early, mailed]) expect(codeOf(await restore(host, token))).toEqual([401, 'INVALID_TOKEN'])
  })

  test('the password alone of a leaving account with a second factor says no word of the deletion', async () => {
    const host = await start({ settings: mfaSettings })
    const person = await enrolled(host)
    await leave(host, person)
    const first = await post(host, '/login', { email: person.email, password })
    expect(first.body).toMatchObject({ mfa_required: true })
    expect(first.text).not.toMatch(/delet|restore/i)
    expect(codeOf(await verify(host, first.body.mfa_token, '000000'))).toEqual([401, 'MFA_CODE_INVALID'])
    const second = await verify(host, first.body.mfa_token, person.app.nextCode())
    expect(codeOf(second)).toEqual([...isLeaving])
    expect((await restore(host, second.body.details.restore_token)).status).toBe(200)
    expect(await challengeOf(host, person)).toEqual(expect.any(String))
  })

  test('a provider says the code alone in its redirect, and an app gets the details', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie', oauthErrorRedirect: '/in', oauthSuccessRedirect: '/out' } })
    const browser = host.browser()
    const profile = { sub: 'leaving', email: newAddress(), email_verified: true }
    await signIn(host, browser, { profile })
    await browser.post('/auth/account/delete').set('Sec-Fetch-Site', 'same-origin').send({}).expect(202)
    expect((await signIn(host, host.browser(), { profile })).headers['location']).toBe('/in?error=DELETION_PENDING')
    const { id } = await userOf(host, profile.email)
    expect(await host.knex('auth_sessions').where({ user_id: id, revoked_at: null })).toEqual([])
  })

  test('32.1.3 meanwhile nothing is mailed for a way in, and a sign-up tells the owner the way back', async () => {
    const host = await start({ settings: { emailLogin: 'both', ...loginTemplate } })
    const person = await signedIn(host)
    await leave(host, person)
    const before = await userOf(host, person.email)
    await request(host, person.email).expect(202)
    await post(host, '/password-reset/request', { email: person.email })
    await post(host, '/activation/request', { email: person.email })
    await settled(host)
    expect(mailsTo(host, person.email)).toEqual(['account_deletion'])
    expect((await post(host, '/signup', { email: person.email, password: 'another password entirely' })).status).toBe(201)
    const mail = await host.mails.next({ kind: 'notice', to: person.email })
    expect(mail.text).toContain('will be deleted. To keep it, sign in')
    expect(await userOf(host, person.email)).toEqual(before)
  })

  test('32.1.4 an undo counts a leaving account as active, and ends the deletion', async () => {
    const host = await start({ settings: { undoSeconds: 604_800 } })
    const told = tell(host)
    const person = await signedIn(host)
    const stranger = newAddress()
    await moveTo(host, person, stranger)
    const token = await undoTokenOf(host, person.email)
    const mailed = await leave(host, { ...person, email: stranger })
    expect((await undo(host, token)).body).toMatchObject({ address_restored: true })
    expect(await userOf(host, person.email)).toMatchObject({ id: person.userId, isActive: true })
    expect((await userOf(host, person.email)).deletionRequestedAt).toBeUndefined()
    expect(codeOf(await restore(host, mailed))).toEqual([401, 'INVALID_TOKEN'])
    expect(told).toContainEqual(['account.deletion_cancelled', { userId: person.userId }])
  })

  test('32.1.4 activate opens a leaving account; deactivate ends every way back', async () => {
    const host = await start()
    const admin = await adminOn(host)
    const [kept, banned] = [await signedIn(host), await signedIn(host)]
    for (const [person, action] of [[kept, 'activate'] as const, [banned, 'deactivate'] as const]) {
      const tokens = [await leave(host, person), await restoreTokenOf(host, person)]
      const shown = (await read(host, admin, `/${person.userId}`)).body
      expect(shown.deletion_requested_at).toBe(host.clock.now().toISOString())
      await post(host, `/admin/users/${person.userId}/${action}`, {}, bearerOf(admin)).expect(204)
      for (const token of tokens) expect(codeOf(await restore(host, token))).toEqual([401, 'INVALID_TOKEN'])
      expect((await read(host, admin, `/${person.userId}`)).body).toMatchObject({
        deletion_requested_at: null,
        is_active: action === 'activate',
      })
    }
    expect((await post(host, '/login', { email: kept.email, password })).status).toBe(200)
    expect(codeOf(await post(host, '/login', { email: banned.email, password }))).toEqual([401, 'UNAUTHORIZED'])
    host.clock.advance(40 * 86_400)
    await purge(host)
    for (const { userId } of [kept, banned]) expect(await isGone(host, userId)).toBe(false)
  })

  test('after a change to `immediate` the accounts that wait have both ways back, and are due on their day', async () => {
    const before = await start()
    const [mailed, signedInAgain, due] = [await signedIn(before), await signedIn(before), await signedIn(before)]
    const token = await leave(before, mailed)
    for (const person of [signedInAgain, due]) await leave(before, person)
    const host = await start({ settings: immediate })
    expect((await restore(host, token)).status).toBe(200)
    expect((await restore(host, await restoreTokenOf(host, signedInAgain))).status).toBe(200)
    host.clock.advance(31 * 86_400)
    await purge(host)
    expect([await isGone(host, mailed.userId), await isGone(host, signedInAgain.userId), await isGone(host, due.userId)]).toEqual([
      false,
      false,
      true,
    ])
  })

  test('an administrator deletes at once, whatever the setting says, but not itself and not a stranger', async () => {
    const host = await start()
    const told = tell(host)
    const admin = await adminOn(host)
    const person = await signedIn(host)
    expect((await remove(host, admin, person.userId)).status).toBe(204)
    expect(await isGone(host, person.userId)).toBe(true)
    expect(told.at(-1)).toEqual(['account.deleted', { userId: person.userId, actorId: admin.userId }])
    expect(codeOf(await remove(host, admin, person.userId))).toEqual([404, 'NOT_FOUND'])
    expect(codeOf(await remove(host, admin, admin.userId))).toEqual([409, 'CONFLICT'])
    expect(codeOf(await remove(host, await signedIn(host), admin.userId))).toEqual([403, 'FORBIDDEN'])
    expect(await isGone(host, admin.userId)).toBe(false)
  })

  test('the last administrator cannot leave, by any way; of the last two at once one stays', async () => {
    const host = await start({ settings: immediate })
    await host.knex('auth_users').where({ is_admin: true }).update({ is_admin: false })
    const [one, other] = [await adminOn(host), await adminOn(host)]
    const both = await Promise.all([askDeletion(host, one), askDeletion(host, other)])
    expect(both.map(({ status }) => status).sort()).toEqual([204, 409])
    const left = (await isGone(host, one.userId)) ? other : one
    expect(codeOf(await askDeletion(host, left))).toEqual([409, 'CONFLICT'])
    await expect(host.auth.service.deleteUser(left.userId)).rejects.toMatchObject({ code: 'CONFLICT' })
    const soft = await start()
    expect(codeOf(await askDeletion(soft, left))).toEqual([409, 'CONFLICT'])
    expect(await isGone(host, left.userId)).toBe(false)
  })

  test('service.deleteUser refuses with `by` what the route refuses', async () => {
    const host = await start()
    const [admin, person, other] = [await adminOn(host), await signedIn(host), await signedIn(host)]
    await adminOn(host)
    const { service } = host.auth
    await expect(service.deleteUser(person.userId, { by: other.userId })).rejects.toMatchObject({ code: 'FORBIDDEN' })
    await expect(service.deleteUser(admin.userId, { by: admin.userId })).rejects.toMatchObject({ code: 'CONFLICT' })
    await service.deleteUser(person.userId, { by: admin.userId })
    await service.deleteUser(other.userId)
    await expect(service.deleteUser(other.userId)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect([await isGone(host, person.userId), await isGone(host, other.userId)]).toEqual([true, true])
  })
})
