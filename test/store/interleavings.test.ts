import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CompleteStore, IdentityRecord, SessionRecord, UserRecord } from '../../src/store/auth-store'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { later, newIdentity, newSession, newUser, rotationOf } from './contract'

// The races of races.test.ts, one order at a time: the first unit stops before its commit, the second is seen waiting
// for it, then the first ends. SQLite has no such orders, since a unit there holds the file.
const reachable = await databases()

/** Whether anybody waits for the transaction of a connection. */
const WAITING = {
  postgres: {
    self: async (trx: Knex.Transaction) => (await trx.raw('select pg_backend_pid() as id')).rows[0].id,
    blocks: async (knex: Knex, id: number) =>
      (await knex.raw('select 1 from pg_stat_activity where ? = any(pg_blocking_pids(pid))', [id])).rows.length > 0,
  },
  mariadb: {
    self: async (trx: Knex.Transaction) => (await trx.raw('select connection_id() as id'))[0][0].id,
    blocks: async (knex: Knex, id: number) => {
      await knex.raw('select sleep(0.15)') // these tables show a copy, made anew when nobody looked for 0.1 s
      const waits = knex('information_schema.innodb_lock_waits as w').join(
        'information_schema.innodb_trx as b',
        'b.trx_id',
        'w.blocking_trx_id',
      )
      return (await waits.where('b.trx_mysql_thread_id', id).select('b.trx_id')).length > 0
    },
  },
} as const

