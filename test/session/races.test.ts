import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthTables, createKnexStore, type KnexStore } from '../../src'
import { newTotpSecret } from '../../src/second-factor/accept-code'
import { addUser } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair, startProcess } from '../support/two-processes'
import { type Call, type Mode, type Outcome, outcomeOf, plainHasher, routerOn, type Task } from './races-child'

const password = 'a quiet harbour in winter'
const newPassword = 'nine green bicycles uphill'
const child = join(import.meta.dirname, 'races-child.ts')

for (const database of await databases()) {
  describe(`refresh from two processes on one ${database.name} database`, { timeout: raceTimeout(120_000) }, () => {
    let opened: OpenDatabase
    let store: KnexStore
    let hashedPassword: string
    /** Prepare the race, and look at what it left behind. */
    let services: Record<Mode, AuthService>
    let pair: ProcessPair<Task, Outcome[]>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
      hashedPassword = await plainHasher.hash(password)
      services = { strict: routerOn(opened.knex, 'strict').service, graced: routerOn(opened.knex, 'graced').service }
      pair = await startPair(child, opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    async function signedIn(changes: object = {}): Promise<{ userId: string; email: string; token: string }> {
      const { id: userId, email } = await addUser(opened.knex, { hashedPassword, ...changes })
      const login = await services.strict.logIn({ email, password })
      if (login.kind !== 'session') throw new Error('no factor is confirmed')
      return { userId, email, token: login.refreshToken }
    }

    async function race(mode: Mode, one: readonly Call[], other: readonly Call[]): Promise<[Outcome[], Outcome[]]> {
      const [first, second] = await pair.race({ kind: 'calls', mode, calls: one }, { kind: 'calls', mode, calls: other })
      return [outcomesOf(first), outcomesOf(second)]
    }

    const refresh = (mode: Mode, token: string) => outcomeOf(services[mode], refreshing(token))
    const rowsOf = (userId: string) => opened.knex('auth_sessions').where({ user_id: userId })
    const liveOf = async (userId: string) => (await rowsOf(userId)).filter(({ revoked_at }) => revoked_at === null)

    const generationsOf = async (userId: string) => (await rowsOf(userId)).map(({ generation }) => generation)

    test('C01, R-110: of twenty refreshes of one token one wins; the session ends, the winner’s successor with it', async () => {
      await repeat(async () => {
        const { userId, token } = await signedIn()
        const ten = Array.from({ length: 10 }, () => refreshing(token))
        const outcomes = (await race('strict', ten, ten)).flat()

        const won = outcomes.flatMap((outcome) => ('token' in outcome ? outcome.token : []))
        expect(won).toHaveLength(1)
        expect(outcomes.filter((outcome) => 'code' in outcome)).toEqual(Array(19).fill(invalid))
        expect(await generationsOf(userId)).toEqual([1])
        expect(await liveOf(userId)).toEqual([])
        expect(await refresh('strict', String(won[0]))).toEqual(invalid)
      })
    })

    test('C01: within a grace window all twenty get one successor, and nobody a second', async () => {
      await repeat(async () => {
        const { userId, token } = await signedIn()
        const ten = Array.from({ length: 10 }, () => refreshing(token))
        const outcomes = (await race('graced', ten, ten)).flat()

        const tokens = new Set(outcomes.map((outcome) => ('token' in outcome ? outcome.token : outcome.code)))
        expect([...tokens]).toEqual([expect.stringMatching(/^[\w-]{112}$/)])
        expect(await generationsOf(userId)).toEqual([1])
        expect(await liveOf(userId)).toHaveLength(1)
      })
    })

    test('a replay against the use of its successor: it happened before, or the family has ended', async () => {
      await repeat(async () => {
        const { userId, token } = await signedIn()
        const first = await refresh('graced', token)
        const successor = 'token' in first ? first.token : ''
        const [[replayed], [used]] = await race('graced', [refreshing(token)], [refreshing(successor)])

        expect(used).toEqual({ token: expect.stringMatching(/^[\w-]{112}$/) })
        const live = await liveOf(userId)
        expect([replayed, live.length]).toEqual('code' in Object(replayed) ? [invalid, 0] : [{ token: successor }, 1])
        expect(await generationsOf(userId)).toEqual([2])
      })
    })

    /** Each ends every session of before it, and says how many of its own are alive then. */
    const ends: Record<string, { live: number; call(person: { userId: string; email: string; token: string }): Promise<Call> }> = {
      logout: { live: 0, call: async ({ token }) => ({ verb: 'logOut', given: [token] }) },
      'logout of all sessions': { live: 0, call: async ({ token }) => ({ verb: 'logOut', given: [token, { allSessions: true }] }) },
      deactivation: { live: 0, call: async ({ userId }) => ({ verb: 'deactivate', given: [userId] }) },
      'a password change': {
        live: 0,
        call: async ({ userId }) => ({ verb: 'changePassword', given: [{ userId, currentPassword: password, newPassword }] }),
      },
      'a reset': {
        live: 1,
        call: async ({ userId }) => ({ verb: 'resetPassword', given: [{ token: await resetToken(userId), newPassword }] }),
      },
      'a confirmed factor': {
        live: 1,
        call: async ({ userId }) => {
          const secret = newTotpSecret()
          await store.users.update(userId, { totpSecret: secret })
          const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate()
          return { verb: 'confirmTotp', given: [{ userId, amr: ['pwd'], code }] }
        },
      },
    }

    async function resetToken(userId: string): Promise<string> {
      const token = randomBytes(32).toString('base64url')
      const [createdAt, expiresAt] = [new Date(), new Date(Date.now() + 3_600_000)]
      const tokenHash = createHash('sha256').update(token).digest('hex')
      await store.userTokens.insert({ userId, tokenHash, purpose: 'PASSWORD_RESET', payload: null, expiresAt, usedAt: null, createdAt })
      return token
    }

    for (const [what, { live, call }] of Object.entries(ends)) {
      test(`C02, R-113, R-114: refresh against ${what}: nothing of before lives, whichever came first, and replays change nothing`, async () => {
        await repeat(async (round) => {
          const mode = round % 2 === 0 ? 'strict' : 'graced'
          const person = await signedIn()
          const one = [refreshing(person.token), ...(mode === 'graced' ? [refreshing(person.token)] : [])]
          const [refreshed, [ended]] = await race(mode, one, [await call(person)])

          expect(ended).toEqual({ token: live === 0 ? '' : expect.stringMatching(/^[\w-]{112}$/) })
          for (const outcome of refreshed) {
            if ('code' in outcome) expect(['INVALID_TOKEN', 'ACCOUNT_INACTIVE']).toContain(outcome.code)
            else expect(await refresh(mode, outcome.token)).toEqual(invalid)
          }
          expect(await liveOf(person.userId)).toHaveLength(live)
        }, 20)
      })
    }

    test('C03: a process that dies the moment it noticed a reuse has ended the family for good', async () => {
      await repeat(async () => {
        const { userId, token } = await signedIn()
        const next = await refresh('strict', token)
        const other = await startProcess<Task, Outcome[]>(child, opened)

        await expect(other.ask({ kind: 'die after reuse', token })).rejects.toThrow('the other process ended')

        const rows = await opened.connect()('auth_sessions').where({ user_id: userId })
        expect(rows.map(({ revoked_at }) => revoked_at !== null)).toEqual([true])
        expect(await refresh('strict', 'token' in next ? next.token : '')).toEqual(invalid)
      }, 1)
    })

    test('F01: killed after the rotation and before its answer: with a window the old token still buys the one successor, without it the family ends', async () => {
      const modes: readonly Mode[] = ['strict', 'graced']
      const die = async (mode: Mode) => {
        const { userId, token } = await signedIn()
        const other = await startProcess<Task, Outcome[]>(child, opened)
        await expect(other.ask({ kind: 'die after rotation', mode, token })).rejects.toThrow('the other process ended')
        return { mode, userId, token }
      }
      for (const { mode, userId, token } of await Promise.all(modes.map(die))) {
        expect(await liveOf(userId)).toHaveLength(1)

        const retried = await refresh(mode, token)
        expect(retried).toEqual(mode === 'strict' ? invalid : { token: expect.stringMatching(/^[\w-]{112}$/) })
        expect(await liveOf(userId)).toHaveLength(mode === 'strict' ? 0 : 1)
        expect(await generationsOf(userId)).toEqual([1])
        if ('token' in retried) expect(await refresh(mode, retried.token)).toEqual({ token: expect.any(String) })
      }
    })
  })
}

const invalid = { code: 'INVALID_TOKEN' }

function refreshing(token: string): Call {
  return { verb: 'refresh', given: [token] }
}

function outcomesOf(report: Report<Outcome[]>): Outcome[] {
  if ('error' in report) throw new Error(`the other process: ${report.error}`)
  return report
}
