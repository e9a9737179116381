import { createHmac } from 'node:crypto'
import {
  createHttpClient,
  DiscordClient,
  FacebookClient,
  GitLabClient,
  LinkedInClient,
  MicrosoftClient,
  type ProviderClient,
  SlackClient,
  TwitchClient,
} from '../../src'
import { answer, type FakeEndpoint, type FakeHandler, type FakeProvider } from '../support/fake-provider'
import * as documented from './documented-answers'

type Profile = Record<string, unknown>

/** A ready-made client, and how the provider it is for behaves. */
export interface ReadyMade {
  client(fake: FakeProvider): ProviderClient
  /** The documented answer about somebody no other test has met. */
  somebody(): Profile & { email: string }
  /** Makes the fake answer as this provider does, about this person. */
  serve(fake: FakeProvider, person: Profile): void
  /** What the identity is then. */
  identity: { subject(person: Profile): string; emailVerified: true | null; name: string; picture(person: Profile): string | null }
  /** The same person, whose address the provider has not verified. */
  unverified: Profile
  /** Where the profile is read; null: from the id_token. */
  profileEndpoint: FakeEndpoint | null
  /** Whether it can be asked whose an access token is. */
  takesAccessTokens: boolean
}

const httpClient = createHttpClient({ timeoutMs: 1_500 })
let people = 0

function fresh<Answer extends { email: string }>(example: Answer, ids: Profile = {}): Answer & Profile {
  people += 1
  const subject = `${people}${process.pid}`
  const named = Object.fromEntries(Object.entries(ids).map(([name, idOf]) => [name, (idOf as (subject: string) => unknown)(subject)]))
  return { ...example, ...named, email: `ready-${subject}@example.test` }
}

const plain = (subject: string) => subject

/** The fake speaks OpenID Connect as it stands. */
function openid(
  make: new (options: never) => ProviderClient,
  example: Profile & { email: string; name?: string; picture?: string },
  more: { takesAccessTokens?: boolean; idToken?: FakeProvider['idToken'] } = {},
): ReadyMade {
  return {
    client: ({ authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer, introspectionUrl, clientId, clientSecret }) => {
      const introspection = more.takesAccessTokens ? { introspectionUrl } : {}
      const endpoints = { authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer, ...introspection }
      return new make({ clientId, clientSecret, httpClient, endpoints } as never) // each takes at least these
    },
    somebody: () => fresh(example, { sub: plain }),
    serve(fake, person) {
      fake.profile = person as FakeProvider['profile']
      fake.idToken = more.idToken ?? null
    },
    identity: {
      subject: ({ sub }) => String(sub),
      emailVerified: true,
      name: String(example.name ?? example['preferred_username']),
      picture: () => example.picture ?? null,
    },
    unverified: { email_verified: false },
    profileEndpoint: 'userinfo',
    takesAccessTokens: more.takesAccessTokens === true,
  }
}

/** Answers below `/api` by path; a call without the right bearer token is refused as the provider refuses it. */
function api(routes: Record<string, FakeHandler>): FakeHandler {
  return (request, response) => {
    const path = new URL(request.url, 'http://fake').pathname
    return (routes[path] ?? answer(404, { message: '404: Not Found' }))(request, response)
  }
}

const hasToken: (handler: FakeHandler) => FakeHandler = (handler) => (request, response) =>
  /^Bearer access-/.test(request.headers.authorization ?? '')
    ? handler(request, response)
    : answer(401, { message: '401: Unauthorized', code: 0 })(request, response)

const apiEndpoints = ({ authorizeUrl, tokenUrl, apiUrl }: FakeProvider) => ({ authorizeUrl, tokenUrl, apiUrl })

