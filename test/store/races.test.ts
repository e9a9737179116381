import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables, migrationSource } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { AT, freshHash, later, newIdentity, newSession, newUser, newUserToken, rotationOf } from './contract'
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
    const livingSessions = async (userId: string) => (await store.sessions.listForUser(userId, AT)).length
    const insertSession = async (userId: string) => {
      const session = newSession(userId)
      await store.sessions.insert(session)
      return session
    }

    test('createAuthTables may run in both at once, and again', async () => {
      for (let number = 0; number < 8; number++) {
        await dropTables(opened)
        expect(await pair.race({ verb: 'createTables' }, { verb: 'createTables' })).toEqual([{ won: true }, { won: true }])
      }
      await createAuthTables(opened.knex)
    })

    test('migrate up may run in both at once: each version is recorded once, and the lock is free', async () => {
      const versions = await migrationSource.getMigrations([])
      for (let number = 0; number < 4; number++) {
        const table = `record_${number}`
        await dropTables(opened)
        const task: Task = { verb: 'migrateUp', table }
        expect(await pair.race(task, task)).toEqual([{ won: true }, { won: true }])
        expect(await opened.knex(table).orderBy('id').pluck('name')).toEqual(
          versions.map((version) => migrationSource.getMigrationName(version)),
        )
        expect(await opened.knex(`${table}_lock`).pluck('is_locked')).toEqual([0])
      }
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

    test('a refresh token is rotated by one of them, and its session is ended by one of them', async () => {
      const { id } = await insertUser()
      await repeat(async () => {
        const { id: sessionId, tokenHash } = await insertSession(id)
        const rotate = (): Task => ({ verb: 'rotate', rotation: rotationOf(tokenHash) })
        expect(winners(await pair.race(rotate(), rotate()))).toBe(1)
        const revoke: Task = { verb: 'revoke', id: sessionId, at: AT }
        expect(winners(await pair.race(revoke, revoke))).toBe(1)
        expect(await livingSessions(id)).toBe(0)
      })
    })

    test('rotate against revokeForUser: no living session afterwards, whichever came first', async () => {
      const { id: userId } = await insertUser()
      await repeat(async () => {
        const { tokenHash } = await insertSession(userId)
        const reports = await pair.race({ verb: 'rotate', rotation: rotationOf(tokenHash) }, { verb: 'revokeForUser', userId, at: AT })
        expect(errors(reports)).toEqual([])
        expect(reports[1]).toEqual({ won: true })
        expect(await livingSessions(userId)).toBe(0)
      })
    })

    test('rotate against deactivate: no living session afterwards', async () => {
      await repeat(async () => {
        const { id: userId } = await insertUser()
        const { tokenHash } = await insertSession(userId)
        const reports = await pair.race({ verb: 'rotate', rotation: rotationOf(tokenHash) }, { verb: 'deactivate', userId, at: AT })
        expect(errors(reports)).toEqual([])
        expect(await livingSessions(userId)).toBe(0)
      })
    })

    test('the lease of the purge goes to one of them, and again when it has ended', async () => {
      let now = AT.getTime()
      await repeat(async () => {
        const take = { verb: 'takePurge', now, until: now + 1_000 } as const
        expect((await pair.race(take, take)).filter((report) => 'won' in report && report.won)).toHaveLength(1)
        now += 1_000
      })
    })

    test('a social login against deactivate: no living session afterwards', async () => {
      await repeat(async () => {
        const { id: userId } = await insertUser()
        const link = await store.identities.insert(newIdentity(userId))
        const reports = await pair.race({ verb: 'logIn', link, at: later(5) }, { verb: 'deactivate', userId, at: AT })
        expect(errors(reports)).toEqual([])
        expect(await livingSessions(userId)).toBe(0)
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
        expect(await livingSessions(userId)).toBe(loggedIn ? 1 : 0)
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

async function dropTables({ knex }: OpenDatabase): Promise<void> {
  for (const version of (await migrationSource.getMigrations([])).toReversed())
    await (await migrationSource.getMigration(version)).down?.(knex)
}