describe.each(['postgres', 'mariadb'] as const)('on %s, a verb that had to wait decides on what is true afterwards', (name) => {
  const database = reachable.find((candidate) => candidate.name === name)
  if (!database) return test.skip(`${name} is not reachable`)
  let opened: OpenDatabase
  let store: KnexStore
  let user: UserRecord
  let identity: IdentityRecord
  let session: SessionRecord

  beforeAll(async () => {
    opened = await database.open()
    await createAuthTables(opened.knex)
    store = createKnexStore({ knex: opened.knex })
  })
  afterAll(() => opened?.close())
  beforeEach(async () => {
    user = await store.users.insert(newUser())
    identity = await store.identities.insert(newIdentity(user.id))
    session = newSession(user.id)
    await store.sessions.insert(session)
  })

  /** Runs `first` without its commit, starts `second`, sees it wait, and ends the first. */
  async function inOrder<T>(
    first: (inside: CompleteStore) => Promise<unknown>,
    second: () => Promise<T>,
    end: 'commit' | 'rollback' = 'commit',
  ) {
    const trx = await opened.knex.transaction()
    await first(store.using(trx))
    const outcome = second()
    try {
      await someoneWaitsFor(trx)
    } finally {
      await trx[end]()
    }
    return outcome
  }

  async function someoneWaitsFor(trx: Knex.Transaction): Promise<void> {
    const { self, blocks } = WAITING[name]
    const id = await self(trx)
    const deadline = performance.now() + 5000
    while (performance.now() < deadline) if (await blocks(opened.knex, id)) return
    throw new Error('nobody waited: the two did not meet')
  }

  const deactivate = async (inside: CompleteStore) => {
    await inside.users.update(user.id, { isActive: false })
    await inside.sessions.revokeForUser(user.id, later(1))
  }
  const rotate = () => store.sessions.rotate(rotationOf(session.tokenHash))
  const recordLogin = () => store.identities.recordLogin({ userId: user.id, provider: 'google', subject: identity.subject }, later(5))
  const logIn = () => store.users.recordLogin(user, later(5))
  const rehash = () => store.users.recordLogin(user, later(5), { hashedPassword: 'rehashed' })
  const changePassword = (inside: CompleteStore) => inside.users.update(user.id, { hashedPassword: 'changed' })
  const livingSessions = async () => (await store.sessions.listForUser(user.id, later(3))).length

  test('a unit runs at READ COMMITTED: it sees what others committed meanwhile', async () => {
    const names = await store.transaction(async (inside) => {
      const before = await inside.users.find(user.id)
      await store.users.update(user.id, { name: 'renamed' })
      return [before?.name, (await inside.users.find(user.id))?.name]
    })
    expect(names).toEqual([user.name, 'renamed'])
  })

  test('rotate after deactivate: refused', async () => {
    expect(await inOrder(deactivate, rotate)).toBeNull()
    expect(await livingSessions()).toBe(0)
  })

  test('rotate does not wait for a change of the user alone: it comes before it, and after its commit it is refused', async () => {
    const trx = await opened.knex.transaction()
    await store.using(trx).users.update(user.id, { isActive: false, email: 'renamed@example.test' })
    const rotation = rotationOf(session.tokenHash)
    const before = await store.sessions.rotate(rotation)
    await trx.commit()
    expect(before?.user.email).toBe(user.email)
    expect(await store.sessions.rotate(rotationOf(rotation.successorHash))).toBeNull()
    expect(await livingSessions()).toBe(1)
  })

  test('rotate after a reset that changed the user and revoked the sessions: refused', async () => {
    const reset = async (inside: CompleteStore) => {
      await inside.users.update(user.id, { hashedPassword: 'new' })
      await inside.sessions.revokeForUser(user.id, later(1))
    }
    expect(await inOrder(reset, rotate)).toBeNull()
    expect(await livingSessions()).toBe(0)
  })

  test('rotate after revoke: refused', async () => {
    expect(await inOrder((inside) => inside.sessions.revoke({ id: session.id }, later(1)), rotate)).toBeNull()
    expect(await livingSessions()).toBe(0)
  })

  test('rotate after another rotation of the same token: refused; after one that was rolled back: succeeds', async () => {
    const another = (inside: CompleteStore) => inside.sessions.rotate(rotationOf(session.tokenHash))
    expect(await inOrder(another, rotate, 'rollback')).not.toBeNull()
    session = newSession(user.id)
    await store.sessions.insert(session)
    expect(await inOrder(another, rotate)).toBeNull()
  })

  test('revoke after a rotation in flight: the rotated session is caught', async () => {
    const inFlight = (inside: CompleteStore) => inside.sessions.rotate(rotationOf(session.tokenHash))
    expect(await inOrder(inFlight, () => store.sessions.revoke({ id: session.id }, later(2)))).toBe(true)
    expect(await livingSessions()).toBe(0)
  })

  test('deactivate after a rotation in flight: the rotated session is caught', async () => {
    const inFlight = (inside: CompleteStore) => inside.sessions.rotate(rotationOf(session.tokenHash))
    await inOrder(inFlight, () => store.transaction((inside) => deactivate(inside as CompleteStore))) // createKnexStore has them all
    expect(await livingSessions()).toBe(0)
  })

  test('a rotation and the end of a session wait for each other, and not for a lock of the user', async () => {
    const trx = await opened.knex.transaction()
    await store.using(trx).users.lock(user.id)
    expect((await rotate())?.session.id).toBe(session.id)
    expect(await store.sessions.revoke({ id: session.id }, later(2))).toBe(true)
    await trx.commit()
  })

  test('lock keeps a session from every rotation and revocation until its unit ends', async () => {
    const lock = (inside: CompleteStore) => inside.sessions.lock(session.id, later(1))
    expect(await inOrder(lock, rotate)).not.toBeNull()
    expect(await inOrder(lock, () => store.sessions.revoke({ id: session.id }, later(2)))).toBe(true)
  })

  test('recordLogin after deactivate: refused, nothing stamped', async () => {
    expect(await inOrder(deactivate, recordLogin)).toBeNull()
    expect((await store.users.find(user.id))?.lastLoginAt).toBeNull()
    expect(await store.identities.listForUser(user.id)).toEqual([identity])
  })

  test('recordLogin after an unlink that locked the user: refused, nothing stamped', async () => {
    const unlink = async (inside: CompleteStore) => {
      await inside.users.lock(user.id)
      await inside.identities.deleteForUser(user.id, 'google')
    }
    expect(await inOrder(unlink, recordLogin)).toBeNull()
    expect(await store.users.find(user.id)).toEqual(user)
  })

  test('recordLogin after an unlink that locked nothing: refused, nothing stamped', async () => {
    expect(await inOrder((inside) => inside.identities.deleteForUser(user.id), recordLogin)).toBeNull()
    expect(await store.users.find(user.id)).toEqual(user)
  })

  test('recordLogin after a harmless change of the user: succeeds, both changes stay', async () => {
    const stamped = await inOrder((inside) => inside.users.update(user.id, { name: 'renamed' }), recordLogin)
    expect(stamped).toEqual({ ...user, name: 'renamed', lastLoginAt: later(5) })
    expect(await store.users.find(user.id)).toEqual(stamped)
  })

  test('recordLogin that waits for the user holds nothing of the link: an unlink goes through', async () => {
    const trx = await opened.knex.transaction()
    const unlink = store.using(trx)
    await unlink.users.lock(user.id)
    const login = recordLogin()
    await someoneWaitsFor(trx)
    expect(await unlink.identities.deleteForUser(user.id)).toBe(1)
    await trx.commit()
    expect(await login).toBeNull()
    expect(await store.users.find(user.id)).toEqual(user)
  })

  test('C20: a local login waits for a deactivation in flight: refused after its commit, in after its rollback', async () => {
    expect(await inOrder(deactivate, logIn, 'rollback')).toEqual({ ...user, lastLoginAt: later(5) })
    expect(await inOrder(deactivate, rehash)).toBeNull()
    expect(await store.users.find(user.id)).toEqual({ ...user, lastLoginAt: later(5), isActive: false })
    expect(await logIn()).toBeNull()
  })

  test('C20: a deactivation waits for a local login in flight and ends the session it issued', async () => {
    const issue = async (inside: CompleteStore) => {
      await inside.users.recordLogin(user, later(5))
      await inside.sessions.insert(newSession(user.id))
    }
    await inOrder(issue, () => store.transaction((inside) => deactivate(inside as CompleteStore))) // createKnexStore has them all
    expect(await livingSessions()).toBe(0)
    expect(await logIn()).toBeNull()
  })

  test('C20: of logins and deactivations released together none leaves a session that is alive', async () => {
    const issue = () =>
      store.transaction(async (inside) => {
        if (await inside.users.recordLogin(user, later(5))) await inside.sessions?.insert(newSession(user.id))
      })
    for (let run = 0; run < 10; run += 1) {
      await store.users.update(user.id, { isActive: true })
      await Promise.all([issue(), store.transaction((inside) => deactivate(inside as CompleteStore)), issue()]) // as above
      expect(await livingSessions()).toBe(0)
    }
  })

  test('C22: a rehash after a password change in flight: refused, the new password stays; after its rollback: stored', async () => {
    expect(await inOrder(changePassword, rehash)).toBeNull()
    expect(await store.users.find(user.id)).toEqual({ ...user, hashedPassword: 'changed' })
    user = await store.users.insert(newUser())
    expect(await inOrder(changePassword, rehash, 'rollback')).toEqual({ ...user, hashedPassword: 'rehashed', lastLoginAt: later(5) })
  })

  test('C22: a password change after a rehash in flight has the last word', async () => {
    const rehashing = (inside: CompleteStore) => inside.users.recordLogin(user, later(5), { hashedPassword: 'rehashed' })
    expect(await inOrder(rehashing, () => store.users.update(user.id, { hashedPassword: 'changed' }))).toBe(true)
    expect((await store.users.find(user.id))?.hashedPassword).toBe('changed')
  })

  test('a login after another one in flight: both are in; after one that stored a rehash: refused', async () => {
    expect(await inOrder((inside) => inside.users.recordLogin(user, later(4)), logIn)).toEqual({ ...user, lastLoginAt: later(5) })
    const rehashing = (inside: CompleteStore) => inside.users.recordLogin(user, later(6), { hashedPassword: 'rehashed' })
    expect(await inOrder(rehashing, logIn)).toBeNull()
    expect(await store.users.find(user.id)).toEqual({ ...user, hashedPassword: 'rehashed', lastLoginAt: later(6) })
  })

  test('recordLogin holds the user until its unit ends', async () => {
    const renamed = () => store.users.update(user.id, { name: 'renamed' })
    const login = (inside: CompleteStore) =>
      inside.identities.recordLogin({ userId: user.id, provider: 'google', subject: identity.subject }, later(5))
    expect(await inOrder(login, renamed)).toBe(true)
    expect(await inOrder((inside) => inside.users.lock(user.id), renamed)).toBe(true)
    expect(await inOrder((inside) => inside.users.recordLogin(user, later(5)), renamed)).toBe(true)
  })
})