const discord: ReadyMade = {
  client: (fake) =>
    new DiscordClient({ clientId: fake.clientId, clientSecret: fake.clientSecret, httpClient, endpoints: apiEndpoints(fake) }),
  somebody: () => fresh(documented.discordUser, { id: plain }),
  serve(fake, person) {
    const authorization = {
      ...documented.discordAuthorization,
      application: { ...documented.discordAuthorization.application, id: fake.clientId },
      user: { id: person['id'], username: person['username'] },
    }
    fake.on('elsewhere', api({ '/api/users/@me': hasToken(answer(200, person)), '/api/oauth2/@me': hasToken(answer(200, authorization)) }))
  },
  identity: {
    subject: ({ id }) => String(id),
    emailVerified: true,
    name: 'Nelly',
    picture: ({ id }) => `https://cdn.discordapp.com/avatars/${String(id)}/8342729096ea3675442027381ff50dfe.png`,
  },
  unverified: { verified: false },
  profileEndpoint: 'elsewhere',
  takesAccessTokens: true,
}

const facebook: ReadyMade = {
  client: (fake) =>
    new FacebookClient({ clientId: fake.clientId, clientSecret: fake.clientSecret, httpClient, endpoints: apiEndpoints(fake) }),
  somebody: () => fresh(documented.facebookUser, { id: plain }),
  serve(fake, person) {
    fake.on(
      'elsewhere',
      api({
        '/api/me': hasToken((request, response) => {
          const token = (request.headers.authorization ?? '').replace('Bearer ', '')
          const proof = createHmac('sha256', fake.clientSecret).update(token).digest('hex')
          const isProven = new URL(request.url, fake.issuer).searchParams.get('appsecret_proof') === proof
          return answer(isProven ? 200 : 400, isProven ? person : documented.facebookError(100))(request, response)
        }),
        '/api/debug_token': (request, response) => {
          const isOurs = request.headers.authorization === `Bearer ${fake.clientId}|${fake.clientSecret}`
          const isKnown = new URL(request.url, fake.issuer).searchParams.get('input_token')?.startsWith('access-') === true
          const data = { ...documented.facebookToken, app_id: fake.clientId, user_id: person['id'], is_valid: isKnown }
          return answer(isOurs ? 200 : 400, isOurs ? { data } : documented.facebookError(190))(request, response)
        },
      }),
    )
  },
  identity: {
    subject: ({ id }) => String(id),
    emailVerified: null,
    name: 'Jane Smith',
    picture: () => 'https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1',
  },
  unverified: {},
  profileEndpoint: 'elsewhere',
  takesAccessTokens: true,
}

/** Where the fake stands in for login.microsoftonline.com. */
export function microsoftEndpoints({ authorizeUrl, tokenUrl, jwksUri, issuer }: FakeProvider) {
  return { authorizeUrl, tokenUrl, jwksUri, issuer: `${issuer}/{tenantid}/v2.0` }
}

const microsoft: ReadyMade = {
  client: (fake) =>
    new MicrosoftClient({ clientId: fake.clientId, clientSecret: fake.clientSecret, httpClient, endpoints: microsoftEndpoints(fake) }),
  somebody: () => fresh(documented.microsoftClaims, { sub: plain }),
  serve(fake, person) {
    fake.profile = person as FakeProvider['profile']
    fake.idToken = (claims) => ({ ...claims, iss: `${fake.issuer}/${String(claims['tid'])}/v2.0` })
  },
  identity: { subject: ({ sub }) => String(sub), emailVerified: true, name: 'Abe Lincoln', picture: () => null },
  unverified: { xms_edov: undefined, email_verified: true },
  profileEndpoint: null,
  takesAccessTokens: false,
}

export const readyMade: Readonly<Record<string, ReadyMade>> = {
  discord,
  facebook,
  microsoft,
  gitlab: openid(GitLabClient, documented.gitlabUser, { takesAccessTokens: true }),
  linkedin: openid(LinkedInClient, documented.linkedinUser, { takesAccessTokens: true, idToken: ({ nonce: _nonce, ...claims }) => claims }),
  slack: openid(SlackClient, documented.slackUser),
  twitch: openid(TwitchClient, documented.twitchUser),
}
