import { connect } from 'node:net'

export interface ProbeTimes {
  /** Of the answer. */
  answer: number
  /** From that answer to the one of the next request, which was sent together with the first. */
  pipelined: number
  /** Of a request that is sent as soon as both are answered. */
  next: number
}

export interface Prober {
  probe(request: string, wanted: number, next: string): Promise<ProbeTimes>
  close(): void
}

/** One kept-alive connection that sends a request and the next one at once. Every answer must have a Content-Length or no body. */
export async function openProber(origin: string): Promise<Prober> {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let received = ''
  let arrived: (status: number) => void = () => undefined
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
    for (let end = lengthOf(received); end !== null; end = lengthOf(received)) {
      const status = Number(received.slice(9, 12))
      received = received.slice(end)
      arrived(status)
    }
  })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))

  function answers(count: number): Promise<{ at: number; status: number }[]> {
    return new Promise((resolve, reject) => {
      const all: { at: number; status: number }[] = []
      arrived = (status) => {
        all.push({ at: performance.now(), status })
        if (all.length === count) resolve(all)
      }
      socket.once('close', () => reject(new Error('the server closed the connection')))
    })
  }

  return {
    async probe(request, wanted, next) {
      const both = answers(2)
      const sentAt = performance.now()
      socket.write(request + next)
      const [first, second] = (await both) as [{ at: number; status: number }, { at: number }]
      if (first.status !== wanted) throw new Error(`a probe answered ${first.status} instead of ${wanted}`)
      const last = answers(1)
      const lastSentAt = performance.now()
      socket.write(next)
      const [third] = (await last) as [{ at: number; status: number }]
      socket.removeAllListeners('close')
      return { answer: first.at - sentAt, pipelined: second.at - first.at, next: third.at - lastSentAt }
    },
    close: () => void socket.destroy(),
  }
}

/** Null: not all of the answer is here yet. */
function lengthOf(received: string): number | null {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return null
  const body = Number(/^content-length: *(\d+)/im.exec(received.slice(0, end))?.[1])
  if (Number.isFinite(body)) return received.length >= end + 4 + body ? end + 4 + body : null
  if (!/^transfer-encoding: *chunked/im.test(received.slice(0, end))) return end + 4
  const last = received.indexOf('0\r\n\r\n', end + 4)
  return last < 0 ? null : last + 5
}
