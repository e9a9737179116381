/** The other process of races.test.ts: opens the same database, waits for the barrier, does one task, reports. */
import knex, { type Knex } from 'knex'
import type { NewIdentity, Rotation } from '../../src/store/auth-store'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { withoutFsync } from '../support/databases'
import { newRefreshToken } from './contract'

export type Link = { userId: string; provider: string; subject: string }

export type Task =
  | { verb: 'createTables' }
  | { verb: 'consume'; tokenHash: string; at: Date }
  | { verb: 'advanceTotpStep'; userId: string; step: number }
  | { verb: 'consumeRecoveryCode'; userId: string; codeHash: string; at: Date }
  | { verb: 'insertIdentity'; identity: NewIdentity }
  | { verb: 'seesIdentity'; identity: NewIdentity }
  | { verb: 'rotate'; rotation: Rotation }
  | { verb: 'revokeForUser'; userId: string; at: Date }
  | { verb: 'logIn'; link: Link; at: Date }
  | { verb: 'unlink'; link: Link }
  | { verb: 'deactivate'; userId: string; at: Date }

/** What a child is told: first the database, then tasks. `startAt` is the barrier, in epoch milliseconds. */
export type Order = { config: Knex.Config } | { startAt: number; task: Task }

/** `ready` after the database; then, for each task, whether the caller won, or the name of the error. */
export type Report = 'ready' | { won: boolean } | { error: string }

async function perform(store: KnexStore, db: Knex, task: Task): Promise<boolean> {
  switch (task.verb) {
    case 'createTables':
      await createAuthTables(db)
      return true
    case 'consume':
      return (await store.userTokens.consume(task.tokenHash, 'PASSWORD_RESET', task.at)) !== null
    case 'advanceTotpStep':
      return store.users.advanceTotpStep(task.userId, task.step)
    case 'consumeRecoveryCode':
      return store.recoveryCodes.consume(task.userId, task.codeHash, task.at)
    case 'insertIdentity':
      return (await store.identities.insert(task.identity)) !== null
    case 'seesIdentity': {
      const { userId, provider, createdAt, lastLoginAt } = task.identity
      const seen = (await store.identities.listForUser(userId)).find((identity) => identity.provider === provider)
      return seen?.createdAt.getTime() === createdAt.getTime() && seen.lastLoginAt.getTime() === lastLoginAt.getTime()
    }
    case 'rotate':
      return (await store.refreshTokens.rotate(task.rotation)) !== null
    case 'revokeForUser':
      return (await store.refreshTokens.revokeForUser(task.userId, task.at)) > 0
    case 'logIn':
      return store.transaction(async (inside) => {
        const user = await inside.identities?.recordLogin(task.link, task.at)
        if (user) await inside.refreshTokens?.insert(newRefreshToken(user.id))
        return Boolean(user)
      })
    case 'unlink':
      return store.transaction(async (inside) => {
        await inside.users.lock(task.link.userId)
        return (await inside.identities?.deleteForUser(task.link.userId, task.link.provider)) === 1
      })
    case 'deactivate':
      return store.transaction(async (inside) => {
        const found = await inside.users.update(task.userId, { isActive: false })
        await inside.refreshTokens?.revokeForUser(task.userId, task.at)
        return found
      })
  }
}

let db: Knex | undefined
let store: KnexStore | undefined

async function obey(order: Order): Promise<Report> {
  if ('config' in order) {
    const pool = { min: 1, max: 1 }
    db = knex({ ...order.config, pool: order.config.client === 'better-sqlite3' ? withoutFsync(pool) : pool })
    store = createKnexStore({ knex: db })
    await db.raw('select 1') // connected before the first barrier
    return 'ready'
  }
  if (!db || !store) return { error: 'no database yet' }
  // Spinning, not a timer: both leave the barrier within a fraction of a millisecond.
  while (performance.timeOrigin + performance.now() < order.startAt);
  try {
    return { won: await perform(store, db, order.task) }
  } catch (error) {
    return { error: error instanceof Error ? error.name : 'unknown' }
  }
}

process.on('message', (order: Order) => void obey(order).then((report) => process.send?.(report)))
process.on('disconnect', () => void db?.destroy())
