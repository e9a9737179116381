import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OAuthError } from '../../src/core/errors'
import { OidcClient } from '../../src/providers/oidc-client'
import { clientSecret, confidential, type OpenidProvider, startOpenidProvider } from '../support/openid-provider'

const redirectUri = 'http://127.0.0.1:9/auth/oauth/corp/callback'
const nonce = 'nonce-of-this-login'
const codeVerifier = randomBytes(32).toString('base64url')
const clientOptions = { clientSecret }
let provider: OpenidProvider
let issuer: string

beforeAll(async () => {
  const clients = [confidential('post', redirectUri, 'client_secret_post'), confidential('basic', redirectUri, 'client_secret_basic')]
  provider = await startOpenidProvider({ clients })
  issuer = provider.issuer
})
afterAll(() => provider.close())

const approve = (client: OidcClient) => provider.approve(client, { redirectUri, nonce, codeVerifier })

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
    const used = client.exchangeCode({ ...other, nonce })
    await expect(used).rejects.toMatchObject({ details: { status: 400, body: expect.stringContaining('invalid_grant') } })
    const wrongVerifier = { code: await approve(client), redirectUri, codeVerifier: 'x'.repeat(43), nonce }
    await expect(client.exchangeCode(wrongVerifier)).rejects.toBeInstanceOf(OAuthError)
  })
})

test('discover reads its description: a login without naming any endpoint', async () => {
  const client = await OidcClient.discover(issuer, { ...clientOptions, clientId: 'basic' })
  const tokens = await client.exchangeCode({ code: await approve(client), redirectUri, codeVerifier, nonce })
  await expect(client.fetchUser(tokens)).resolves.toMatchObject({ subject: 'account-7' })
})
