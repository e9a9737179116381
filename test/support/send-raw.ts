import { createServer, type IncomingHttpHeaders, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RawRequest {
  method?: string
  path: string
  /** An array goes out as several header lines. */
  headers?: Record<string, string | string[]>
  body?: string | Buffer
  /** Without a Content-Length. */
  chunked?: boolean
}

export interface RawAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The body as JSON; `{}` when it is none. */
  body: Record<string, unknown>
}

/** One request with exactly these headers and bytes: clients help in ways that some tests must do without. */
export async function sendRaw(app: RequestListener, asked: RawRequest): Promise<RawAnswer> {
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return await exchange((server.address() as AddressInfo).port, asked) // a TCP server's address is never a string
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

function exchange(port: number, { method = 'POST', path, headers = {}, body, chunked = false }: RawRequest): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined || chunked ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
    const outgoing = request({ host: '127.0.0.1', port, method, path, headers: { ...length, ...headers } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: asJson(text) })
      })
    })
    outgoing.on('error', reject)
    if (chunked) for (const part of [body?.slice(0, 1), body?.slice(1)]) outgoing.write(part)
    outgoing.end(chunked ? undefined : body)
  })
}

function asJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown> // every JSON body of ours is an object or an array
  } catch {
    return {}
  }
}
