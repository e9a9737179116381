/** The process of kill-rig.ts that dies: a whole host, told when. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import knex, { type Knex } from 'knex'
import { withoutFsync } from '../support/databases'
import { atRest } from './at-rest'
import { type ClientOptions, faultyApp } from './faulty-app'

/** When it is killed (SIGKILL). Told before each request and after it; what comes back once the pool rests: how many statements there were since it was told last. */
export type Death =
  /** At the n-th statement of the request: before it is sent, or when it was answered. */
  | { statement: number; moment: 'before' | 'after' }
  /** Before the first statement that fits is sent. */
  | { before: RegExp }
  /** When the first mail is to go out. */
  | { at: 'mail' }
  /** When the work is done, before the answer is sent. */
  | { at: 'answer' }
  | { at: 'never' }

export interface ChildOrder {
  config: Knex.Config
  clients: Record<string, ClientOptions>
}

const die = () => void process.kill(process.pid, 'SIGKILL')

let death: Death = { at: 'never' }
let statements = 0

/** Around every statement, BEGIN and COMMIT included, of which knex has no event when they are answered. */
function watch(db: Knex): void {
  const client = Object.getPrototypeOf(db.client) as { _query(connection: unknown, query: { sql: string }): Promise<unknown> }
  const { _query: send } = client
  client._query = async function (connection, query) {
    const statement = ++statements
    const isIt = 'statement' in death && death.statement === statement ? death.moment : null
    if (isIt === 'before' || ('before' in death && death.before.test(query.sql))) die()
    const response = await send.call(this, connection, query)
    if (isIt === 'after') die()
    return response
  }
}

async function start({ config, clients }: ChildOrder): Promise<{ port: number; db: Knex }> {
  const isFile = config.client === 'better-sqlite3'
  const db = knex({ ...config, pool: isFile ? withoutFsync({ min: 1, max: 1 }) : { min: 0, max: 3 } })
  watch(db)
  const mailer = {
    async send() {
      if ('at' in death && death.at === 'mail') die()
    },
  }
  const logger = { info() {}, warn() {}, error: (fields: object, message: string) => console.error(message, fields) }
  const { app } = faultyApp({ knex: db, clients, mailer, logger })
  await db.raw('select 1')
  const host = express()
  host.use((_req, res, next) => {
    const end = res.end
    res.end = ((...given: Parameters<typeof end>) => {
      if ('at' in death && death.at === 'answer') die()
      return end.apply(res, given)
    }) as typeof end
    next()
  })
  host.use(app)
  process.once('disconnect', () => void db.destroy().finally(() => process.exit(0)))
  const server = createServer(host).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  return { port, db }
}

process.once('message', (order: ChildOrder) => {
  void start(order).then(({ port, db }) => {
    process.send?.(port)
    process.on('message', async (told: Death) => {
      await atRest(db)
      process.send?.(statements)
      death = told
      statements = 0
    })
  })
})
