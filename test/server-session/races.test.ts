import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthTables, createKnexStore, type KnexStore } from '../../src'
import { addUser } from '../social/accounts-at-hand'
import { newSession } from '../store/contract'
import { databases, type OpenDatabase } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { ahead, routerOn } from './race-host'
import type { Outcome, Task } from './races-child'

const password = 'a quiet harbour in winter'
const newPassword = 'nine green bicycles uphill'

for (const database of await databases()) {
  describe(`server-side sessions from two processes on one ${database.name} database`, { timeout: raceTimeout(60_000) }, () => {
    let opened: OpenDatabase
    let store: KnexStore
    /** Prepares the race, and looks at what it left behind. */
    let service: AuthService
    let pair: ProcessPair<Task, Outcome>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
      service = routerOn(opened.knex).service
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const member = async () => addUser(opened.knex, { hashedPassword: await fastHasher().hash(password) })
    const sessionOf = async (email: string) => {
      const login = await service.logInToSession({ email, password })
      if (login.kind !== 'session') throw new Error('no second factor was enrolled')
      return login.sessionToken
    }
    const alive = async (userId: string) => (await store.sessions.listForUser(userId, new Date())).map(({ kind, amr }) => `${kind} ${amr}`)
    const race = async (one: Task, other: Task) => (await pair.race(one, other)).map(outcomeOf)

    test('C20: a login into a session against deactivate: once both are over no session is there', async () => {
      await repeat(async () => {
        const { id: userId, email } = await member()
        const sessionToken = await sessionOf(email)
        const [login, deactivate] = await race({ verb: 'logIn', email, password, sessionToken }, { verb: 'deactivate', userId })

        expect(deactivate?.said).toBe('ok')
        expect(login?.said).toMatch(/^([\w-]{112}|UNAUTHORIZED)$/)
        expect(await alive(userId)).toEqual([])
      })
    })

    test('C06: a login into a session with the old password against a reset leaves no session either', async () => {
      await repeat(async () => {
        const { id: userId, email } = await member()
        const token = (await service.requestPasswordReset(email))?.token ?? ''
        const [login, reset] = await race({ verb: 'logIn', email, password }, { verb: 'reset', token, newPassword })

        expect(reset?.said).toBe('ok')
        expect(login?.said).toMatch(/^([\w-]{112}|UNAUTHORIZED)$/)
        expect(await alive(userId)).toEqual(['tokens email']) // the reset's own
      })
    })

    test('24.7: two logins at once leave maxSessionsPerUser sessions, the newest among them, and end the one unused longest', async () => {
      await repeat(async () => {
        const { id: userId, email } = await member()
        const ids: string[] = []
        for (let session = 0; session < 99; session++) {
          const [lastSeenAt, endsAt] = [new Date(Date.now() - (99 - session) * 1000), new Date(Date.now() + 86_400_000)]
          const row = newSession(userId, { createdAt: lastSeenAt, lastSeenAt, expiresAt: endsAt, endsAt })
          await store.sessions.insert(row)
          ids.push(row.id)
        }
        const logIn: Task = { verb: 'logIn', email, password }
        for (const { said } of await race(logIn, logIn)) expect(await service.findSession(said)).not.toBeNull()
        const living = new Set((await store.sessions.listForUser(userId, new Date())).map(({ id }) => id))
        expect(living.size).toBe(100)
        expect(ids.filter((id) => !living.has(id))).toEqual([ids[0]])
      }, 5)
    })

    test('two logouts of one session are both content, and one is told; a request that moves it on meanwhile revives nothing', async () => {
      await repeat(async (round) => {
        const { id: userId, email } = await member()
        const sessionToken = await sessionOf(email)
        const logOut: Task = { verb: 'logOut', sessionToken }
        const other: Task = round % 2 === 0 ? logOut : { verb: 'find', sessionToken }
        const outcomes = await race(logOut, other)

        expect(outcomes.flatMap(({ events }) => events)).toEqual(['logout'])
        expect(outcomes[0]?.said).toBe('ok')
        expect(await alive(userId)).toEqual([])
        expect(await routerOn(opened.knex, ahead).service.findSession(sessionToken)).toBeNull()
      })
    })
  })
}

function outcomeOf(report: Report<Outcome>): Outcome {
  if ('error' in report) throw new Error(`the other process: ${report.error}`)
  return report
}
