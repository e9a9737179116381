import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthTables } from '../../src'
import { newAddress } from '../local/people'
import { addUser, someTime } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, repeat, startPair } from '../support/two-processes'
import { type Outcome, serviceOn, type Task } from './races-child'

for (const database of await databases()) {
  describe(`login by email from two processes on one ${database.name} database`, { timeout: raceTimeout(90_000) }, () => {
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

    /** What the mail to an account, or to nobody, would carry. */
    async function mailed(email: string) {
      const { requestToken, url, code } = await service.requestEmailLogin(email)
      const byLink: Task = { confirm: { token: String(url?.split('/').at(-1)) } }
      const byCode: Task = { confirm: { code: String(code), requestToken } }
      return { byLink, byCode }
    }
    const member = () => addUser(opened.knex, { emailVerifiedAt: someTime })
    const alive = async (userId: string) => (await opened.knex('auth_sessions').where({ user_id: userId, revoked_at: null })).length

    test('of two confirmations of one link, one opens a session', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const { byLink } = await mailed(email)
        expect((await pair.race(byLink, byLink)).sort()).toEqual(['EMAIL_LOGIN_INVALID', 'ok'])
        expect(await alive(id)).toBe(1)
      })
    })

    test('of the link and the code of one mail, one opens a session', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const { byLink, byCode } = await mailed(email)
        expect((await pair.race(byLink, byCode)).sort()).toEqual(['EMAIL_LOGIN_INVALID', 'ok'])
        expect(await alive(id)).toBe(1)
      })
    })

    test('of two confirmations by two mails of an address without an account, both sign in, to one account', async () => {
      await repeat(async () => {
        const email = newAddress()
        const [one, other] = [await mailed(email), await mailed(email)]
        expect(await pair.race(one.byLink, other.byCode)).toEqual(['ok', 'ok'])
        expect(await opened.knex('auth_users').where({ email })).toHaveLength(1)
      })
    })

    test('a deactivation leaves no session behind, whichever comes first', async () => {
      await repeat(async () => {
        const { id, email } = await member()
        const { byLink, byCode } = await mailed(email)
        const [confirmed, deactivated] = await pair.race(byLink, { deactivate: id })
        expect(['ok', 'EMAIL_LOGIN_INVALID']).toContain(confirmed)
        expect(deactivated).toBe('ok')
        expect(await alive(id)).toBe(0)
        expect(await pair.ask(byCode)).toBe('EMAIL_LOGIN_INVALID')
      })
    })
  })
}
