import { describe, expect, test } from 'vitest'
import { bearerOf, type LocalHost, type LocalMember, password, post, resetLink, signedIn } from '../local/people'
import { userById } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { anotherPassword, changePassword, comeBack, undo, undoTokenOf } from '../undo/people'
import { authenticator } from './authenticator'
import { ageFactor, challengeOf, type EnrolledMember, enrolled, onMfa, outcome, signedInAgain, verify } from './people'

const day = 86_400

interface Begun {
  app: ReturnType<typeof authenticator>
  recoveryCodes: string[]
}

async function beginReplacement(host: LocalHost, person: EnrolledMember, code = person.app.nextCode()): Promise<Begun> {
  const { body } = await post(host, '/mfa/enroll', { code }, bearerOf(person)).expect(200)
  return { app: authenticator(body.secret, host.clock), recoveryCodes: body.recovery_codes }
}

const confirm = (host: LocalHost, person: Pick<LocalMember, 'token'>, code: string) =>
  post(host, '/mfa/confirm', { code }, bearerOf(person))

/** Enrolled so long ago that no link can undo it, and in a new session. */
async function longEnrolled(host: LocalHost): Promise<EnrolledMember> {
  const person = await enrolled(host)
  await host.mails.next({ kind: 'notice', to: person.email })
  host.clock.advance(8 * day)
  return signedInAgain(host, person)
}

