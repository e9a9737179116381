import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewIdentity } from '../../src/store/auth-store'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { type OtherProcess, startProcess } from '../support/two-processes'
import { later, newIdentity, newSession, newUser, newUserToken, rotationOf } from './contract'
import type { Answer, Task } from './races-child'

// The rest of the suite is indifferent to the zone too: TZ=Asia/Tokyo npx vitest run --config test/vitest.config.mts test/store
const INSTANTS = [
  '2026-03-29T01:30:00.987Z',
  '2018-11-04T00:30:00.001Z', // an hour that Sao Paulo skipped, read as its local time
  '2018-02-18T00:30:00.999Z', // an hour that it had twice
  '1969-12-31T23:59:59.001Z',
  '2199-12-31T23:59:59.999Z',
].map((text) => new Date(text))

for (const database of await databases()) {
  describe(`processes in Tokyo and in Sao Paulo on one ${database.name} database`, () => {
    let opened: OpenDatabase
    let store: KnexStore
    let tokyo: OtherProcess<Task, Answer>
    let saoPaulo: OtherProcess<Task, Answer>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
      const file = join(import.meta.dirname, 'races-child.ts')
      tokyo = await startProcess(file, opened, 'Asia/Tokyo')
      saoPaulo = await startProcess(file, opened, 'America/Sao_Paulo')
    }, 60_000)
    afterAll(async () => {
      for (const child of [tokyo, saoPaulo]) await child?.stop()
      await opened?.close()
    })

    test('what one writes the other reads, and so does this one, to the millisecond', async () => {
      for (const [writer, reader] of [
        [tokyo, saoPaulo],
        [saoPaulo, tokyo],
      ] as const) {
        const { id } = await store.users.insert(newUser())
        for (const [index, createdAt] of INSTANTS.entries()) {
          const identity: NewIdentity = newIdentity(id, { provider: `p${index}`, createdAt, lastLoginAt: later(index, createdAt) })
          expect(await writer.ask({ verb: 'insertIdentity', identity })).toEqual({ won: true })
          expect(await reader.ask({ verb: 'seesIdentity', identity }), createdAt.toISOString()).toEqual({ won: true })
          const elsewhere = { ...identity, createdAt: later(1, createdAt) }
          expect(await reader.ask({ verb: 'seesIdentity', identity: elsewhere })).toEqual({ won: false })
        }
        const listed = await store.identities.listForUser(id)
        expect(new Set(listed.map(({ createdAt }) => createdAt.getTime()))).toEqual(new Set(INSTANTS.map((instant) => instant.getTime())))
      }
    })

    test('what ends, ends for both at the same millisecond', async () => {
      const { id } = await store.users.insert(newUser())
      for (const child of [tokyo, saoPaulo]) {
        for (const end of INSTANTS) {
          const { tokenHash } = await store.userTokens.insert(newUserToken(id, { expiresAt: end }))
          expect(await child.ask({ verb: 'consume', tokenHash, at: end })).toEqual({ won: false })
          expect(await child.ask({ verb: 'consume', tokenHash, at: later(-1, end) })).toEqual({ won: true })
          const session = newSession(id, { expiresAt: end, endsAt: end })
          await store.sessions.insert(session)
          const rotate = (at: Date): Task => ({ verb: 'rotate', rotation: rotationOf(session.tokenHash, { at }) })
          expect(await child.ask(rotate(end))).toEqual({ won: false })
          expect(await child.ask(rotate(later(-1, end)))).toEqual({ won: true })
        }
      }
    })
  })
}
