import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthTables, createKnexStore, type KnexStore } from '../../src'
import { hashRecoveryCode, newRecoveryCodes, newTotpSecret } from '../../src/second-factor/accept-code'
import { addUser, someTime } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { type Call, countedHere, type Outcome, plainHasher, serviceOn, type Task } from './races-child'

const password = 'a quiet harbour in winter'
const newPassword = 'nine green bicycles uphill'

for (const database of await databases()) {
  describe(`the second factor from two processes on one ${database.name} database`, { timeout: raceTimeout(90_000) }, () => {
    let opened: OpenDatabase
    let store: KnexStore
    /** Prepares the race, and looks at what it left behind. */
    let service: AuthService
    let pair: ProcessPair<Task, Outcome[]>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
      service = serviceOn(opened.knex)
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const race = async (one: Task, other: Task): Promise<Outcome[]> => (await pair.race(one, other)).flatMap(outcomesOf)
    const member = async () => addUser(opened.knex, { hashedPassword: await plainHasher.hash(password) })

    /** With a factor of which no code was accepted yet. */
    async function enrolledMember() {
      const secret = newTotpSecret()
      const recoveryCodes = newRecoveryCodes(4)
      const hashedPassword = await plainHasher.hash(password)
      const { id: userId, email } = await addUser(opened.knex, {
        hashedPassword,
        totpSecret: secret,
        totpEnabledAt: someTime,
        totpLastStep: null,
      })
      await store.recoveryCodes.replaceForUser(
        userId,
        recoveryCodes.map((code) => hashRecoveryCode(userId, code)),
      )
      return { userId, email, secret, recoveryCodes }
    }

    async function challenge(email: string): Promise<string> {
      const login = await service.logIn({ email, password })
      if (login.kind !== 'challenge') throw new Error('a login of an enrolled account is a challenge')
      return login.mfaToken
    }

    const liveSessions = async (userId: string) => (await opened.knex('auth_sessions').where({ user_id: userId, revoked_at: null })).length

    test('C08: of one code shown four times, each with a challenge of its own, one is accepted', async () => {
      await repeat(async () => {
        const { userId, email, secret } = await enrolledMember()
        const tokens = await Promise.all([1, 2, 3, 4].map(() => challenge(email)))
        const code = codeOf(secret) // once: two codes of two 30-second steps would both be right
        const calls = tokens.map((mfaToken) => verifying(mfaToken, code))
        const outcomes = await race(calls.slice(0, 2), calls.slice(2))

        expect(outcomes.map(codeOrOk).sort()).toEqual(['MFA_CODE_INVALID', 'MFA_CODE_INVALID', 'MFA_CODE_INVALID', 'ok'])
        expect(await liveSessions(userId)).toBe(1)
      })
    })

    test('C08: of one code shown to verify, password change, disable and a new set of recovery codes, one has it', async () => {
      await repeat(async (round) => {
        const { userId, email, secret } = await enrolledMember()
        const code = codeOf(secret)
        const calls: Call[] = [
          verifying(await challenge(email), code),
          { verb: 'changePasswordWithMfa', input: { userId, code, newPassword } },
          { verb: 'disableTotp', input: { userId, password, code } },
          { verb: 'regenerateRecoveryCodes', input: { userId, code } },
        ]
        const turned = [...calls.slice(round % 4), ...calls.slice(0, round % 4)]
        const outcomes = await race(turned.slice(0, 2), turned.slice(2))

        const [winner, ...more] = turned.filter((_, index) => codeOrOk(outcomes[index]) === 'ok').map(({ verb }) => verb)
        expect(more).toEqual([])
        // Whoever comes after the winner meets a spent code, a challenge of before, no factor, or another password.
        const refusals = ['MFA_CODE_INVALID', 'MFA_TOKEN_INVALID', 'MFA_NOT_ENROLLED', 'UNAUTHORIZED']
        for (const outcome of outcomes) expect(['ok', ...refusals]).toContain(codeOrOk(outcome))
        const user = await store.users.find(userId)
        expect(user?.totpEnabledAt === null).toBe(winner === 'disableTotp')
        expect(user?.hashedPassword).toBe(await plainHasher.hash(winner === 'changePasswordWithMfa' ? newPassword : password))
        if (winner !== 'disableTotp') expect(user?.totpLastStep).toBeGreaterThan(0)
      })
    })

    test('C09: of one recovery code shown four times, one is accepted, and it is spent once', async () => {
      await repeat(async () => {
        const { userId, email, recoveryCodes } = await enrolledMember()
        const tokens = await Promise.all([1, 2, 3, 4].map(() => challenge(email)))
        const calls = tokens.map((token) => verifying(token, recoveryCodes[0] ?? ''))
        const outcomes = await race(calls.slice(0, 2), calls.slice(2))

        expect(outcomes.map(codeOrOk).sort()).toEqual(['MFA_CODE_INVALID', 'MFA_CODE_INVALID', 'MFA_CODE_INVALID', 'ok'])
        expect(await opened.knex('auth_recovery_codes').where({ user_id: userId }).whereNotNull('used_at')).toHaveLength(1)
      })
    })

    test('C10: of one challenge with four factors that are right, one session comes, and the other factors are unspent', async () => {
      await repeat(async () => {
        const { userId, email, secret, recoveryCodes } = await enrolledMember()
        const token = await challenge(email)
        const codes = [codeOf(secret), ...recoveryCodes.slice(0, 3)]
        const calls = codes.map((code) => verifying(token, code))
        const outcomes = await race(calls.slice(0, 2), calls.slice(2))

        expect(outcomes.map(codeOrOk).sort()).toEqual(['MFA_TOKEN_INVALID', 'MFA_TOKEN_INVALID', 'MFA_TOKEN_INVALID', 'ok'])
        expect(await liveSessions(userId)).toBe(1)
        const used = await opened.knex('auth_recovery_codes').where({ user_id: userId }).whereNotNull('used_at')
        const stepIsSpent = (await store.users.find(userId))?.totpLastStep !== null
        expect(used.length + Number(stepIsSpent)).toBe(1)
      })
    })

    test('C11: of twelve wrong codes at once, over both processes five are looked at', async () => {
      let judged = 0
      await repeat(async () => {
        const { email, secret } = await enrolledMember()
        const token = await challenge(email)
        const right = [-1, 0, 1, 2].map((step) => codeOf(secret, step))
        const wrong = Array.from({ length: 10 }, (_, digit) => `00000${digit}`).filter((code) => !right.includes(code))
        const guesses = wrong.slice(0, 6).map((code): Call => ({ ...verifying(token, code), counted: true }))
        const outcomes = (await race(guesses, guesses)).map(codeOrOk)
        if (outcomes.includes(countedHere)) return

        judged += 1
        expect(outcomes.filter((code) => code === 'MFA_CODE_INVALID')).toHaveLength(5)
        expect(outcomes.filter((code) => code === 'MFA_THROTTLED')).toHaveLength(7)
      }, 10)
      expect(judged).toBeGreaterThan(3)
    })

    test('C12: two enrolments at once: the secret that stays is the one that confirms, with its recovery codes', async () => {
      await repeat(async () => {
        const { id: userId } = await member()
        const enrol: Call = { verb: 'enrollTotp', input: userId }
        const enrolments = (await race([enrol], [enrol])).map(enrolmentOf)
        const stored = (await store.users.find(userId))?.totpSecret
        const loser = enrolments.find(({ secret }) => secret !== stored)
        const winner = enrolments.find(({ secret }) => secret === stored)

        const losing = codeOf(loser?.secret ?? '')
        // Three codes of a million are right at any time: now and then the other secret's is one of them.
        const rightNow = [-1, 0, 1].map((step) => codeOf(winner?.secret ?? '', step))
        if (!rightNow.includes(losing)) expect(await codeOfRefusal(service.confirmTotp({ userId, code: losing }))).toBe('MFA_CODE_INVALID')
        await service.confirmTotp({ userId, code: codeOf(winner?.secret ?? '') })
        expect(await opened.knex('auth_recovery_codes').where({ user_id: userId })).toHaveLength(8)
        const [code = ''] = winner?.recoveryCodes ?? []
        expect(await codeOfRefusal(service.regenerateRecoveryCodes({ userId, code }))).toBe('ok')
      })
    })

    test('C12: an enrolment against a confirm: the secret that is active is the one whose code confirmed it', async () => {
      await repeat(async () => {
        const { id: userId } = await member()
        const first = await service.enrollTotp(userId)
        const [enrolled, confirmed] = await race(
          [{ verb: 'enrollTotp', input: userId }],
          [{ verb: 'confirmTotp', input: { userId, code: codeOf(first.secret) } }],
        )
        const user = await store.users.find(userId)

        if (codeOrOk(confirmed) === 'ok') {
          expect([codeOrOk(enrolled), user?.totpSecret]).toEqual(['MFA_ALREADY_ENROLLED', first.secret])
          expect(user?.totpEnabledAt).not.toBeNull()
        } else {
          expect([codeOrOk(enrolled), codeOrOk(confirmed)]).toEqual(['ok', 'MFA_CODE_INVALID'])
          expect([user?.totpSecret, user?.totpEnabledAt]).toEqual([enrolled && enrolmentOf(enrolled).secret, null])
        }
      })
    })
  })
}

const verifying = (mfaToken: string, code: string): Call => ({ verb: 'verifyMfa', input: { mfaToken, code } })

function codeOf(secret: string, step = 0): string {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: 30 })
  return totp.generate({ timestamp: Date.now() + step * 30_000 })
}

function outcomesOf(report: Report<Outcome[]>): Outcome[] {
  if ('error' in report) throw new Error(`the other process: ${report.error}`)
  return report
}

function codeOrOk(outcome: Outcome | undefined): string {
  return outcome && 'code' in outcome ? outcome.code : 'ok'
}

function enrolmentOf(outcome: Outcome): { secret: string; recoveryCodes: string[] } {
  if (!('ok' in outcome)) throw new Error(`enrolling: ${outcome.code}`)
  return outcome.ok as { secret: string; recoveryCodes: string[] } // what enrollTotp answers
}

async function codeOfRefusal(operation: Promise<unknown>): Promise<string> {
  return operation.then(
    () => 'ok',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  )
}
