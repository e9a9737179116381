import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { answerHonestly } from './answer-honestly'
import { appleOptions, githubOptions, googleOptions, oidcOptions } from './client-options'
import type { FakeEndpoint, FakeHandler, FakeProvider, FakeRequest } from './fake-provider'
import { idTokenClaims, issueAccessToken, issueCode, type Ledger, sayNo, sayYes, signJwt } from './tokens'

/** Starts a provider on 127.0.0.1, on a free port. Pass your test's clock as `now`: it sets the times of id_tokens. */
export async function startFakeProvider(
  options: { now?: () => Date; clientId?: string; clientSecret?: string } = {},
): Promise<FakeProvider> {
  const ledger: Ledger = { now: options.now ?? (() => new Date()), codes: new Map(), accessTokens: new Map() }
  const handlers = new Map<FakeEndpoint, FakeHandler>()
  const server = await listenOnLoopback()

  const provider: FakeProvider = {
    ...addressesBelow(server.origin),
    clientId: options.clientId ?? 'client-1',
    clientSecret: options.clientSecret ?? 'the client secret: +/&=',
    ...people(),
    idToken: null,
    requests: [],
    authorizations: [],
    get connectionCount() {
      return server.connectionCount
    },
    requestsTo: (endpoint) => provider.requests.filter((request) => request.endpoint === endpoint),
    on(endpoint, handler) {
      if (handler) handlers.set(endpoint, handler)
      else handlers.delete(endpoint)
    },
    authorize: (url, { profile } = {}) => sayYes(provider, url, profile),
    deny: (url, error = 'access_denied') => sayNo(provider, url, error),
    issueCode: (code = {}) => issueCode(ledger, code),
    issueAccessToken: (code = {}) => issueAccessToken(ledger, { ...code, used: true }),
    idTokenClaims: (code = {}) => idTokenClaims(provider, ledger, code),
    signJwt: (claims, { header, key } = {}) => signJwt(claims, { alg: 'RS256', kid: 'fake-1', typ: 'JWT', ...header }, key),
    oidcOptions: (overrides) => oidcOptions(provider, overrides),
    googleOptions: (overrides) => googleOptions(provider, overrides),
    appleOptions: (overrides) => appleOptions(provider, overrides),
    githubOptions: (overrides) => githubOptions(provider, overrides),
    close: () => server.close(),
  }
  server.serve(async (request, response) => {
    provider.requests.push(request)
    const handler = handlers.get(request.endpoint) ?? answerHonestly(request, provider, ledger)
    await handler(request, response)
  })
  return provider
}

function addressesBelow(issuer: string) {
  return {
    issuer,
    authorizeUrl: `${issuer}/authorize`,
    tokenUrl: `${issuer}/token`,
    userinfoUrl: `${issuer}/userinfo`,
    jwksUri: `${issuer}/jwks`,
    apiUrl: `${issuer}/api`,
    introspectionUrl: `${issuer}/introspect`,
    tokeninfoUrl: `${issuer}/tokeninfo`,
  }
}

function people(): Pick<FakeProvider, 'profile' | 'githubProfile'> {
  return {
    profile: {
      sub: 'subject-1',
      email: 'ana@example.com',
      email_verified: true,
      name: 'Ana Souza',
      picture: 'https://cdn.example.com/ana.png',
    },
    githubProfile: {
      id: 583231,
      login: 'ana',
      name: 'Ana Souza',
      email: 'ana@example.com',
      avatar_url: 'https://avatars.example.com/u/583231',
    },
  }
}

export interface LoopbackServer {
  readonly origin: string
  readonly connectionCount: number
  /** For all later requests. If the handler fails, the server closes the connection. */
  serve(handler: FakeHandler): void
  close(): Promise<void>
}

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
