import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, DiscordClient, FacebookClient, type FacebookClientOptions } from '../../src'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'
import { discordAuthorization, discordUser, facebookError, facebookToken, facebookUser } from './documented-answers'

const redirectUri = 'https://app.example.com/auth/oauth/x/callback'
const credentials = { clientId: 'client-1', clientSecret: 'secret' }
let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const optionsOf = ({ clientId, clientSecret, authorizeUrl, tokenUrl, apiUrl }: FakeProvider) => ({
  clientId,
  clientSecret,
  endpoints: { authorizeUrl, tokenUrl, apiUrl },
})
const outcome = (work: Promise<unknown>) =>
  work.then(
    (value) => value,
    (error: { code?: string }) => error.code,
  )
const asked = () => provider.requestsTo('elsewhere').map(({ url }) => url)

describe('DiscordClient', () => {
  const client = () => new DiscordClient(optionsOf(provider))
  async function profileOf(user: unknown, options: object = {}) {
    provider.on('elsewhere', answer(200, user))
    const discord = new DiscordClient({ ...optionsOf(provider), ...options })
    return discord.fetchUser(await discord.exchangeCode({ code: provider.issueCode(), redirectUri }))
  }

  test('asks Discord’s own endpoints for identify and email', () => {
    expect(new DiscordClient(credentials)).toMatchObject({
      providerName: 'discord',
      authorizeUrl: 'https://discord.com/oauth2/authorize',
      tokenUrl: 'https://discord.com/api/oauth2/token',
      scopes: ['identify', 'email'],
      pkce: true,
    })
  })

  test('reads `verified`, prefers the display name, and makes the picture’s address', async () => {
    expect(await profileOf(discordUser)).toEqual({
      provider: 'discord',
      subject: '80351110224678912',
      email: 'nelly@discord.com',
      emailVerified: true,
      name: 'Nelly',
      picture: 'https://cdn.discordapp.com/avatars/80351110224678912/8342729096ea3675442027381ff50dfe.png',
      raw: discordUser,
    })
    expect((await profileOf({ ...discordUser, global_name: 'Nelly the Elephant' })).name).toBe('Nelly the Elephant')
    for (const avatar of [null, '', '../../evil', 7]) expect((await profileOf({ ...discordUser, avatar })).picture).toBeNull()
  })

  test.each<[unknown, boolean | null]>([
    [true, true],
    [false, false],
    [undefined, null],
    [1, null],
    ['yes', null],
  ])('verified: %j makes %j', async (verified, expected) => {
    expect((await profileOf({ ...discordUser, verified })).emailVerified).toBe(expected)
  })

  test('with trustEmail: false nothing is verified; without the scope email there is no address', async () => {
    expect((await profileOf(discordUser, { trustEmail: false })).emailVerified).toBeNull()
    const { email: _email, verified: _verified, ...withoutScope } = discordUser
    expect(await profileOf(withoutScope)).toMatchObject({ email: null, emailVerified: null })
  })

  test.each([80351110224678912, 'nelly', '', null, '1'.repeat(21)])('the id %j is refused', async (id) => {
    expect(await outcome(profileOf({ ...discordUser, id }))).toBe('OAUTH_ERROR')
  })

  test('an access token in hand is ours only where Discord names our application', async () => {
    const said = (application: unknown, more: object = {}) =>
      provider.on('elsewhere', answer(200, { ...discordAuthorization, application, ...more }))
    said({ id: 'client-1' }, { user: { id: '42' } })
    expect(await outcome(client().verifyTokenAudience('token'))).toEqual({ claims: { sub: '42' } })
    expect(asked()).toEqual(['/api/oauth2/@me'])
    for (const application of [{ id: '159799960412356608' }, {}, null, undefined, { id: ['client-1'] }]) {
      said(application)
      expect(await outcome(client().verifyTokenAudience('token'))).toBe('OAUTH_TOKEN_AUDIENCE_MISMATCH')
    }
    said({ id: 'the-app-on-phones' })
    const withPhones = new DiscordClient({ ...optionsOf(provider), extraAudiences: ['the-app-on-phones'] })
    expect(await outcome(withPhones.verifyTokenAudience('token'))).toEqual({ claims: { sub: undefined } })
    provider.on('elsewhere', answer(401, { message: '401: Unauthorized', code: 0 }))
    expect(await outcome(client().verifyTokenAudience('token'))).toBe('OAUTH_TOKEN_REJECTED')
    provider.on('elsewhere', answer(503, {}))
    expect(await outcome(client().verifyTokenAudience('token'))).toBe('OAUTH_PROVIDER_UNAVAILABLE')
    const calls = asked().length
    const nobody = new DiscordClient({ ...optionsOf(provider), clientId: '' })
    expect([await outcome(nobody.verifyTokenAudience('token')), asked().length]).toEqual(['OAUTH_AUDIENCE_UNVERIFIABLE', calls])
  })
})

