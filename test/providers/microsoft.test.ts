import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, MicrosoftClient, type MicrosoftClientOptions } from '../../src'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'
import { microsoftClaims } from './documented-answers'
import { microsoftEndpoints } from './ready-made'

const redirectUri = 'https://app.example.com/auth/oauth/microsoft/callback'
const credentials = { clientId: 'client-1', clientSecret: 'secret' }
const consumers = '9188040d-6c67-4c5b-b112-36a304b66dad'
const contoso = '72f988bf-86f1-41af-91ab-2d7cd011db47'
const other = '11111111-2222-3333-4444-555555555555'

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

type Claims = Record<string, unknown>

function clientOf(options: Partial<MicrosoftClientOptions> = {}): MicrosoftClient {
  const { clientId, clientSecret } = provider
  return new MicrosoftClient({ clientId, clientSecret, endpoints: microsoftEndpoints(provider), ...options })
}

const issuerOf = (tid: unknown) => `${provider.issuer}/${String(tid)}/v2.0`

/** A login of somebody of whom the id_token says this. */
async function logIn(claims: Claims, options: Partial<MicrosoftClientOptions> = {}) {
  const client = clientOf(options)
  provider.idToken = (standard) => {
    const all = { ...standard, ...microsoftClaims, iss: issuerOf({ ...microsoftClaims, ...claims }.tid), ...claims }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  }
  return client.fetchUser(await client.exchangeCode({ code: provider.issueCode(), redirectUri }))
}

const outcome = (login: Promise<unknown>) =>
  login.then(
    () => 'in',
    (error: { code?: string }) => error.code,
  )

describe('MicrosoftClient', () => {
  test('asks Microsoft’s own endpoints of the tenant, and reads the profile from the id_token alone', async () => {
    expect(new MicrosoftClient(credentials)).toMatchObject({
      providerName: 'microsoft',
      authorizeUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
      tokenUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
      scopes: ['openid', 'email', 'profile'],
      pkce: true,
    })
    expect(new MicrosoftClient({ ...credentials, tenant: contoso }).tokenUrl).toBe(
      `https://login.microsoftonline.com/${contoso}/oauth2/v2.0/token`,
    )
    await logIn({})
    expect(provider.requestsTo('userinfo')).toEqual([])
  })

  test.each<[string, string, string]>([
    ['common', contoso, 'in'],
    ['common', consumers, 'in'],
    ['organizations', contoso, 'in'],
    ['organizations', consumers, 'OAUTH_ERROR'],
    ['consumers', consumers, 'in'],
    ['consumers', contoso, 'OAUTH_ERROR'],
    [contoso, contoso, 'in'],
    [contoso, other, 'OAUTH_ERROR'],
    [contoso, consumers, 'OAUTH_ERROR'],
  ])('tenant %s and an account of %s: %s', async (tenant, tid, expected) => {
    expect(await outcome(logIn({ tid }, { tenant }))).toBe(expected)
  })

  test.each<[string, Claims]>([
    ['of another tenant than its own', { iss: 'other' }],
    ['of the template itself', { iss: 'template', tid: '{tenantid}' }],
    ['without a tenant', { tid: undefined }],
    ['of a tenant that is no id', { tid: 'contoso.onmicrosoft.com' }],
    ['of a tenant in capitals', { tid: contoso.toUpperCase() }],
    ['of a tenant that leads elsewhere', { tid: '../evil' }],
    ['of version 1', { iss: `https://sts.windows.net/${contoso}/` }],
  ])('an issuer %s is refused', async (_case, { iss, ...claims }) => {
    const written = {
      ...(iss !== undefined && { iss: iss === 'other' ? issuerOf(other) : iss === 'template' ? issuerOf('{tenantid}') : iss }),
    }
    expect(await outcome(logIn({ ...claims, ...written }))).toBe('OAUTH_ERROR')
  })

  test.each<[string, Claims, true | null]>([
    ['xms_edov true', { xms_edov: true }, true],
    ['xms_edov "1"', { xms_edov: '1' }, true],
    ['xms_edov 1', { xms_edov: 1 }, true],
    ['xms_edov "true"', { xms_edov: 'true' }, true],
    ['xms_edov false', { xms_edov: false }, null],
    ['xms_edov "0"', { xms_edov: '0' }, null],
    ['xms_edov as a list', { xms_edov: [true] }, null],
    ['no xms_edov', { xms_edov: undefined }, null],
    ['email_verified, which any tenant’s administrator can write', { xms_edov: undefined, email_verified: true }, null],
    ['verified_primary_email', { xms_edov: undefined, verified_primary_email: ['AbeLi@microsoft.com'] }, null],
  ])('an address with %s counts as verified: %s', async (_case, claims, verified) => {
    expect(await logIn(claims)).toMatchObject({ email: 'AbeLi@microsoft.com', emailVerified: verified })
  })

  test('with trustEmail: false not even xms_edov counts; an address that is not there is never made of preferred_username', async () => {
    expect((await logIn({}, { trustEmail: false })).emailVerified).toBeNull()
    expect((await logIn({ email: undefined })).email).toBeNull()
  })

  test('the subject is `sub`; with subject: oid it is `oid.tid`, which needs both', async () => {
    const { sub, oid, tid } = microsoftClaims
    expect((await logIn({})).subject).toBe(sub)
    expect((await logIn({}, { subject: 'oid' })).subject).toBe(`${oid}.${tid}`)
    // The same oid in two tenants is two people.
    expect((await logIn({ tid: other }, { subject: 'oid' })).subject).toBe(`${oid}.${other}`)
    for (const missing of [undefined, '', 7, 'x'.repeat(36), `${oid}.x`]) {
      expect(await outcome(logIn({ oid: missing }, { subject: 'oid' }))).toBe('OAUTH_ERROR')
    }
  })

  test('an id_token in hand is held to the same issuer and tenant', async () => {
    const signed = (claims: Claims) => provider.signJwt({ ...provider.idTokenClaims(), ...microsoftClaims, ...claims })
    const client = clientOf({ tenant: contoso })
    const tokens = await client.verifyIdToken(signed({ tid: contoso, iss: issuerOf(contoso) }), null)
    expect(await client.fetchUser(tokens)).toMatchObject({ subject: microsoftClaims.sub, emailVerified: true })
    for (const claims of [
      { tid: other, iss: issuerOf(other) },
      { tid: contoso, iss: issuerOf(other) },
      { tid: other, iss: issuerOf(contoso) },
    ]) {
      expect(await outcome(client.verifyIdToken(signed(claims), null))).toBe('OAUTH_TOKEN_REJECTED')
    }
  })

  test('keys that cannot be read are a refusal', async () => {
    provider.on('jwks', answer(503, {}))
    expect(await outcome(logIn({}))).toBe('OAUTH_ERROR')
  })

  test.each<object>([
    { tenant: 'contoso.onmicrosoft.com' },
    { tenant: contoso.toUpperCase() },
    { tenant: '../common' },
    { tenant: '' },
    { tenant: 7 },
    { subject: 'email' },
    { endpoints: { userinfoUrl: 'https://graph.microsoft.com/oidc/userinfo' } },
  ])('the options %j are refused', (wrong) => {
    expect(() => new MicrosoftClient({ ...credentials, ...wrong })).toThrow(ConfigurationError)
  })
})
