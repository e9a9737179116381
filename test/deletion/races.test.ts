import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthRouter, createAuthTables, createKnexStore } from '../../src'
import { deleteOwnAccount } from '../../src/accounts/deletion/delete-account'
import { hashOpaqueToken, newOpaqueToken } from '../../src/core/opaque-token'
import { testedContext } from '../../src/router/create-auth-router'
import { newAddress } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, repeat, startPair } from '../support/two-processes'
import { type Outcome, password, routerOn, type Task } from './races-child'

/** What a person may be told who is deleted at this moment. */
const allowed = new Set(['ok', 'UNAUTHORIZED', 'INVALID_TOKEN', 'ACCOUNT_INACTIVE', 'DELETION_PENDING', 'NOT_FOUND', 'CONFLICT'])

for (const database of await databases()) {
  describe(`a deletion from two processes on one ${database.name} database`, { timeout: raceTimeout(120_000) }, () => {
    let opened: OpenDatabase
    let router: AuthRouter
    let pair: ProcessPair<Task, Outcome>

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

    async function person() {
      const { id: userId, email } = await addUser(opened.knex, { email: newAddress(), hashedPassword: await fastHasher().hash(password) })
      const login = await router.service.logIn({ email, password })
      if (login.kind !== 'session') throw new Error('no task and no factor')
      return { userId, email, refreshToken: login.refreshToken }
    }

    /** Closed, with a token of the mail. */
    async function leaving() {
      const person_ = await person()
      const ctx = testedContext(router)
      const user = await ctx?.store.users.find(person_.userId)
      if (!ctx || !user) throw new Error('the account is there')
      await deleteOwnAccount(ctx, { user, session: null, locale: 'en-US' })
      const token = newOpaqueToken()
      await opened
        .knex('auth_user_tokens')
        .where({ user_id: user.id, purpose: 'ACCOUNT_DELETION' })
        .update({ token_hash: hashOpaqueToken(token) })
      return { ...person_, token }
    }

    const tables = [
      'auth_identities',
      'auth_user_tokens',
      'auth_recovery_codes',
      'auth_passkeys',
      'auth_sessions',
      'auth_trusted_devices',
      'auth_invitation_uses',
    ]

    /** No row without its account, and no live session of a closed or deleted one. */
    async function look({ userId, email }: { userId: string; email: string }): Promise<'gone' | 'closed' | 'open'> {
      const { knex } = opened
      for (const table of tables)
        expect([table, await knex(table).whereNotIn('user_id', knex('auth_users').select('id')).pluck('user_id')]).toEqual([table, []])
      const user = await createKnexStore({ knex }).users.find(userId)
      const sessions = await knex('auth_sessions').where({ user_id: userId, revoked_at: null })
      if (!user?.isActive) expect(sessions).toEqual([])
      else expect(sessions.length).toBeLessThanOrEqual(3)
      if (!user) expect(await knex('auth_email_logins').where({ email, used_at: null })).toEqual([])
      return !user ? 'gone' : user.isActive ? 'open' : 'closed'
    }

    const flat = (outcomes: readonly unknown[]) => outcomes.flat() as string[]
    const deletions = async (userId: string) =>
      (await opened.knex('auth_outbox').where({ user_id: userId, name: 'account.deleted' })).length

    test('beside logins, refreshes, a link, requests of mails, an import and a purge: no orphan row and no session too many', async () => {
      await repeat(async (round) => {
        const { userId, email, refreshToken } = await person()
        const end = { do: round % 2 === 0 ? 'delete' : 'close', userId } as const
        const logIn = { do: 'logIn', email } as const
        const outcomes = await pair.race(
          [end, logIn, { do: 'refresh', token: refreshToken }, { do: 'requestLogin', email }],
          [logIn, { do: 'link', userId }, logIn, { do: 'import', email }, { do: 'purge' }, logIn],
        )
        expect(flat(outcomes).filter((code) => !allowed.has(code))).toEqual([])
        expect(flat(outcomes)[0] === 'ok' || flat(outcomes)[6] === 'ok').toBe(true)
        const state = await look({ userId, email })
        expect(state).not.toBe('open')
        expect(await deletions(userId)).toBe(state === 'gone' ? 1 : 0)
      }, 6)
    })

    test('a due deletion beside the way back, a login and another purge: back with its sessions, or gone once', async () => {
      const ends = new Set<string>()
      await repeat(async () => {
        const { userId, email, token } = await leaving()
        const outcomes = await pair.race(
          [{ do: 'purge' }, { do: 'logIn', email }],
          [{ do: 'restore', token }, { do: 'purge' }, { do: 'logIn', email }],
        )
        expect(flat(outcomes).filter((code) => !allowed.has(code))).toEqual([])
        const state = await look({ userId, email })
        ends.add(state)
        expect(state).not.toBe('closed')
        expect(await deletions(userId)).toBe(state === 'gone' ? 1 : 0)
      }, 6)
      expect(ends.size).toBeGreaterThan(0)
    })

    test('four deletions of one account, by the person and by code, are one', async () => {
      await repeat(async () => {
        const { userId, email } = await person()
        const both = [{ do: 'delete', userId } as const, { do: 'delete', userId } as const]
        const outcomes = flat(await pair.race(both, both))
        expect(outcomes.toSorted()).toEqual(['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'ok'])
        expect([await look({ userId, email }), await deletions(userId)]).toEqual(['gone', 1])
      }, 6)
    })
  })
}
