import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OAuthError } from '../../src/core/errors'
import { OidcClient } from '../../src/providers/oidc-client'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'

let provider: FakeProvider
beforeAll(async () => {
  provider = await startFakeProvider()
})
afterAll(() => provider.close())

// The verifier begins with the code: masking the shorter one first would leave the rest of the longer one.
const code = 'the/code&"1'
const sent = { code, redirectUri: 'https://app.example.com/callback', codeVerifier: `${code}-verifier-0123456789` }

async function bodyAfter(content: unknown, status = 400): Promise<string> {
  provider.on('token', answer(status, content))
  const client = new OidcClient(provider.oidcOptions())
  const error = await client.exchangeCode(sent).then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof OAuthError)) throw new Error('the answer was not refused')
  expect(error.details).toMatchObject({ provider: 'oidc', status })
  return String(error.details['body'])
}

describe('details.body of a 502', () => {
  test("is the provider's answer as it was, when there is nothing to hide", async () => {
    const content = '{"error":"invalid_grant", "error_description":"Code was already redeemed."}'
    expect(await bodyAfter(content)).toBe(content)
  })

  const jwt = () => `eyJhbGciOiJSUzI1NiJ9.${randomBytes(30).toString('base64url')}.${randomBytes(30).toString('base64url')}`
  const unusual = () => [randomBytes(20), randomBytes(20), randomBytes(20)].map((part) => part.toString('base64url')).join('.')
  const escaped = (text: string) => [...text].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const basic = () => Buffer.from('client-1:the+client+secret%3A+%2B%2F%26%3D').toString('base64')

  const plainBasic = () => Buffer.from(`client-1:${provider.clientSecret}`).toString('base64')

  test.each<[string, () => string, () => string]>([
    ['the client secret', () => provider.clientSecret, () => `secret was ${provider.clientSecret}!`],
    [
      'the client secret, percent-encoded',
      () => encodeURIComponent(provider.clientSecret),
      () => `?s=${encodeURIComponent(provider.clientSecret)}`,
    ],
    ['the client secret, form-encoded', () => 'the+client+secret', () => provider.requestsTo('token')[0]?.body ?? ''],
    ['the client secret in JSON', () => 'the client secret', () => JSON.stringify({ echo: provider.clientSecret })],
    ['the client secret in JSON escapes', () => escaped('client'), () => `{"echo":"${escaped(provider.clientSecret)}"}`],
    ['the client secret in HTML', () => 'the client secret', () => `<p>${provider.clientSecret.replace('&', '&amp;')}</p>`],
    ['the Basic credentials', basic, () => `authorization: Basic ${basic()}`],
    ['the Basic credentials without padding', () => basic().replace(/=+$/, ''), () => `authorization: Basic ${basic().replace(/=+$/, '')}`],
    ['the Basic credentials without form encoding', plainBasic, () => `authorization: Basic ${plainBasic()}`],
    ['the code', () => 'the/code', () => `code ${sent.code} is unknown`],
    ['the code in JSON', () => 'code&', () => JSON.stringify({ message: `code ${sent.code} is unknown` })],
    ['the code in JSON with escaped slashes', () => 'code&', () => JSON.stringify({ m: sent.code }).replaceAll('/', '\\/')],
    [
      'the code in cut JSON with escaped slashes',
      () => 'code&',
      () => JSON.stringify({ m: sent.code }).replaceAll('/', '\\/').slice(0, -2),
    ],
    ['the code as the name of a member', () => 'code&', () => JSON.stringify({ [sent.code]: 'unknown' })],
    ['the PKCE verifier', () => 'verifier-0123456789', () => `${sent.codeVerifier} does not match`],
    ['an access token', () => 'at-12345', () => JSON.stringify({ error: 'x', access_token: 'at-12345', echo: 'at-12345' })],
    ['a refresh token', () => 'rt-12345', () => JSON.stringify({ error: 'x', refresh_token: 'rt-12345' })],
    ['an id_token', () => 'it-12345', () => JSON.stringify({ error: 'x', id_token: 'it-12345' })],
    ['a nested access token', () => 'at-12345', () => JSON.stringify({ error: 'x', inner: [{ access_token: 'at-12345' }] })],
    ['an access token in cut JSON', () => 'at-12345', () => '{"error":"x","access_token":"at-12345'],
    ['an access token in a form', () => 'at-12345', () => 'error=x&access_token=at-12345&scope='],
  ])('never holds %s', async (_what, canary, content) => {
    await bodyAfter('warm-up')
    const text = content()
    const body = await bodyAfter(text)
    expect(text).toContain(canary())
    expect(body).not.toContain(canary())
    expect(body).toContain('[removed]')
  })

  test.each([
    ['a JWT', jwt],
    ['a JWT that was cut short', () => jwt().slice(0, 30)],
    ['something of the shape of a JWT', unusual],
  ])('never holds %s', async (_what, make) => {
    const token = make()
    const body = await bodyAfter(`token ${token} was refused`)
    for (const part of token.split('.')) expect(body).not.toContain(part)
    expect(body).toBe('token [removed] was refused')
  })

  test('is at most 1 KiB, cut between characters', async () => {
    const body = await bodyAfter('é'.repeat(100_000))
    expect(body).toBe('é'.repeat(512))
    expect(await bodyAfter(`x${'é'.repeat(100_000)}`)).toBe(`x${'é'.repeat(511)}`)
  })

  test('does not show a secret by cutting through it', async () => {
    const body = await bodyAfter(`${'x'.repeat(1020)}${provider.clientSecret}`)
    expect(body).toBe(`${'x'.repeat(1020)}[rem`)
  })

  test('has its control characters and direction overrides escaped', async () => {
    expect(await bodyAfter('a\r\nb\u001b[31m\u202e\u2028c')).toBe('a\\u000d\\u000ab\\u001b[31m\\u202e\\u2028c')
  })

  // Grown or searched without a bound, any of these outlasts every deadline of this suite, or the memory.
  test.each<[string, () => unknown]>([
    [
      'tokens of one letter, which stand in what replaces them',
      () => ({
        access_token: 'e',
        refresh_token: 'r',
        id_token: 'm',
        client_secret: 'o',
        code_verifier: 'v',
        error: 'remov'.repeat(40_000),
      }),
    ],
    ['a token of eight letters, over and over', () => ({ access_token: '[removed', error: '[removed'.repeat(25_000) })],
    ['beginnings of JWTs', () => 'eyJ'.repeat(80_000)],
    ['one run without a dot', () => 'a'.repeat(240_000)],
    ['dots', () => 'a.'.repeat(120_000)],
    ['members that never end', () => '"access_token":"\\'.repeat(14_000)],
  ])('F16: stays small and is made at once of %s', async (_what, content) => {
    expect(Buffer.byteLength(await bodyAfter(content()))).toBeLessThanOrEqual(1024)
  })

  test('shows no half of a secret where the reading of a long answer stops', async () => {
    const long = 'eyJ'.padEnd(16_000, 'x')
    expect(await bodyAfter(`${long} ${'y'.repeat(370)}${provider.clientSecret}`)).not.toContain(provider.clientSecret.slice(0, 8))
  })
})

test('the access token is not shown when userinfo echoes it', async () => {
  provider.on('token', null)
  provider.on('userinfo', (request, response) => void response.writeHead(401).end(`refused: ${request.headers.authorization}`))
  const client = new OidcClient(provider.oidcOptions())
  const tokens = await client.exchangeCode({ code: provider.issueCode(), redirectUri: sent.redirectUri })
  const details = { provider: 'oidc', status: 401, body: 'refused: Bearer [removed]' }
  await expect(client.fetchUser(tokens)).rejects.toMatchObject({ code: 'OAUTH_ERROR', details })
})
