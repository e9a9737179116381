import { describe, expect, test } from 'vitest'
import { ConfigurationError, GitLabClient, LinkedInClient, SlackClient, TwitchClient } from '../../src'
import { begin, callBack, onDatabase } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { startFakeProvider } from '../support/fake-provider'
import { readyMade } from './ready-made'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })
const credentials = { clientId: 'client-1', clientSecret: 'secret' }

/** The redirect to the provider, and what its token endpoint is then asked with. */
async function sentBy(key: string) {
  const preset = readyMade[key]
  if (!preset) throw new Error(`no preset ${key}`)
  const host = await start({ providers: { [key]: preset.client } })
  preset.serve(host.provider, preset.somebody())
  const { params, query, cookie } = await begin(host, { key })
  const { status } = await callBack(host, query, { key, cookie })
  return { status, params, form: host.provider.requestsTo('token')[0]?.form }
}

describe('GitLabClient', () => {
  test('is gitlab.com, or your own', () => {
    expect(new GitLabClient(credentials)).toMatchObject({ issuer: 'https://gitlab.com', tokenUrl: 'https://gitlab.com/oauth/token' })
    for (const baseUrl of ['https://git.example.com', 'https://git.example.com/']) {
      expect(new GitLabClient({ ...credentials, baseUrl })).toMatchObject({
        issuer: 'https://git.example.com',
        authorizeUrl: 'https://git.example.com/oauth/authorize',
      })
    }
    expect(new GitLabClient({ ...credentials, baseUrl: 'https://example.com/gitlab' }).tokenUrl).toBe(
      'https://example.com/gitlab/oauth/token',
    )
  })

  test.each(['http://git.example.com', 'git.example.com', '', 7])('the base URL %j is refused', (baseUrl) => {
    expect(() => new GitLabClient({ ...credentials, baseUrl: baseUrl as string })).toThrow(ConfigurationError)
  })
})

describe('LinkedInClient', () => {
  test('sends no PKCE, takes an id_token without a nonce, and both spellings of its issuer', async () => {
    const { status, params, form } = await sentBy('linkedin')
    expect([status, params.has('code_challenge'), form?.has('code_verifier')]).toEqual([200, false, false])
    expect(new LinkedInClient(credentials)).toMatchObject({ issuer: 'https://www.linkedin.com/oauth', pkce: false })
    const accepts = (client: LinkedInClient, issuer: string) => Reflect.get(client, 'acceptsIssuer').call(client, issuer, {})
    const client = new LinkedInClient(credentials)
    expect(
      ['https://www.linkedin.com/oauth', 'https://www.linkedin.com', 'https://linkedin.com', ''].map((issuer) => accepts(client, issuer)),
    ).toEqual([true, true, false, false])
  })
})

describe('SlackClient', () => {
  test('sends no PKCE, and the workspace is in raw', async () => {
    const { status, params } = await sentBy('slack')
    expect([status, params.has('code_challenge'), params.has('nonce')]).toEqual([200, false, true])
    const fake = await startFakeProvider()
    readyMade['slack']?.serve(fake, readyMade['slack'].somebody())
    const { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer } = fake
    const client = new SlackClient({ clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer } })
    const user = await client.fetchUser(await client.exchangeCode({ code: fake.issueCode(), redirectUri: 'https://app.example.test/' }))
    await fake.close()
    expect(user.raw['https://slack.com/team_id']).toBe('T0R7GR')
  })
})

describe('TwitchClient', () => {
  test('asks for the claims by name, with scopes of its own', async () => {
    const { status, params } = await sentBy('twitch')
    expect([status, params.get('scope')]).toEqual([200, 'openid user:read:email'])
    const wanted = { email: null, email_verified: null, picture: null, preferred_username: null }
    expect(JSON.parse(String(params.get('claims')))).toEqual({ id_token: wanted, userinfo: wanted })
    expect(new TwitchClient(credentials).authorizeUrl).toMatch(/^https:\/\/id\.twitch\.tv\/oauth2\/authorize\?claims=/)
  })
})

test.each(Object.entries({ GitLabClient, LinkedInClient, SlackClient, TwitchClient }))(
  '%s takes the options of every client',
  (_name, Client) => {
    const client = new Client({
      ...credentials,
      providerName: 'mine',
      pkce: true,
      scopes: ['openid'],
      redirectUri: 'https://app.example.com/back',
    })
    expect(client).toMatchObject({ providerName: 'mine', pkce: true, scopes: ['openid'], redirectUri: 'https://app.example.com/back' })
  },
)
