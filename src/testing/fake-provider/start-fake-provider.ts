import { answerHonestly } from './answer-honestly'
import { appleOptions, githubOptions, googleOptions, oidcOptions } from './client-options'
import { sayNo, sayYes } from './consent'
import type { FakeEndpoint, FakeHandler, FakeProvider } from './fake-provider'
import { listenOnLoopback } from './listen-on-loopback'
import { signJwt } from './sign-jwt'
import { idTokenClaims, issueAccessToken, issueCode, type Ledger } from './tokens'

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

/** Returns the person Ana, as OpenID Connect and as GitHub describe her. */
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
