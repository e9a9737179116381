import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export type FakeEndpoint =
  | 'authorize'
  | 'token'
  | 'userinfo'
  | 'jwks'
  | 'discovery'
  | 'user'
  | 'introspect'
  | 'tokeninfo'
  | 'application'
  | 'elsewhere'
export type FakeProfile = Record<string, unknown>

export interface FakeRequest {
  endpoint: FakeEndpoint
  method: string
  /** Path and query. */
  url: string
  headers: IncomingHttpHeaders
  body: string
  form: URLSearchParams
}

export type FakeHandler = (request: FakeRequest, response: ServerResponse) => void | Promise<void>

export interface CodeOptions {
  profile?: FakeProfile
  redirectUri?: string
  codeChallenge?: string
  nonce?: string
  /** Space separated; an id_token comes back when it has `openid`. Default `openid email profile`. */
  scope?: string
  /** The application an access token is for. Default: this provider's client. */
  issuedTo?: string
}

/** What one person's yes or no came to. */
export interface Authorization {
  /** Of the authorize URL. */
  params: URLSearchParams
  code: string
  state: string
  callbackUrl: string
  /** The query of `callbackUrl`. */
  callbackQuery: Record<string, string>
}

export interface JwtOptions {
  header?: Record<string, unknown>
  /** A private key, or a string for HMAC. Default: the provider's RSA key. */
  key?: KeyObject | string
}

interface Grant extends CodeOptions {
  spent: boolean
}

/**
 * A provider on loopback, for tests: OpenID Connect and GitHub shaped, honest until told otherwise.
 *
 * The token endpoint checks the client's credentials (form or Basic), the code (once), `redirect_uri` byte for byte and the
 * PKCE S256 verifier; userinfo and user check the bearer token; introspect and application check the client's credentials.
 * id_tokens are RS256 with kid `fake-1`.
 */
export interface FakeProvider {
  readonly issuer: string
  readonly authorizeUrl: string
  readonly tokenUrl: string
  readonly userinfoUrl: string
  readonly jwksUri: string
  /** GitHub's `https://api.github.com`. */
  readonly apiUrl: string
  readonly introspectionUrl: string
  readonly tokeninfoUrl: string
  readonly clientId: string
  readonly clientSecret: string
  /** Who logs in, as claims; change it, or give another with `authorize`. */
  profile: FakeProfile
  /** The same as GitHub's API says it. */
  githubProfile: FakeProfile
  /** Replaces what comes back as id_token: an object is signed, null means none. */
  idToken: ((claims: Record<string, unknown>) => string | Record<string, unknown> | null) | null
  /** What arrived, in order. */
  readonly requests: FakeRequest[]
  readonly authorizations: Authorization[]
  /** TCP connections accepted so far. */
  readonly connectionCount: number
  requestsTo(endpoint: FakeEndpoint): FakeRequest[]
  /** Replaces an endpoint, with `answer(503, {})` say; null puts the honest one back. */
  on(endpoint: FakeEndpoint, handler: FakeHandler | null): void
  /**
   * The person says yes: takes the Location our login route answered, without HTTP, and returns what the callback gets.
   * A browser that follows the Location is sent back at once as `profile`.
   * @throws Error when it is not this provider's authorize URL
   */
  authorize(url: string, options?: { profile?: FakeProfile }): Authorization
  /** The person says no. */
  deny(url: string, error?: string): Authorization
  /** A code without any URL, for tests that call `client.exchangeCode()` themselves. */
  issueCode(options?: CodeOptions): string
  /** An access token as a native app has it in hand. */
  issueAccessToken(options?: CodeOptions): string
  idTokenClaims(options?: CodeOptions): Record<string, unknown>
  /** Signs anything with anything. */
  signJwt(claims: unknown, options?: JwtOptions): string
  /** For `new OidcClient()`. */
  oidcOptions<Overrides extends object>(overrides?: Overrides): OidcOptions & Overrides
  /** For `new GoogleClient()`. */
  googleOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** For `new GitHubClient()`. */
  githubOptions<Overrides extends object>(overrides?: Overrides): BuiltInOptions & Overrides
  /** Ends every connection too. */
  close(): Promise<void>
}

interface OidcOptions {
  clientId: string
  clientSecret: string
  authorizeUrl: string
  tokenUrl: string
  userinfoUrl: string
  jwksUri: string
  issuer: string
}

