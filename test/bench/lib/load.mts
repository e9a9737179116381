import type { Connection } from './connection.mjs'
import type { Server } from './start-server.mjs'
import { quantile } from './statistics.mjs'

export interface Load {
  /** One operation, on the connection it is given; `turn` counts them. Throws when it was not what it should be. */
  operation(connection: Connection, turn: number): Promise<unknown>
  connections: readonly Connection[]
  /** Until that many are begun, or that much time is over. */
  operations?: number
  milliseconds?: number
  /** Milliseconds of the same before anything is counted. */
  leadIn?: number
}

/** A process that waited for its turn finds its code and its memory cold, as one that serves all the time never does. */
export const settling = 750

export interface LoadFigures {
  operations: number
  perSecond: number
  /** CPU time of the server process per operation. */
  cpuMicros: number
  /** Milliseconds an operation takes. */
  p50: number
  p99: number
}

/** A closed loop: each connection begins its next operation when the last one has ended. */
export async function load(server: Server, work: Load): Promise<LoadFigures> {
  if (work.leadIn) await run({ ...work, milliseconds: work.leadIn })
  const before = await server.ask('usage')
  const { taken, seconds } = await run(work)
  const after = await server.ask('usage')
  return {
    operations: taken.length,
    perSecond: taken.length / seconds,
    cpuMicros: (after.cpuMicros - before.cpuMicros) / taken.length,
    p50: quantile(taken, 0.5),
    p99: quantile(taken, 0.99),
  }
}

async function run({ operation, connections, operations = Number.POSITIVE_INFINITY, milliseconds = Number.POSITIVE_INFINITY }: Load) {
  const taken: number[] = []
  const begun = performance.now()
  let turn = 0
  await Promise.all(
    connections.map(async (connection) => {
      for (let now = begun; turn < operations && now - begun < milliseconds; ) {
        await operation(connection, turn++)
        const ended = performance.now()
        taken.push(ended - now)
        now = ended
      }
    }),
  )
  return { taken, seconds: (performance.now() - begun) / 1000 }
}
