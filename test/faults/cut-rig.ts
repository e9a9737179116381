import knex, { type Knex } from 'knex'
import type { DatabaseName, OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { mailbox } from '../support/mailbox'
import type { Target } from './acts'
import { atRest } from './at-rest'
import { type CuttingProxy, cuttingProxy } from './cutting-proxy'
import { faultyApp } from './faulty-app'
import type { Rig } from './sweep'
import type { WellHost } from './well-host'

export interface CutRig extends Rig {
  readonly proxy: CuttingProxy
  /** The host behind the proxy, and its pool. */
  readonly app: Target
  readonly knex: Knex
  readonly logs: ReturnType<typeof logTap>
  close(): Promise<void>
}

/** A host whose connections to the database server go through the proxy. */
export async function cutRig(
  host: WellHost,
  name: Exclude<DatabaseName, 'sqlite'>,
  { pool = { min: 0, max: 3 }, ...options }: Partial<Knex.Config> = {},
): Promise<CutRig> {
  const server = addressOf(host.opened)
  const proxy = await cuttingProxy(name, server)
  const connection = { ...server.connection, host: '127.0.0.1', port: proxy.port }
  const proxied = knex({ ...host.opened.config, connection, pool, acquireConnectionTimeout: 5000, log: { warn() {} }, ...options })
  const logs = logTap()
  const { app } = faultyApp({ knex: proxied, clients: host.clients, mailer: mailbox(), logger: logs })

  /** Connected before anything is counted: a new connection asks for the server's version. */
  async function ready(): Promise<void> {
    await atRest(proxied)
    await proxied.raw('select 1').catch(() => proxied.raw('select 1')) // the first finds out that the server hung up
  }

  return {
    host,
    proxy,
    app,
    knex: proxied,
    logs,
    async count(send) {
      await ready()
      proxy.watch()
      const answer = await send(app)
      await atRest(proxied)
      return { answer, statements: proxy.statements }
    },
    async strike(send, statement, moment) {
      await ready()
      proxy.cutAt(statement, moment)
      const answer = await send(app)
      await atRest(proxied)
      proxy.watch()
      return answer
    },
    async close() {
      await proxy.close()
      await proxied.destroy()
    },
  }
}

/** PostgreSQL's is a URL, MariaDB's an object. */
function addressOf({ config }: OpenDatabase): { host: string; port: number; connection: Record<string, unknown> } {
  const given = config?.connection
  if (typeof given === 'string') {
    const { hostname, port, username, password, pathname } = new URL(given)
    const connection = { user: decodeURIComponent(username), password: decodeURIComponent(password), database: pathname.slice(1) }
    return { host: hostname, port: Number(port || 5432), connection }
  }
  const connection = given as { host: string; port: number } // what databases.ts makes for MariaDB
  return { host: connection.host, port: connection.port, connection: { ...connection } }
}