interface BuiltInOptions {
  clientId: string
  clientSecret: string
  endpoints: Record<string, string>
}

/** One key pair for the whole process, when it is first needed: making it costs a tenth of a second. */
export function signingKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  keys ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return keys
}
let keys: { publicKey: KeyObject; privateKey: KeyObject } | null = null

/** Listens on 127.0.0.1, on a port that is free. `now` dates id_tokens: give it your test's clock. */
export async function startFakeProvider(
  options: { now?: () => Date; clientId?: string; clientSecret?: string } = {},
): Promise<FakeProvider> {
  const now = options.now ?? (() => new Date())
  const clientId = options.clientId ?? 'client-1'
  const clientSecret = options.clientSecret ?? 'the client secret: +/&='
  const grants = new Map<string, Grant>()
  const accessTokens = new Map<string, Grant>()
  const handlers = new Map<FakeEndpoint, FakeHandler>()
  const sockets = new Set<Socket>()
  const state = { connectionCount: 0 }

  const server = createServer((request, response) => void receive(request, response).catch(() => response.destroy()))
  server.on('connection', (socket) => {
    state.connectionCount += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string

  const honest: Record<FakeEndpoint, FakeHandler> = {
    authorize: (request, response) => {
      const params = new URL(request.url, issuer).searchParams
      const isOurs = params.get('client_id') === clientId && URL.canParse(params.get('redirect_uri') ?? '')
      if (!isOurs) return answer(400, { error: 'invalid_request' })(request, response)
      return answer(302, '', { location: provider.authorize(`${issuer}${request.url}`).callbackUrl })(request, response)
    },
    token: (request, response) => {
      const refusal = refusalOf(request)
      if (refusal) return answer(refusal === 'invalid_client' ? 401 : 400, { error: refusal })(request, response)
      const grant = grants.get(request.form.get('code') ?? '')
      if (!grant) return answer(400, { error: 'invalid_grant' })(request, response)
      grant.spent = true
      return answer(200, tokensFor(grant))(request, response)
    },
    userinfo: (request, response) => whenAuthorized(request, response, (grant) => ({ ...provider.profile, ...grant.profile })),
    user: (request, response) => whenAuthorized(request, response, (grant) => ({ ...provider.githubProfile, ...grant.profile })),
    jwks: (request, response) =>
      answer(200, {
        keys: [{ ...signingKeys().publicKey.export({ format: 'jwk' }), kid: 'fake-1', use: 'sig', alg: 'RS256' }],
      })(request, response),
    discovery: (request, response) =>
      answer(200, {
        issuer,
        authorization_endpoint: provider.authorizeUrl,
        token_endpoint: provider.tokenUrl,
        userinfo_endpoint: provider.userinfoUrl,
        jwks_uri: provider.jwksUri,
      })(request, response),
    introspect: (request, response) => {
      const [id, secret] = credentialsOf(request.headers.authorization, request.form)
      if (id !== clientId || secret !== clientSecret) return answer(401, { error: 'invalid_client' })(request, response)
      const said = tokenClaims(request.form.get('token'))
      return answer(200, said ? { active: true, token_type: 'Bearer', client_id: said.party, ...said.claims } : { active: false })(
        request,
        response,
      )
    },
    tokeninfo: (request, response) => {
      const said = tokenClaims(new URL(request.url, issuer).searchParams.get('access_token'))
      if (!said) return answer(400, { error: 'invalid_token' })(request, response)
      return answer(200, { azp: said.party, aud: said.party, ...said.claims, exp: String(said.claims.exp) })(request, response)
    },
    application: (request, response) => {
      const credentials = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
      if (request.headers.authorization !== `Basic ${credentials}`) return answer(401, { message: 'Bad credentials' })(request, response)
      const grant = accessTokens.get(String((JSON.parse(request.body) as { access_token?: unknown }).access_token))
      const isOwn =
        grant && (grant.issuedTo ?? clientId) === clientId && request.url === `/api/applications/${encodeURIComponent(clientId)}/token`
      if (!isOwn) return answer(404, { message: 'Not Found' })(request, response)
      const user = { ...provider.githubProfile, ...grant.profile }
      return answer(200, { id: 1, token: '', app: { client_id: clientId }, user })(request, response)
    },
    elsewhere: answer(404, { error: 'not_found' }),
  }

  function tokenClaims(token: string | null) {
    const grant = accessTokens.get(token ?? '')
    if (!grant) return null
    const seconds = Math.floor(now().getTime() / 1000)
    const { sub } = { ...provider.profile, ...grant.profile }
    return { party: grant.issuedTo ?? clientId, claims: { sub, iat: seconds, exp: seconds + 300 } }
  }

  async function receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer) // no encoding is set, so chunks are buffers
    const body = Buffer.concat(chunks).toString('utf8')
    const url = incoming.url ?? '/'
    const endpoint = endpointOf(incoming.method ?? 'GET', new URL(url, issuer).pathname)
    const request = { endpoint, method: incoming.method ?? 'GET', url, headers: incoming.headers, body, form: new URLSearchParams(body) }
    provider.requests.push(request)
    await (handlers.get(endpoint) ?? honest[endpoint])(request, response)
  }

  function refusalOf({ headers, form }: FakeRequest): string | null {
    const [id, secret] = credentialsOf(headers.authorization, form)
    if (id !== clientId || secret !== clientSecret) return 'invalid_client'
    if (form.get('grant_type') !== 'authorization_code') return 'unsupported_grant_type'
    const grant = grants.get(form.get('code') ?? '')
    if (!grant || grant.spent) return 'invalid_grant'
    if (grant.redirectUri !== undefined && grant.redirectUri !== form.get('redirect_uri')) return 'invalid_grant'
    if (grant.codeChallenge !== undefined && grant.codeChallenge !== challengeOf(form.get('code_verifier') ?? '')) return 'invalid_grant'
    return null
  }

  function tokensFor(grant: Grant): Record<string, unknown> {
    const access = remember(grant)
    const scope = grant.scope ?? 'openid email profile'
    const idToken = scope.split(' ').includes('openid') ? idTokenFor(grant) : null
    return {
      access_token: access,
      token_type: 'Bearer',
      expires_in: 3600,
      scope,
      refresh_token: `refresh-${randomBytes(8).toString('hex')}`,
      ...(idToken === null ? {} : { id_token: idToken }),
    }
  }

  function idTokenFor(grant: Grant): string | null {
    const claims = provider.idTokenClaims(grant)
    const made = provider.idToken ? provider.idToken(claims) : claims
    return made === null || typeof made === 'string' ? made : provider.signJwt(made)
  }

  function remember(grant: Grant): string {
    const access = `access-${randomBytes(12).toString('hex')}`
    accessTokens.set(access, grant)
    return access
  }

  function whenAuthorized(request: FakeRequest, response: ServerResponse, profileOf: (grant: Grant) => FakeProfile): void {
    const grant = accessTokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''))
    const reply = grant ? answer(200, profileOf(grant)) : answer(401, { error: 'invalid_token' })
    void reply(request, response) // `answer` is synchronous
  }

  const provider: FakeProvider = {
    issuer,
    authorizeUrl: `${issuer}/authorize`,
    tokenUrl: `${issuer}/token`,
    userinfoUrl: `${issuer}/userinfo`,
    jwksUri: `${issuer}/jwks`,
    apiUrl: `${issuer}/api`,
    introspectionUrl: `${issuer}/introspect`,
    tokeninfoUrl: `${issuer}/tokeninfo`,
    clientId,
    clientSecret,
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
    idToken: null,
    requests: [],
    authorizations: [],
    get connectionCount() {
      return state.connectionCount
    },
    requestsTo: (endpoint) => provider.requests.filter((request) => request.endpoint === endpoint),
    on(endpoint, handler) {
      if (handler) handlers.set(endpoint, handler)
      else handlers.delete(endpoint)
    },
    authorize: (url, { profile } = {}) => {
      const params = authorizeParams(url)
      const code = provider.issueCode({
        ...(profile ? { profile } : {}),
        redirectUri: params.get('redirect_uri') ?? '',
        scope: params.get('scope') ?? '',
        ...optional('codeChallenge', params.get('code_challenge')),
        ...optional('nonce', params.get('nonce')),
      })
      return record(params, code, { code })
    },
    deny: (url, error = 'access_denied') => record(authorizeParams(url), '', { error }),
    issueCode(code = {}) {
      const value = `code-${randomBytes(12).toString('hex')}`
      grants.set(value, { ...code, spent: false })
      return value
    },
    issueAccessToken: (code = {}) => remember({ ...code, spent: true }),
    idTokenClaims(code = {}) {
      const seconds = Math.floor(now().getTime() / 1000)
      return {
        iss: issuer,
        aud: clientId,
        iat: seconds,
        exp: seconds + 300,
        ...provider.profile,
        ...code.profile,
        ...optional('nonce', code.nonce ?? null),
      }
    },
    signJwt: (claims, { header, key } = {}) => signJwt(claims, { alg: 'RS256', kid: 'fake-1', typ: 'JWT', ...header }, key),
    oidcOptions(overrides) {
      const { authorizeUrl, tokenUrl, userinfoUrl, jwksUri } = provider
      const base = { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer }
      return { ...base, ...overrides } as OidcOptions & typeof overrides & object // spread keeps both shapes
    },
    googleOptions(overrides) {
      const { authorizeUrl, tokenUrl, userinfoUrl, tokeninfoUrl, jwksUri } = provider
      const base = { clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, userinfoUrl, tokeninfoUrl, jwksUri, issuer } }
      return { ...base, ...overrides } as BuiltInOptions & typeof overrides & object // spread keeps both shapes
    },
    githubOptions(overrides) {
      const { authorizeUrl, tokenUrl, apiUrl } = provider
      const base = { clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, apiUrl } }
      return { ...base, ...overrides } as BuiltInOptions & typeof overrides & object // spread keeps both shapes
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
  return provider

  function authorizeParams(url: string): URLSearchParams {
    const parsed = new URL(url)
    if (parsed.origin + parsed.pathname !== provider.authorizeUrl) throw new Error(`not this provider's authorize URL: ${url}`)
    return parsed.searchParams
  }

  function record(params: URLSearchParams, code: string, outcome: Record<string, string>): Authorization {
    const callbackState = params.get('state') ?? ''
    const callbackQuery = { ...outcome, state: callbackState }
    const callback = new URL(params.get('redirect_uri') ?? '')
    for (const [name, value] of Object.entries(callbackQuery)) callback.searchParams.set(name, value)
    const authorization = { params, code, state: callbackState, callbackUrl: callback.href, callbackQuery }
    provider.authorizations.push(authorization)
    return authorization
  }
}

