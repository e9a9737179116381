import { beforeAll, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { type FaultyStore, faultyStore } from '../support/faulty-store'
import {
  bearerOf,
  type LocalHost,
  mailsTo,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  signedIn,
} from './people'

interface Operation {
  what: string
  settings?: object
  /** Everything it needs, made while nothing is broken; returns the request. */
  prepare(host: LocalHost): Promise<{ email: string; run(): PromiseLike<{ status: number; text: string }> }>
  /** The verbs it uses at least: fewer would be another operation. */
  verbs: string[]
}

const operations: Operation[] = [
  {
    what: 'signup, pending',
    async prepare(host) {
      const email = newAddress()
      return { email, run: () => post(host, '/signup', { email, password }) }
    },
    verbs: ['transaction', 'userTokens.insert', 'users.insert'],
  },
  {
    what: 'signup, born active',
    settings: { autoActivate: true },
    async prepare(host) {
      const email = newAddress()
      return { email, run: () => post(host, '/signup', { email, password }) }
    },
    verbs: ['sessions.insertWithin', 'transaction', 'users.insert'],
  },
  {
    what: 'activation',
    settings: { activationBinding: 'strict' },
    async prepare(host) {
      const { email, userId, link } = await pending(host)
      await addIdentity(host.knex, userId, { provider: 'attic' })
      return { email, run: () => post(host, `/activate/${link}`) }
    },
    verbs: [
      'identities.deleteForUser',
      'sessions.insertWithin',
      'userTokens.consume',
      'userTokens.consumeAllForUser',
      'users.lock',
      'users.update',
    ],
  },
  {
    what: 'login',
    async prepare(host) {
      const { email } = await signedIn(host)
      host.clock.advance(1)
      return { email, run: () => post(host, '/login', { email, password }) }
    },
    verbs: ['sessions.insertWithin', 'transaction', 'users.recordLogin'],
  },
  {
    what: 'reset',
    async prepare(host) {
      const { email, userId } = await signedIn(host, { emailVerifiedAt: null })
      await addIdentity(host.knex, userId, { provider: 'attic' })
      const token = await resetLink(host, email)
      return { email, run: () => post(host, '/password-reset/confirm', { token, new_password: otherPassword }) }
    },
    verbs: [
      'identities.deleteForUser',
      'sessions.insertWithin',
      'sessions.revokeForUser',
      'userTokens.consume',
      'userTokens.consumeAllForUser',
      'users.lock',
      'users.update',
    ],
  },
  {
    what: 'password change',
    async prepare(host) {
      const ana = await signedIn(host)
      await resetLink(host, ana.email)
      return {
        email: ana.email,
        run: () => post(host, '/password-change', { current_password: password, new_password: otherPassword }, bearerOf(ana)),
      }
    },
    verbs: ['sessions.revokeForUser', 'userTokens.consumeAllForUser', 'users.lock', 'users.update'],
  },
  {
    what: 'deactivate',
    async prepare(host) {
      const { email, userId } = await signedIn(host)
      await resetLink(host, email)
      const run = () =>
        host.auth.service.deactivate(userId).then(
          () => ({ status: 204, text: '' }),
          () => ({ status: 500, text: '' }),
        )
      return { email, run }
    },
    verbs: ['sessions.revokeForUser', 'userTokens.consumeAllForUser', 'users.lock', 'users.update'],
  },
]

describe.each(await databases())('all or nothing, on $name', (database) => {
  const { start, opened } = onLocal(database)
  let faulty: FaultyStore
  beforeAll(async () => {
    await createAuthTables(opened().knex)
    faulty = faultyStore(createKnexStore({ knex: opened().knex }))
  })

  /** Every row of one account. */
  async function rowsOf(email: string) {
    const { knex } = opened()
    const user = await knex('auth_users').where({ email }).first()
    const tables = ['auth_user_tokens', 'auth_identities', 'auth_sessions']
    const rows = user ? await Promise.all(tables.map((table) => knex(table).where({ user_id: user.id }).orderBy('id'))) : []
    return [user, ...rows]
  }

  test.each(operations)(
    'R-080 R-081 $what: killed at each statement nothing of it is there, and afterwards it works',
    async ({ settings, prepare, verbs }) => {
      const host = await start({ settings: settings ?? {}, options: { store: faulty.store, throttle: { mail: false } } })
      const whole = await prepare(host)
      faulty.calls.length = 0
      expect((await whole.run()).status).toBeLessThan(300)
      await new Promise((resolve) => setImmediate(resolve))
      const used = [...new Set(faulty.calls)]
      expect(used).toEqual(expect.arrayContaining(verbs))

      for (const verb of used) {
        const { email, run } = await prepare(host)
        const before = await rowsOf(email)
        const mailsBefore = mailsTo(host, email).length
        faulty.break(verb, () => Promise.reject(new Error('the connection is gone')))
        const killed = await run()
        faulty.break(null)

        expect([killed.status, killed.text.includes('connection')], verb).toEqual([500, false])
        expect(await rowsOf(email), verb).toEqual(before)
        expect(mailsTo(host, email).length, verb).toBe(mailsBefore)
        expect((await run()).status, `again, after ${verb}`).toBeLessThan(300)
        expect(await rowsOf(email), verb).not.toEqual(before)
      }
    },
  )
})