describe.each(await databases())('replacing a second factor, on $name', (database) => {
  const { start } = onMfa(database)

  test('X8: an owner replaces the phone under the old code, and who reads the mailbox gets no way round either', async () => {
    const host = await start()
    const before = await longEnrolled(host)
    await changePassword(host, before).expect(204)
    const older = await undoTokenOf(host, before.email)
    host.clock.advance(1)
    const refreshed = await post(host, '/refresh', { refresh_token: before.refreshToken }).expect(200)
    const person = { ...before, token: refreshed.body.access_token }

    const phone = await beginReplacement(host, person)
    const { body } = await confirm(host, person, phone.app.code()).expect(200)
    expect(body).toMatchObject({ user_id: person.userId, mfa_required: false })
    const notice = await host.mails.next({ kind: 'notice', to: person.email })
    expect(notice.subject).toBe('Your authenticator app was replaced')
    expect([notice.url, notice.text.includes('cannot be undone with a link')]).toEqual([null, true])

    await undo(host, older).expect(200)
    const reset = await comeBack(host, person.email)
    expect(reset.body).toMatchObject({ mfa_required: true })
    expect(outcome(await verify(host, reset.body.mfa_token, person.app.nextCode()))).toBe('MFA_CODE_INVALID')
    expect(outcome(await verify(host, reset.body.mfa_token, person.recoveryCodes[0]))).toBe('MFA_CODE_INVALID')
    expect((await verify(host, reset.body.mfa_token, phone.recoveryCodes[0])).status).toBe(200)
  })

  test('the old factor is active until the new one is confirmed, and its recovery codes die only then', async () => {
    const host = await start()
    const person = await enrolled(host)
    const phone = await beginReplacement(host, person)

    expect((await verify(host, await challengeOf(host, person), person.recoveryCodes[0])).status).toBe(200)
    expect((await verify(host, await challengeOf(host, person), person.app.nextCode())).status).toBe(200)
    for (const code of [phone.app.nextCode(), phone.recoveryCodes[0]])
      expect(outcome(await verify(host, await challengeOf(host, person), code))).toBe('MFA_CODE_INVALID')

    const elsewhere = await challengeOf(host, person)
    await confirm(host, person, phone.app.nextCode()).expect(200)
    expect(outcome(await verify(host, elsewhere, phone.recoveryCodes[0]))).toBe('MFA_TOKEN_INVALID')
    for (const code of [person.recoveryCodes[1], person.app.nextCode()])
      expect(outcome(await verify(host, await challengeOf(host, person), code))).toBe('MFA_CODE_INVALID')
    expect((await verify(host, await challengeOf(host, person), phone.recoveryCodes[0])).status).toBe(200)
    expect((await verify(host, await challengeOf(host, person), phone.app.nextCode())).status).toBe(200)
  })

  test('a code begins one replacement, and the code that confirms is good for nothing else', async () => {
    const host = await start()
    const person = await enrolled(host)
    const code = person.app.nextCode()
    const phone = await beginReplacement(host, person, code)
    expect(outcome(await post(host, '/mfa/enroll', { code }, bearerOf(person)))).toBe('MFA_CODE_INVALID')

    const first = phone.app.code()
    await confirm(host, person, first).expect(200)
    expect(outcome(await verify(host, await challengeOf(host, person), first))).toBe('MFA_CODE_INVALID')
    expect(outcome(await confirm(host, person, phone.app.nextCode()))).toBe('MFA_NOT_ENROLLED')
  })

  test('of two confirmations at once one replaces the factor', async () => {
    const host = await start()
    const person = await enrolled(host)
    const phone = await beginReplacement(host, person)
    const code = phone.app.code()
    const both = await Promise.all([confirm(host, person, code), confirm(host, person, code)])
    expect(both.map(outcome).sort()).toEqual([200, 'MFA_NOT_ENROLLED'])
  })

  test('another session cannot confirm it, a wrong code does not, and after 15 minutes nobody can', async () => {
    const host = await start()
    const person = await enrolled(host)
    const other = await signedInAgain(host, person)
    const phone = await beginReplacement(host, person)
    expect(outcome(await confirm(host, other, phone.app.code()))).toBe('REAUTHENTICATION_REQUIRED')
    for (const wrong of ['000000', phone.recoveryCodes[0] ?? '', person.app.nextCode()])
      expect(outcome(await confirm(host, person, wrong))).toBe('MFA_CODE_INVALID')
    await confirm(host, person, phone.app.nextCode()).expect(200)

    const late = await enrolled(host)
    const never = await beginReplacement(host, late)
    host.clock.advance(900)
    const { body } = await post(host, '/refresh', { refresh_token: late.refreshToken }).expect(200)
    expect(outcome(await confirm(host, { token: body.access_token }, never.app.code()))).toBe('MFA_NOT_ENROLLED')
    expect((await verify(host, await challengeOf(host, late), late.app.nextCode())).status).toBe(200)
  })

  test('a recovery code begins one too, and the notice’s link brings the old factor back, never none', async () => {
    const host = await start()
    const person = await longEnrolled(host)
    const { totpSecret } = (await userById(host.knex, person.userId)) ?? {}
    const phone = await beginReplacement(host, person, person.recoveryCodes[0])
    expect((await host.mails.next({ kind: 'notice', to: person.email })).subject).toBe('A recovery code was used')
    await confirm(host, person, phone.app.code()).expect(200)

    await undo(host, await undoTokenOf(host, person.email)).expect(200)
    expect(await userById(host.knex, person.userId)).toMatchObject({ totpSecret })
    const reset = await comeBack(host, person.email)
    expect(outcome(await verify(host, reset.body.mfa_token, phone.app.nextCode()))).toBe('MFA_CODE_INVALID')
    expect((await verify(host, reset.body.mfa_token, person.app.nextCode())).status).toBe(200)
  })

  test('a thief’s own factor replaces itself a day later, and the owner’s link still removes it', async () => {
    const host = await start()
    const thief = await enrolled(host)
    const owners = await undoTokenOf(host, thief.email)
    host.clock.advance(day + 60)
    const again = await signedInAgain(host, thief)
    const phone = await beginReplacement(host, again)
    await confirm(host, again, phone.app.code()).expect(200)

    await undo(host, owners).expect(200)
    expect(await userById(host.knex, thief.userId)).toMatchObject({ totpSecret: null, totpEnabledAt: null })
    expect((await comeBack(host, thief.email)).body).toMatchObject({ mfa_required: false })
  })

  test('new recovery codes that a recovery code made before the replacement do not end the ones that came with it', async () => {
    const host = await start()
    const person = await longEnrolled(host)
    await post(host, '/mfa/recovery-codes', { code: person.recoveryCodes[0] }, bearerOf(person)).expect(200)
    const older = await undoTokenOf(host, person.email)
    const phone = await beginReplacement(host, person)
    await confirm(host, person, phone.app.code()).expect(200)
    await undo(host, older).expect(200)
    const reset = await comeBack(host, person.email)
    expect((await verify(host, reset.body.mfa_token, phone.recoveryCodes[0])).status).toBe(200)
  })
})