describe('FacebookClient', () => {
  const client = (options: Partial<FacebookClientOptions> = {}) => new FacebookClient({ ...optionsOf(provider), ...options })

  test('pins the version of the Graph API, in the dialog too; another one may be chosen', () => {
    expect(new FacebookClient(credentials)).toMatchObject({
      providerName: 'facebook',
      authorizeUrl: 'https://www.facebook.com/v24.0/dialog/oauth',
      tokenUrl: 'https://graph.facebook.com/v24.0/oauth/access_token',
      scopes: ['public_profile', 'email'],
    })
    expect(new FacebookClient({ ...credentials, graphVersion: 'v25.0' }).tokenUrl).toBe(
      'https://graph.facebook.com/v25.0/oauth/access_token',
    )
  })

  test('every profile is asked for with appsecret_proof, and the access token is in no URL', async () => {
    provider.on('elsewhere', answer(200, facebookUser))
    const facebook = client()
    const tokens = await facebook.exchangeCode({ code: provider.issueCode(), redirectUri })
    expect(await facebook.fetchUser(tokens)).toEqual({
      provider: 'facebook',
      subject: '10220000000000001',
      email: 'jane@example.com',
      emailVerified: null,
      name: 'Jane Smith',
      picture: 'https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1',
      raw: facebookUser,
    })
    const [request] = provider.requestsTo('elsewhere')
    const query = new URL(String(request?.url), provider.issuer).searchParams
    expect(query.get('appsecret_proof')).toMatch(/^[0-9a-f]{64}$/)
    expect(query.get('fields')).toBe('id,name,email,picture.type(large)')
    expect(request?.headers.authorization).toBe(`Bearer ${tokens.accessToken}`)
    expect(request?.url).not.toContain(tokens.accessToken)
  })

  test('no address is verified, whatever the answer says', async () => {
    provider.on('elsewhere', answer(200, { ...facebookUser, email_verified: true, verified: true }))
    const facebook = client()
    const tokens = await facebook.exchangeCode({ code: provider.issueCode(), redirectUri })
    expect((await facebook.fetchUser(tokens)).emailVerified).toBeNull()
  })

  test.each<[string, object | null, unknown]>([
    ['is ours', {}, { claims: { sub: '1207059' } }],
    ['is of another app', { app_id: '1' }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ['is of no app', { app_id: undefined }, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    ['has expired', { is_valid: false }, 'OAUTH_TOKEN_REJECTED'],
    ['may be valid', { is_valid: 'true' }, 'OAUTH_TOKEN_REJECTED'],
    ['is a page’s', { type: 'PAGE' }, 'OAUTH_TOKEN_REJECTED'],
    ['is not described', null, 'OAUTH_PROVIDER_UNAVAILABLE'],
  ])('an access token in hand that %s', async (_case, changes, expected) => {
    provider.on('elsewhere', answer(200, { data: changes && { ...facebookToken, app_id: 'client-1', ...changes } }))
    expect(await outcome(client().verifyTokenAudience('token'))).toEqual(expected)
    expect(asked()).toEqual(['/api/debug_token?input_token=token'])
    expect(provider.requestsTo('elsewhere')[0]?.headers.authorization).toBe(`Bearer client-1|${provider.clientSecret}`)
  })

  test.each([
    [100, 'OAUTH_TOKEN_AUDIENCE_MISMATCH'],
    [190, 'OAUTH_ERROR'],
    [1, 'OAUTH_TOKEN_REJECTED'],
  ])('an error of code %i about a token in hand is %s', async (code, expected) => {
    provider.on('elsewhere', answer(400, facebookError(code)))
    expect(await outcome(client().verifyTokenAudience('token'))).toBe(expected)
  })

  test('a profile of somebody else than the token is refused', async () => {
    provider.on('elsewhere', answer(200, facebookUser))
    const tokens = { accessToken: 'a', tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {} }
    expect(await outcome(client().fetchUser({ ...tokens, proof: { claims: { sub: '1' } } }))).toBe('OAUTH_TOKEN_REJECTED')
  })

  test.each<object>([
    { graphVersion: '24.0' },
    { graphVersion: 'v24' },
    { graphVersion: 'v24.0/../' },
    { graphVersion: 24 },
    { clientSecret: '' },
  ])('the options %j are refused', (wrong) => {
    expect(() => new FacebookClient({ ...credentials, ...wrong })).toThrow(ConfigurationError)
  })
})
