import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Whether the statement at which the connection is cut still reaches the server, whose answer is lost then. */
export type Moment = 'before' | 'after'

/** Stands between a pool and its database server, understands where a statement ends, and cuts there. */
export interface CuttingProxy {
  readonly port: number
  /** From now on: the connection with the n-th statement is cut, once. Counts anew. */
  cutAt(statement: number, moment: Moment): void
  /** From now on nothing is cut. Counts anew. */
  watch(): void
  /** Statements since then, over all connections. */
  readonly statements: number
  /** From now on every answer of the server waits so long. */
  delay(milliseconds: number): void
  /** Cuts what is open and refuses whoever comes. */
  down(): void
  up(): void
  /** Connections open now. */
  readonly open: number
  close(): Promise<void>
}

export type Protocol = 'postgres' | 'mariadb'

export async function cuttingProxy(protocol: Protocol, server: { host: string; port: number }): Promise<CuttingProxy> {
  const open = new Set<Socket>()
  let isDown = false
  let statements = 0
  let cut: { statement: number; moment: Moment } | null = null
  let lateness = 0

  const listener = createServer((client) => {
    if (isDown) return void client.destroy()
    const upstream = connect(server.port, server.host)
    const end = () => {
      open.delete(client)
      client.destroy()
      upstream.destroy()
    }
    open.add(client)
    for (const socket of [client, upstream]) socket.setNoDelay(true).on('error', end).on('close', end)
    const read = readers[protocol]()
    let isLosingAnswer = false
    client.on('data', (bytes) => {
      for (const { frame, isStatement } of read(bytes)) {
        if (isStatement && ++statements === cut?.statement) {
          const { moment } = cut
          cut = null
          if (moment === 'before') return end()
          isLosingAnswer = true
        }
        upstream.write(frame)
      }
    })
    upstream.on('data', (bytes) => {
      if (isLosingAnswer) return end()
      if (lateness === 0) client.write(bytes)
      else setTimeout(() => client.destroyed || client.write(bytes), lateness).unref()
    })
  })
  await once(listener.listen(0, '127.0.0.1'), 'listening')

  const cutAll = () => {
    for (const client of open) client.destroy()
  }
  return {
    port: (listener.address() as AddressInfo).port, // a TCP server's address is never a string
    cutAt(statement, moment) {
      statements = 0
      cut = { statement, moment }
    },
    watch() {
      statements = 0
      cut = null
    },
    get statements() {
      return statements
    },
    delay(milliseconds) {
      lateness = milliseconds
    },
    down() {
      isDown = true
      cutAll()
    },
    up() {
      isDown = false
    },
    get open() {
      return open.size
    },
    async close() {
      isDown = true
      cutAll()
      listener.close()
      await once(listener, 'close')
    },
  }
}

/** What the client sends, cut into what belongs together: a whole statement, or what comes before and between them. */
type Reader = (bytes: Buffer) => { frame: Buffer; isStatement: boolean }[]

const readers: Record<Protocol, () => Reader> = {
  // PostgreSQL manual, 55.7: a start-up message without a type, then type and length. A statement is a Query, or everything
  // from Parse to Sync.
  postgres() {
    let rest = Buffer.alloc(0)
    let gathered: Buffer[] = []
    let isStarted = false
    return (bytes) => {
      rest = Buffer.concat([rest, bytes])
      const frames: ReturnType<Reader> = []
      for (;;) {
        const header = isStarted ? 1 : 0
        const length = rest.length >= header + 4 ? header + rest.readUInt32BE(header) : Number.POSITIVE_INFINITY
        if (rest.length < length) return frames
        const type = isStarted ? String.fromCharCode(rest[0] ?? 0) : ''
        gathered.push(rest.subarray(0, length))
        rest = rest.subarray(length)
        isStarted = true
        if (/[PBDECFH]/.test(type)) continue
        frames.push({ frame: Buffer.concat(gathered), isStatement: type === 'Q' || type === 'S' })
        gathered = []
      }
    }
  },
  // Packets of three bytes of length and a number, which begins at 0 with each command; 3 is COM_QUERY.
  mariadb() {
    let rest = Buffer.alloc(0)
    return (bytes) => {
      rest = Buffer.concat([rest, bytes])
      const frames: ReturnType<Reader> = []
      while (rest.length >= 4 && rest.length >= 4 + rest.readUIntLE(0, 3)) {
        const frame = rest.subarray(0, 4 + rest.readUIntLE(0, 3))
        rest = rest.subarray(frame.length)
        frames.push({ frame, isStatement: frame[3] === 0 && frame[4] === 3 })
      }
      return frames
    }
  },
}