/** A fixed answer: objects go out as JSON, strings as they are. */
export function answer(status: number, content: unknown, headers: Record<string, string> = {}): FakeHandler {
  return (_request, response) => {
    const isText = typeof content === 'string' || Buffer.isBuffer(content)
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers })
    response.end(isText ? content : JSON.stringify(content))
  }
}

/** RFC 7636 section 4.2. */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

/** RFC 7515 by hand, so that a test can sign what no library would. */
export function signJwt(claims: unknown, header: Record<string, unknown>, key: KeyObject | string = signingKeys().privateKey): string {
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${signature(signed, String(header['alg']), key).toString('base64url')}`
}

function signature(text: string, alg: string, key: KeyObject | string): Buffer {
  if (alg === 'none') return Buffer.alloc(0)
  if (typeof key === 'string') return createHmac('sha256', key).update(text).digest()
  return sign(`sha${alg.slice(2)}`, Buffer.from(text), {
    key,
    ...(alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' as const } : {}),
    ...(alg.startsWith('PS') ? { padding: 6, saltLength: -1 } : {}),
  })
}

function endpointOf(method: string, path: string): FakeEndpoint {
  const known: Record<string, FakeEndpoint> = {
    'GET /authorize': 'authorize',
    'POST /token': 'token',
    'GET /userinfo': 'userinfo',
    'GET /jwks': 'jwks',
    'GET /.well-known/openid-configuration': 'discovery',
    'GET /api/user': 'user',
    'POST /introspect': 'introspect',
    'GET /tokeninfo': 'tokeninfo',
  }
  if (method === 'POST' && /^\/api\/applications\/[^/]*\/token$/.test(path)) return 'application'
  return known[`${method} ${path}`] ?? 'elsewhere'
}

/** RFC 6749 section 2.3.1: both halves of Basic are form-encoded. */
function credentialsOf(authorization: string | undefined, form: URLSearchParams): (string | null)[] {
  if (!authorization?.startsWith('Basic ')) return [form.get('client_id'), form.get('client_secret')]
  const [id = '', secret = ''] = Buffer.from(authorization.slice(6), 'base64').toString('utf8').split(':')
  return [id, secret].map((part) => new URLSearchParams(`v=${part}`).get('v'))
}

function optional<Name extends string>(name: Name, value: string | null): { [Key in Name]?: string } {
  return (value === null ? {} : { [name]: value }) as { [Key in Name]?: string } // a computed key widens to string
}
