import { randomBytes } from 'node:crypto'
import type { CodeOptions, FakeProvider } from './fake-provider'

/** A person's consent. A code or an access token refers to it. */
export interface FakeGrant extends CodeOptions {
  used: boolean
}

/** The codes and tokens of one provider, and the clock for their times. */
export interface Ledger {
  readonly now: () => Date
  readonly codes: Map<string, FakeGrant>
  readonly accessTokens: Map<string, FakeGrant>
}

export function issueCode(ledger: Ledger, options: CodeOptions): string {
  const code = `code-${randomBytes(12).toString('hex')}`
  ledger.codes.set(code, { ...options, used: false })
  return code
}

export function issueAccessToken(ledger: Ledger, grant: FakeGrant): string {
  const accessToken = `access-${randomBytes(12).toString('hex')}`
  ledger.accessTokens.set(accessToken, grant)
  return accessToken
}

/** Returns the token endpoint's response for a code. */
export function tokensFor(provider: FakeProvider, ledger: Ledger, grant: FakeGrant): Record<string, unknown> {
  const accessToken = issueAccessToken(ledger, grant)
  const scope = grant.scope ?? 'openid email profile'
  const idToken = scope.split(' ').includes('openid') ? idTokenFor(provider, grant) : null
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: 3600,
    scope,
    refresh_token: `refresh-${randomBytes(8).toString('hex')}`,
    ...(idToken === null ? {} : { id_token: idToken }),
  }
}

function idTokenFor(provider: FakeProvider, grant: FakeGrant): string | null {
  const claims = provider.idTokenClaims(grant)
  const made = provider.idToken ? provider.idToken(claims) : claims
  return made === null || typeof made === 'string' ? made : provider.signJwt(made)
}

export function idTokenClaims(provider: FakeProvider, ledger: Ledger, options: CodeOptions): Record<string, unknown> {
  const seconds = secondsOf(ledger)
  const nonce = options.nonce ?? null
  return {
    iss: provider.issuer,
    aud: provider.clientId,
    iat: seconds,
    exp: seconds + 300,
    ...provider.profile,
    ...options.profile,
    ...(nonce === null ? {} : { nonce }),
  }
}

/** Returns what introspection and tokeninfo say about an access token: its application, its person and its expiry. */
export function accessTokenClaims(provider: FakeProvider, ledger: Ledger, accessToken: string | null) {
  const grant = ledger.accessTokens.get(accessToken ?? '')
  if (!grant) return null
  const seconds = secondsOf(ledger)
  const { sub } = { ...provider.profile, ...grant.profile }
  return { party: grant.issuedTo ?? provider.clientId, claims: { sub, iat: seconds, exp: seconds + 300 } }
}

function secondsOf({ now }: Ledger): number {
  return Math.floor(now().getTime() / 1000)
}
