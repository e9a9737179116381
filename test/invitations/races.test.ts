import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthTables } from '../../src'
import { newAddress } from '../local/people'
import { addUser, someTime } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, startPair } from '../support/two-processes'
import { type Outcome, serviceOn, type Task } from './races-child'

const browsers = 100

for (const database of await databases()) {
  describe(`one invitation with one use, from two processes on one ${database.name} database`, { timeout: raceTimeout(90_000) }, () => {
    let opened: OpenDatabase
    let service: AuthService
    let pair: ProcessPair<Task, Outcome>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      service = serviceOn(opened.knex)
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const sum = (outcomes: readonly object[], name: string) =>
      outcomes.reduce((total, outcome) => total + Number((outcome as Outcome)[name] ?? 0), 0)
    const usesOf = (id: string) => opened.knex('auth_invitation_uses').where({ invitation_id: id }).pluck('user_id')
    const leftOf = async (id: string) => Number((await opened.knex('auth_invitations').where({ id }).first('uses_left')).uses_left)

    test('200 browsers sign up with it at once: one account gets it', async () => {
      const { id, token: invitation } = await service.invitations.create()
      const links: string[] = []
      for (let count = 0; count < 2 * browsers; count++) {
        const { url } = await service.requestEmailLogin(newAddress(), { invitation })
        links.push(String(url?.split('/').at(-1)))
      }
      const before = (await opened.knex('auth_users').pluck('id')).length
      const outcomes = await pair.race({ confirm: links.slice(0, browsers) }, { confirm: links.slice(browsers) })
      expect([sum(outcomes, 'ok'), sum(outcomes, 'INVITATION_REQUIRED')]).toEqual([1, 2 * browsers - 1])
      expect((await opened.knex('auth_users').pluck('id')).length).toBe(before + 1)
      expect([await leftOf(id), (await usesOf(id)).length]).toEqual([0, 1])
    })

    test('200 people redeem it at once: one account gets it', async () => {
      const { id, token } = await service.invitations.create()
      const people: string[] = []
      for (let count = 0; count < 2 * browsers; count++) people.push((await addUser(opened.knex, { emailVerifiedAt: someTime })).id)
      const task = (some: readonly string[]) => ({ redeem: some, token: String(token) })
      const outcomes = await pair.race(task(people.slice(0, browsers)), task(people.slice(browsers)))
      expect([sum(outcomes, 'ok'), sum(outcomes, 'INVITATION_REQUIRED')]).toEqual([1, 2 * browsers - 1])
      expect([await leftOf(id), (await usesOf(id)).length]).toEqual([0, 1])
    })

    test('one person redeems it in both processes at once: both calls succeed, and it is used once', async () => {
      const { id, token } = await service.invitations.create({ uses: 5 })
      const { id: userId } = await addUser(opened.knex)
      const task = { redeem: Array.from({ length: 20 }, () => userId), token: String(token) }
      const outcomes = await pair.race(task, task)
      expect(sum(outcomes, 'ok')).toBe(40)
      expect([await leftOf(id), await usesOf(id)]).toEqual([4, [userId]])
    })
  })
}