describe('replacing a second factor, refused', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('without a code 409, with a wrong one 401, and the wrong ones count in the budget of codes', async () => {
    const host = await start()
    const person = await enrolled(host)
    const replace = (code?: string) => post(host, '/mfa/enroll', code === undefined ? {} : { code }, bearerOf(person))
    expect(outcome(await replace())).toBe('MFA_ALREADY_ENROLLED')
    for (let times = 0; times < 5; times += 1) expect(outcome(await replace('000000'))).toBe('MFA_CODE_INVALID')
    const right = person.app.nextCode()
    expect(outcome(await replace(right))).toBe('MFA_THROTTLED')
  })

  test('a young factor replaces nothing, and spends no code; an account without one has nothing to replace', async () => {
    const host = await start()
    const person = await enrolled(host, {}, { isYoung: true })
    const code = person.app.nextCode()
    const { status, body } = await post(host, '/mfa/enroll', { code }, bearerOf(person))
    expect([status, body.code]).toEqual([403, 'MFA_FACTOR_TOO_NEW'])
    await ageFactor(host, person)
    await beginReplacement(host, person, code)

    const member = await signedIn(host)
    expect(outcome(await post(host, '/mfa/enroll', { code: '123456' }, bearerOf(member)))).toBe('MFA_NOT_ENROLLED')
  })

  const meanwhile: Record<string, (host: LocalHost, person: EnrolledMember) => Promise<unknown>> = {
    'the factor is switched off': (host, person) =>
      post(host, '/mfa/disable', { password, code: person.recoveryCodes[0] }, bearerOf(person)).expect(204),
    'an administrator takes the factor off': (host, { userId }) => host.auth.service.resetMfa(userId),
    'the owner resets the password': async (host, { email }) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: anotherPassword }).expect(200),
    'the session ends': (host, { refreshToken }) => host.auth.service.logOut(refreshToken),
    'another replacement is begun': (host, person) => beginReplacement(host, person, person.recoveryCodes[0]),
  }

  test.each(Object.entries(meanwhile))('what is begun is worth nothing once %s', async (_name, happens) => {
    const host = await start()
    const person = await enrolled(host)
    const phone = await beginReplacement(host, person)
    await happens(host, person)
    const { totpSecret } = (await userById(host.knex, person.userId)) ?? {}
    const { status } = await confirm(host, person, phone.app.code())
    expect([401, 422]).toContain(status)
    expect(await userById(host.knex, person.userId)).toMatchObject({ totpSecret })
  })

  test('the service replaces one too; 50 recovery codes wait without anybody reading them in the table', async () => {
    const host = await start({ settings: { mfaRecoveryCodesCount: 50 } })
    const person = await enrolled(host)
    const { service } = host.auth
    const { secret, recoveryCodes } = await service.enrollTotp(person.userId, { code: person.app.nextCode() })
    const { payload } = await host
      .knex('auth_user_tokens')
      .where({ user_id: person.userId, used_at: null, purpose: 'MFA_ENROLMENT' })
      .first()
    expect(payload.length).toBeLessThanOrEqual(180 + 46 * 50) // readiness asks for this width
    for (const presented of [secret, ...recoveryCodes]) expect(payload).not.toContain(presented.replaceAll('-', ''))
    await service.confirmTotp({ userId: person.userId, code: authenticator(secret, host.clock).code() })
    expect((await verify(host, await challengeOf(host, person), recoveryCodes[49])).status).toBe(200)
  })
})
