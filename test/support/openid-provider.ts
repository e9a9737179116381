/**
 * A certified OpenID provider, not written by us: what it sends is what providers send. On loopback; consent is given to
 * whatever is asked.
 *
 *   const provider = await startOpenidProvider({ clients: [confidential('web', redirectUri)] })
 *   const code = await provider.approve(client, { redirectUri, nonce, codeVerifier })
 *   provider.use({ jwks })          // the same issuer, set up anew
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider'
import { challengeOf } from './fake-provider'

export interface OpenidProvider {
  readonly issuer: string
  /** Paths asked so far, without their queries. */
  readonly requests: string[]
  use(changes: Configuration): void
  /** A browser is sent there: the person signs in as `account-7` and says yes, or `error`; where it is sent back to. */
  visit(location: string, answer?: { error: string }): Promise<URL>
  /** The same for a request of our own making: the code. */
  approve(client: ApprovedClient, request: { redirectUri: string; nonce: string; codeVerifier: string }): Promise<string>
  close(): Promise<void>
}

export interface ApprovedClient {
  clientId: string
  authorizeUrl: string
  scopes: readonly string[]
}

export const clientSecret = 'a secret: with / and + and %'

export async function startOpenidProvider(configuration: Configuration): Promise<OpenidProvider> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string
  const requests: string[] = []
  let handle: RequestListener
  let answering: { error: string } | null = null
  server.on('request', (request, response) => {
    requests.push(request.url?.split('?')[0] ?? '')
    handle(request, response)
  })
  const use = (changes: Configuration) => {
    const provider = newProvider(issuer, { ...configuration, ...changes })
    const answer = provider.callback()
    handle = (request, response) =>
      void (request.url?.startsWith('/sign-in') ? signIn(provider, request, response, answering) : answer(request, response))
  }
  use({})
  return {
    issuer,
    requests,
    use,
    async visit(location, answer) {
      answering = answer ?? null
      return follow(issuer, location)
    },
    approve: (client, request) => approve(issuer, client, request),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A client with a secret. */
export function confidential(id: string, redirectUri: string, method: 'client_secret_post' | 'client_secret_basic'): ClientMetadata {
  return { client_id: id, client_secret: clientSecret, redirect_uris: [redirectUri], token_endpoint_auth_method: method }
}

/** A client without one, like an app on a phone (without the prompt that real ones get each time). */
export function publicClient(id: string, redirectUri: string): ClientMetadata {
  return { client_id: id, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }
}

function newProvider(issuer: string, configuration: Configuration): Provider {
  return new Provider(issuer, {
    claims: { email: ['email', 'email_verified'], profile: ['name', 'picture'] },
    cookies: { keys: ['test'] },
    interactions: { url: () => '/sign-in' },
    pkce: { required: () => true },
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 60, Session: 60 },
    findAccount: (_context, accountId) => ({ accountId, claims: async () => ({ sub: accountId, ...person }) }),
    // Consent is given to whatever is asked.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({ clientId: oidc.client?.clientId ?? '', accountId: oidc.session?.accountId ?? '' })
      grant.addOIDCScope('openid email profile')
      for (const resource of Object.keys(oidc.resourceServers ?? {})) grant.addResourceScope(resource, 'openid email profile')
      await grant.save()
      return grant
    },
    ...configuration,
    features: { devInteractions: { enabled: false }, ...configuration.features },
  })
}

/** Who signs in, beside the subject `account-7`. */
export const person = { email: 'Ana@example.com', email_verified: true, name: 'Ana', picture: 'https://a.example/p' }

async function signIn(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
  refusal: { error: string } | null,
): Promise<void> {
  await provider.interactionFinished(request, response, refusal ?? { login: { accountId: 'account-7' } })
}

async function approve(
  issuer: string,
  client: ApprovedClient,
  { redirectUri, nonce, codeVerifier }: { redirectUri: string; nonce: string; codeVerifier: string },
): Promise<string> {
  const query = new URLSearchParams({
    client_id: client.clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: client.scopes.join(' '),
    state: 'state',
    nonce,
    code_challenge: challengeOf(codeVerifier),
    code_challenge_method: 'S256',
  })
  const { searchParams } = await follow(issuer, `${client.authorizeUrl}?${query}`)
  return searchParams.get('code') ?? `no code but ${searchParams}`
}

/** A browser of ten lines: follows redirects with cookies until it would leave the provider. */
async function follow(issuer: string, from: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let location = from
  for (let hop = 0; location.startsWith(issuer); hop += 1) {
    if (hop > 10) throw new Error(`the provider goes in circles: ${location}`)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(location, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) cookies.set(...pairOf(line))
    const next = response.headers.get('location')
    if (!next) throw new Error(`the provider stopped with ${response.status}: ${await response.text()}`)
    location = new URL(next, location).href
  }
  return new URL(location)
}

function pairOf(setCookie: string): [string, string] {
  const [pair = ''] = setCookie.split(';')
  const [name = '', value = ''] = pair.split('=')
  return [name, value]
}
