import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { mailbox } from '../support/mailbox'
import { everyAct } from '../support/torture'
import { type Act, acts } from './acts'
import { atRest } from './at-rest'
import { faultyApp } from './faulty-app'
import { type Rig, sweep } from './sweep'
import { type WellHost, wellHost } from './well-host'

const oneOfEach = ['POST /signup', 'GET /oauth/corp/callback of a new identity']

for (const database of await databases()) {
  describe(`a client that hangs up on a host over ${database.name}`, { timeout: 60_000 }, () => {
    let host: WellHost
    let server: Server
    let rig: Rig
    const logs = logTap()

    beforeAll(async () => {
      host = await wellHost(database)
      server = createServer(faultyApp({ knex: host.knex, clients: host.clients, mailer: mailbox(), logger: logs }).app)
      await once(server.listen(0, '127.0.0.1'), 'listening')
      rig = abandoning(host, server)
    })
    afterAll(async () => {
      server?.close()
      await host?.close()
    })

    const chosen = Object.entries<Act>(acts).filter(([act]) => everyAct || oneOfEach.includes(act))
    test.each(chosen)(
      'F24: at each statement of %s: the work is finished or undone, and nothing is logged as an error',
      async (_name, act) => {
        const { violations, strikes, before, after } = await sweep(act, rig)
        expect(violations).toEqual([])
        expect(strikes).toBeGreaterThan(1)
        expect(before + after).toBe(strikes)
        expect(logs.entries.filter(({ level }) => level === 'error')).toEqual([])
      },
    )
  })
}

/** Its connection is reset when a statement goes out, or while the database answers. */
function abandoning(host: WellHost, server: Server): Rig {
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  const origin = `http://127.0.0.1:${port}`
  const clients = new Set<Socket>()
  server.on('connection', (socket) => clients.add(socket.once('close', () => clients.delete(socket))))
  const hangUp = () => {
    for (const socket of clients) socket.resetAndDestroy()
  }
  let statements = 0
  let at: { statement: number; hangUp: () => void } | null = null
  host.knex.on('query', () => {
    if (++statements === at?.statement) at.hangUp()
  })

  const send: Rig['count'] = async (act) => {
    statements = 0
    const answer = await act(origin)
    await atRest(host.knex)
    return { answer, statements }
  }
  return {
    host,
    count: send,
    async strike(act, statement, moment) {
      at = { statement, hangUp: moment === 'before' ? hangUp : () => setImmediate(hangUp) }
      const sent = await send(act).catch(() => null)
      await atRest(host.knex)
      at = null
      return sent?.answer ?? null
    },
  }
}
