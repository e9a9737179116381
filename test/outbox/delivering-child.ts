/** A process that changes accounts and delivers their events until it is killed. */
import { appendFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import knex, { type Knex } from 'knex'
import { createAuthRouter, createKnexStore } from '../../src'
import { testSecret } from '../support/app'
import { withoutFsync } from '../support/databases'

export interface DeliveringOrder {
  config: Knex.Config
  /** Each delivered event becomes a line of this file. */
  file: string
  userIds: readonly string[]
  /** False: it only delivers. */
  changes: boolean
}

/** A minute of the lease is two seconds. */
const speed = 30

process.once('message', async ({ config, file, userIds, changes }: DeliveringOrder) => {
  const isFile = config.client === 'better-sqlite3'
  const db = knex({ ...config, pool: isFile ? withoutFsync({ min: 1, max: 1 }) : { min: 0, max: 3 } })
  const begun = Date.now()
  const auth = createAuthRouter({
    settings: { jwtSecret: testSecret, publicUrl: 'http://localhost:3000', cookieSecure: false },
    store: createKnexStore({ knex: db }),
    environment: 'test',
    outbox: true,
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
    now: () => new Date(begun + (Date.now() - begun) * speed),
  })
  const stopping = new AbortController()
  process.once('disconnect', () => (changes ? process.exit(0) : stopping.abort()))
  const delivering = auth.outbox.deliver(({ id }) => appendFileSync(file, `${id}\n`), { signal: stopping.signal })
  process.send?.('ready')
  for (let turn = 0; changes; turn++) {
    const userId = userIds[turn % userIds.length] ?? ''
    const change = turn % 2 === 0 ? auth.service.deactivate(userId) : auth.service.activateUser(userId)
    await change.catch(() => undefined) // a busy database
    await nextTurn() // SQLite answers in the same turn, so no timer would run
  }
  await delivering
  await db.destroy()
  process.exit(0)
})
