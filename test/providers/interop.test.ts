import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OAuthError } from '../../src/errors'
import { OidcClient } from '../../src/providers/oidc-client'
import { challengeOf } from '../support/fake-provider'

/** A certified OpenID provider, not written by us: what it sends is what providers send. */
const redirectUri = 'http://127.0.0.1:9/auth/oauth/corp/callback'
const nonce = 'nonce-of-this-login'
const codeVerifier = randomBytes(32).toString('base64url')
const clientOptions = { clientSecret: 'a secret: with / and + and %' }
let server: Server
let issuer: string

beforeAll(async () => {
  server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's address is never a string
  const provider = newProvider()
  const handle = provider.callback()
  server.on('request', (request, response) => {
    if (request.url?.startsWith('/sign-in')) void signIn(provider, request, response)
    else void handle(request, response)
  })
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

function newProvider(): Provider {
  const client = (client_id: string, token_endpoint_auth_method: 'client_secret_post' | 'client_secret_basic') => ({
    client_id,
    client_secret: clientOptions.clientSecret,
    redirect_uris: [redirectUri],
    token_endpoint_auth_method,
  })
  return new Provider(issuer, {
    clients: [client('post', 'client_secret_post'), client('basic', 'client_secret_basic')],
    claims: { email: ['email', 'email_verified'], profile: ['name', 'picture'] },
    cookies: { keys: ['test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: () => '/sign-in' },
    pkce: { required: () => true },
    ttl: { AccessToken: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: async () => ({ sub: accountId, email: 'Ana@example.com', email_verified: true, name: 'Ana', picture: 'https://a.example/p' }),
    }),
    // Consent is given to whatever is asked.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({ clientId: oidc.client?.clientId ?? '', accountId: oidc.session?.accountId ?? '' })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
}

async function signIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  await provider.interactionFinished(request, response, { login: { accountId: 'account-7' } })
}

/** A browser of ten lines: follows redirects with cookies until it would leave the provider. */
async function approve(client: OidcClient): Promise<string> {
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
  const cookies = new Map<string, string>()
  let location = `${client.authorizeUrl}?${query}`
  while (location.startsWith(issuer)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(location, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) cookies.set(...pairOf(line))
    const next = response.headers.get('location')
    if (!next) throw new Error(`the provider stopped with ${response.status}: ${await response.text()}`)
    location = new URL(next, location).href
  }
  const { searchParams } = new URL(location)
  return searchParams.get('code') ?? `no code but ${searchParams}`
}

function pairOf(setCookie: string): [string, string] {
  const [pair = ''] = setCookie.split(';')
  const [name = '', value = ''] = pair.split('=')
  return [name, value]
}

describe.each(['post', 'basic'] as const)('with a provider of another make, authenticating by client_secret_%s', (clientId) => {
  const discover = () => OidcClient.discover(issuer, { ...clientOptions, clientId })
  const clientFor = async () => {
    const { authorizeUrl, tokenUrl } = await discover()
    const options = { ...clientOptions, clientId, issuer, authorizeUrl, tokenUrl, userinfoUrl: `${issuer}/me`, jwksUri: `${issuer}/jwks` }
    return new OidcClient({ ...options, clientAuthentication: `client_secret_${clientId}` })
  }

  test('a login with PKCE and nonce ends in the verified profile', async () => {
    const client = await clientFor()
    const code = await approve(client)
    const tokens = await client.exchangeCode({ code, redirectUri, codeVerifier, nonce })
    const user = await client.fetchUser(tokens)
    expect(tokens.idToken).not.toBeNull()
    expect(user).toMatchObject({ subject: 'account-7', email: 'Ana@example.com', emailVerified: true, name: 'Ana' })
  })

  test('another nonce, another verifier and a spent code are refused', async () => {
    const client = await clientFor()
    const other = { code: await approve(client), redirectUri, codeVerifier, nonce: 'another' }
    await expect(client.exchangeCode(other)).rejects.toMatchObject({ code: 'OAUTH_ERROR', details: { status: null } })
    const spent = client.exchangeCode({ ...other, nonce })
    await expect(spent).rejects.toMatchObject({ details: { status: 400, body: expect.stringContaining('invalid_grant') } })
    const wrongVerifier = { code: await approve(client), redirectUri, codeVerifier: 'x'.repeat(43), nonce }
    await expect(client.exchangeCode(wrongVerifier)).rejects.toBeInstanceOf(OAuthError)
  })
})

test('discover reads its description: a login without naming any endpoint', async () => {
  const client = await OidcClient.discover(issuer, { ...clientOptions, clientId: 'post' })
  const tokens = await client.exchangeCode({ code: await approve(client), redirectUri, codeVerifier, nonce })
  await expect(client.fetchUser(tokens)).resolves.toMatchObject({ subject: 'account-7' })
})
