import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables } from '../../src'
import { addUser } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, repeat, startPair } from '../support/two-processes'
import { wrong } from './people'
import { type Outcome, routerOn, type Task } from './races-child'

for (const database of await databases()) {
  describe(`mailed codes from two processes on one ${database.name} database (30.1.4)`, { timeout: raceTimeout(90_000) }, () => {
    let opened: OpenDatabase
    let pair: ProcessPair<Task, Outcome>
    let router: ReturnType<typeof routerOn>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      router = routerOn(opened.knex)
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    async function mailed() {
      const { email } = await addUser(opened.knex)
      const link = await router.service.requestPasswordReset(email)
      const { code = '' } = await router.mails.next({ to: email })
      return { email, code, token: String(link?.token), requestToken: String(link?.requestToken) }
    }

    test('code, link and code at once: one is 200 (30.5)', async () => {
      await repeat(async () => {
        const { code, requestToken, token } = await mailed()
        const byCode = { code, requestToken }
        const outcomes = await pair.race({ reset: [byCode, { token }] }, { reset: [byCode] })
        expect(outcomes.flat().sort()).toEqual(['INVALID_TOKEN', 'INVALID_TOKEN', 'ok'])
      })
    })

    test('of twelve wrong codes at once over two processes, five are compared, and then the right one is 401', async () => {
      await repeat(async () => {
        const asked = await mailed()
        const guesses = (from: number) => ({
          reset: Array.from({ length: 6 }, (_, by) => ({ code: wrong(asked, from + by), requestToken: asked.requestToken })),
        })
        const outcomes = await pair.race(guesses(1), guesses(7))
        expect(outcomes.flat()).toEqual(Array(12).fill('INVALID_TOKEN'))
        const [row] = await opened.knex('auth_email_logins').where({ email: asked.email })
        expect(row?.['tries']).toBe(5)
        expect(await pair.ask({ reset: [{ code: asked.code, requestToken: asked.requestToken }] })).toEqual(['INVALID_TOKEN'])
        expect(await pair.ask({ reset: [{ token: asked.token }] })).toEqual(['ok'])
      }, 3)
    })
  })
}
