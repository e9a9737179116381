import { connect } from 'node:net'

export interface Answer {
  status: number
  /** Status line and headers. */
  head: string
  body: string
}

/** HTTP/1.1 on one kept-alive socket, one request at a time: cheap, so that the load does not wait for itself. */
export interface Connection {
  ask(request: string): Promise<Answer>
  close(): void
}

export interface RequestInput {
  method?: string
  headers?: Readonly<Record<string, string>>
  json?: unknown
  form?: Readonly<Record<string, string>>
}

/** The request as it goes over the wire; make it once where it is sent often. */
export function requestText(path: string, { method, headers = {}, json, form }: RequestInput = {}): string {
  const body = json === undefined ? form && new URLSearchParams(form).toString() : JSON.stringify(json)
  const all: Record<string, string | number> = { host: '127.0.0.1', accept: 'application/json', ...headers }
  if (body !== undefined) {
    all['content-type'] = json === undefined ? 'application/x-www-form-urlencoded' : 'application/json'
    all['content-length'] = Buffer.byteLength(body)
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method ?? (body === undefined ? 'GET' : 'POST')} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`
}

export async function openConnection(origin: string): Promise<Connection> {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let [received, waiting]: [Buffer, PromiseWithResolvers | null] = [Buffer.alloc(0), null]
  const fail = (error?: Error) => waiting?.reject(error ?? new Error('the server closed the connection'))
  socket.on('error', fail).on('close', () => fail())
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const read = readAnswer(received)
    if (!read) return
    received = received.subarray(read.length)
    waiting?.resolve(read.answer)
  })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket.write(request)
      }),
    close: () => void socket.destroy(),
  }
}

interface PromiseWithResolvers {
  resolve(answer: Answer): void
  reject(error: Error): void
}

/** Null: not all of it is here yet. */
function readAnswer(received: Buffer): { answer: Answer; length: number } | null {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return null
  const head = received.toString('latin1', 0, end)
  const read = /^transfer-encoding: *chunked/im.test(head) ? readChunks(received, end + 4) : readBody(received, end + 4, head)
  return read && { answer: { status: Number(head.slice(9, 12)), head, body: read.body }, length: read.length }
}

function readBody(received: Buffer, from: number, head: string): { body: string; length: number } | null {
  const length = from + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  return received.length < length ? null : { body: received.toString('utf8', from, length), length }
}

function readChunks(received: Buffer, from: number): { body: string; length: number } | null {
  const parts: Buffer[] = []
  for (let at = from; ; ) {
    const line = received.indexOf('\r\n', at)
    if (line < 0) return null
    const size = Number.parseInt(received.toString('latin1', at, line), 16)
    const next = line + 2 + size + 2
    if (received.length < next) return null
    if (size === 0) return { body: Buffer.concat(parts).toString('utf8'), length: next }
    parts.push(received.subarray(line + 2, line + 2 + size))
    at = next
  }
}

/** What a browser would send back: names to values, without those the answer takes away. */
export function takeCookies(answer: Answer, held: Readonly<Record<string, string>> = {}): Record<string, string> {
  const cookies = { ...held }
  for (const [, name = '', value = '', rest = ''] of answer.head.matchAll(/^set-cookie: *([^=\r\n]+)=([^;\r\n]*)([^\r\n]*)/gim)) {
    if (value === '' || /max-age=0\b/i.test(rest)) delete cookies[name]
    else cookies[name] = value
  }
  return cookies
}

export function cookieHeader(cookies: Readonly<Record<string, string>>): Record<string, string> {
  return {
    cookie: Object.entries(cookies)
      .map(([name, value]) => `${name}=${value}`)
      .join('; '),
  }
}

/** @throws unless the answer has the status */
export function mustBe(status: number, answer: Answer): Answer {
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}: ${answer.body.slice(0, 300)}`)
  return answer
}
