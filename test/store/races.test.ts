import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables, migrationSource } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { AT, freshHash, later, newIdentity, newRefreshToken, newUser, newUserToken, rotationOf } from './contract'
import type { Answer, Task } from './races-child'

for (const database of await databases()) {
  describe(`two processes on one ${database.name} database`, { timeout: raceTimeout(60_000) }, () => {
    let opened: OpenDatabase
    let store: KnexStore
    let pair: ProcessPair<Task, Answer>

    beforeAll(async () => {
      opened = await database.open()
      store = createKnexStore({ knex: opened.knex })
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const insertUser = () => store.users.insert(newUser())
    const liveTokens = async (userId: string) => {
      const rows = await opened.knex('auth_refresh_tokens').where({ user_id: userId, used_at: null, revoked_at: null }).select('id')
      return rows.length
    }
    const insertToken = async (userId: string) => {
      const token = newRefreshToken(userId)
      await store.refreshTokens.insert(token)
      return token
    }

    test('createAuthTables may run in both at once, and again', async () => {
      const migration = await migrationSource.getMigration((await migrationSource.getMigrations([]))[0])
      for (let number = 0; number < 8; number++) {
        await migration.down?.(opened.knex)
        expect(await pair.race({ verb: 'createTables' }, { verb: 'createTables' })).toEqual([{ won: true }, { won: true }])
      }
      await createAuthTables(opened.knex)
    })

    test('a one-shot token is spent by one of them', async () => {
      const { id } = await insertUser()
      await repeat(async () => {
        const { tokenHash } = await store.userTokens.insert(newUserToken(id))
        const task: Task = { verb: 'consume', tokenHash, at: AT }
        expect(winners(await pair.race(task, task))).toBe(1)
      })
    })

    test('a TOTP step and a recovery code are accepted from one of them', async () => {
      const { id: userId } = await insertUser()
      await repeat(async (number) => {
        const step: Task = { verb: 'advanceTotpStep', userId, step: number }
        expect(winners(await pair.race(step, step))).toBe(1)
        const codeHash = freshHash()
        await store.recoveryCodes.replaceForUser(userId, [codeHash])
        const code: Task = { verb: 'consumeRecoveryCode', userId, codeHash, at: AT }
        expect(winners(await pair.race(code, code))).toBe(1)
      })
    })

    test('an identity is inserted by one of them; the other is told that it exists', async () => {
      const [one, other] = [await insertUser(), await insertUser()]
      await repeat(async (number) => {
        const subject = freshHash()
        const provider = `p${number}`
        const reports = await pair.race(
          { verb: 'insertIdentity', identity: newIdentity(one.id, { provider, subject }) },
          { verb: 'insertIdentity', identity: newIdentity(other.id, { provider, subject }) },
        )
        expect(reports).toContainEqual({ won: true })
        expect(reports).toContainEqual({ error: 'DuplicateRecordError' })
        expect(await opened.knex('auth_identities').where({ provider, subject })).toHaveLength(1)
      })
    })

    test('a refresh token is rotated by one of them, and after revokeFamily nothing of it lives', async () => {
      const { id } = await insertUser()
      await repeat(async () => {
        const { tokenHash, familyId } = await insertToken(id)
        const reports = await pair.race(
          { verb: 'rotate', rotation: rotationOf(tokenHash) },
          { verb: 'rotate', rotation: rotationOf(tokenHash) },
        )
        expect(winners(reports)).toBe(1)
        expect(await opened.knex('auth_refresh_tokens').where({ family_id: familyId })).toHaveLength(2)
        expect(await store.refreshTokens.revokeFamily(familyId, AT)).toBe(1)
        expect(await liveTokens(id)).toBe(0)
      })
    })

    test('rotate against revokeForUser: no live token afterwards, whichever came first', async () => {
      const { id: userId } = await insertUser()
      await repeat(async () => {
        const { tokenHash } = await insertToken(userId)
        const reports = await pair.race({ verb: 'rotate', rotation: rotationOf(tokenHash) }, { verb: 'revokeForUser', userId, at: AT })
        expect(errors(reports)).toEqual([])
        expect(reports[1]).toEqual({ won: true })
        expect(await liveTokens(userId)).toBe(0)
      })
    })

    test('rotate against deactivate: no live token afterwards', async () => {
      await repeat(async () => {
        const { id: userId } = await insertUser()
        const { tokenHash } = await insertToken(userId)
        const reports = await pair.race({ verb: 'rotate', rotation: rotationOf(tokenHash) }, { verb: 'deactivate', userId, at: AT })
        expect(errors(reports)).toEqual([])
        expect(await liveTokens(userId)).toBe(0)
      })
    })

    test('a social login against deactivate: no live token afterwards', async () => {
      await repeat(async () => {
        const { id: userId } = await insertUser()
        const link = await store.identities.insert(newIdentity(userId))
        const reports = await pair.race({ verb: 'logIn', link, at: later(5) }, { verb: 'deactivate', userId, at: AT })
        expect(errors(reports)).toEqual([])
        expect(await liveTokens(userId)).toBe(0)
      })
    })

    test('a social login against its unlinking: it happened before, or not at all', async () => {
      await repeat(async () => {
        const { id: userId } = await insertUser()
        const link = await store.identities.insert(newIdentity(userId))
        const [login, unlink] = await pair.race({ verb: 'logIn', link, at: later(5) }, { verb: 'unlink', link })
        expect(unlink).toEqual({ won: true })
        const loggedIn = 'won' in login && login.won
        expect(errors([login])).toEqual([])
        expect((await store.users.find(userId))?.lastLoginAt).toEqual(loggedIn ? later(5) : null)
        expect(await liveTokens(userId)).toBe(loggedIn ? 1 : 0)
        expect(await store.identities.listForUser(userId)).toEqual([])
      })
    })
  })
}

function winners(reports: Report<Answer>[]): number {
  expect(errors(reports)).toEqual([])
  return reports.filter((report) => 'won' in report && report.won).length
}

function errors(reports: Report<Answer>[]): Report<Answer>[] {
  return reports.filter((report) => 'error' in report)
}
