/** The other processes of races.test.ts and time-zones.test.ts: the store's verbs on the same database. */
import type { Knex } from 'knex'
import type { NewIdentity, Rotation } from '../../src/store/auth-store'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { migrationsOf } from '../../src/store/knex/migrations'
import { createAuthTables } from '../../src/store/knex/schema'
import { serveTasks } from '../support/two-processes'
import { newSession } from './contract'

export type Link = { userId: string; provider: string; subject: string }

export type Task =
  | { verb: 'createTables' }
  | { verb: 'migrateUp'; table: string }
  | { verb: 'consume'; tokenHash: string; at: Date }
  | { verb: 'advanceTotpStep'; userId: string; step: number }
  | { verb: 'consumeRecoveryCode'; userId: string; codeHash: string; at: Date }
  | { verb: 'insertIdentity'; identity: NewIdentity }
  | { verb: 'seesIdentity'; identity: NewIdentity }
  | { verb: 'rotate'; rotation: Rotation }
  | { verb: 'revoke'; id: string; at: Date }
  | { verb: 'revokeForUser'; userId: string; at: Date }
  | { verb: 'logIn'; link: Link; at: Date }
  | { verb: 'unlink'; link: Link }
  | { verb: 'deactivate'; userId: string; at: Date }
  | { verb: 'takePurge'; now: number; until: number }

/** Whether the caller won. */
export type Answer = { won: boolean }

async function perform(store: KnexStore, db: Knex, task: Task): Promise<boolean> {
  switch (task.verb) {
    case 'migrateUp':
      await migrationsOf(store)?.up(task.table)
      return true
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
      return (await store.sessions.rotate(task.rotation)) !== null
    case 'revoke':
      return store.sessions.revoke({ id: task.id }, task.at)
    case 'revokeForUser':
      return (await store.sessions.revokeForUser(task.userId, task.at)) > 0
    case 'logIn':
      return store.transaction(async (inside) => {
        const user = await inside.identities?.recordLogin(task.link, task.at)
        if (user) await inside.sessions?.insert(newSession(user.id))
        return Boolean(user)
      })
    case 'unlink':
      return store.transaction(async (inside) => {
        await inside.users.lock(task.link.userId)
        return (await inside.identities?.deleteForUser(task.link.userId, task.link.provider)) === 1
      })
    case 'takePurge':
      return store.leases.take({
        id: 'purge',
        holder: crypto.randomUUID(),
        now: new Date(task.now),
        until: new Date(task.until),
        ranBefore: new Date(0),
      })
    case 'deactivate':
      return store.transaction(async (inside) => {
        const found = await inside.users.update(task.userId, { isActive: false })
        await inside.sessions?.revokeForUser(task.userId, task.at)
        return found
      })
  }
}

serveTasks<Task, Answer>((db) => {
  const store = createKnexStore({ knex: db })
  return async (task) => ({ won: await perform(store, db, task) })
})
