import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { type Configuration, interactionPolicy, type JWK, Provider } from 'oidc-provider'
import { memoryAdapter } from './memory-adapter'
import { errorPage } from './pages'
import { findPerson } from './people'

/** The only application that is registered at Acme ID: the demo. */
export interface RegisteredClient {
  readonly clientId: string
  readonly clientSecret: string
  /** Must be equal, byte for byte, to the redirect URI of the request. */
  readonly redirectUri: string
}

/** Returns the protocol part of Acme ID: the certified `oidc-provider`, with secure settings. */
export function createProvider(issuer: string, client: RegisteredClient): Provider {
  return new Provider(issuer, configurationFor(client))
}

function configurationFor(client: RegisteredClient): Configuration {
  const { Check } = interactionPolicy
  const policy = interactionPolicy.base()
  // Asks at every login who is logging in. So a visitor of the demo can log in as another person without clearing cookies.
  policy
    .get('login')
    ?.checks.add(
      new Check('choose_person', 'the person at the keyboard says who they are', (ctx) =>
        ctx.oidc.result?.login ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
      ),
    )

  return {
    adapter: memoryAdapter(),
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        client_name: 'Doorward demo',
        redirect_uris: [client.redirectUri],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        id_token_signed_response_alg: 'RS256',
      },
    ],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    features: { devInteractions: { enabled: false } },
    findAccount: (_ctx, id) => accountOf(id),
    interactions: { policy, url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    jwks: { keys: [signingKey()] },
    responseTypes: ['code'],
    pkce: { required: () => true },
    renderError: (ctx, out) => {
      ctx.type = 'html'
      ctx.body = errorPage(out.error_description ?? out.error)
    },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 86_400, IdToken: 600, Interaction: 3_600, Session: 86_400 },
  }
}

function accountOf(id: string) {
  const person = findPerson(id)
  if (!person) return undefined
  return {
    accountId: person.id,
    claims: () => ({ sub: person.id, name: person.name, email: person.email, email_verified: true }),
  }
}

function signingKey(): JWK {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  // Node's type says that the members of an exported JWK are optional. An RSA private key has all of them.
  return { ...privateKey.export({ format: 'jwk' }), kid: randomBytes(8).toString('hex'), alg: 'RS256', use: 'sig' } as JWK
}
