import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { FakeEndpoint, FakeHandler, FakeRequest } from './fake-provider'

export interface LoopbackServer {
  readonly origin: string
  /** The number of accepted TCP connections. */
  readonly connectionCount: number
  /** Sets the handler of all later requests. If the handler fails, the server closes the connection. */
  serve(handler: FakeHandler): void
  /** Stops the server and closes every connection. */
  close(): Promise<void>
}

/** Starts a server on 127.0.0.1, on a free port. */
export async function listenOnLoopback(): Promise<LoopbackServer> {
  const sockets = new Set<Socket>()
  let connectionCount = 0
  const server = createServer()
  server.on('connection', (socket) => {
    connectionCount += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string

  return {
    origin,
    get connectionCount() {
      return connectionCount
    },
    serve(handler) {
      const receive = async (incoming: IncomingMessage, response: ServerResponse) => handler(await readRequest(incoming, origin), response)
      server.on('request', (incoming, response) => void receive(incoming, response).catch(() => response.destroy()))
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

async function readRequest(incoming: IncomingMessage, origin: string): Promise<FakeRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer) // no encoding is set, so chunks are buffers
  const body = Buffer.concat(chunks).toString('utf8')
  const { url = '/', method = 'GET', headers } = incoming
  const endpoint = endpointOf(method, new URL(url, origin).pathname)
  return { endpoint, method, url, headers, body, form: new URLSearchParams(body) }
}

const endpoints: Readonly<Record<string, FakeEndpoint>> = {
  'GET /authorize': 'authorize',
  'POST /token': 'token',
  'GET /userinfo': 'userinfo',
  'GET /jwks': 'jwks',
  'GET /.well-known/openid-configuration': 'discovery',
  'GET /api/user': 'user',
  'POST /introspect': 'introspect',
  'GET /tokeninfo': 'tokeninfo',
}

function endpointOf(method: string, path: string): FakeEndpoint {
  if (method === 'POST' && /^\/api\/applications\/[^/]*\/token$/.test(path)) return 'application'
  return endpoints[`${method} ${path}`] ?? 'elsewhere'
}
