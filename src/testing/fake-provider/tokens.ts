import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from 'node:crypto'
import type { Authorization, CodeOptions, FakeProfile, FakeProvider } from './fake-provider'

/** A code or an access token refers to a person's consent. */
export interface FakeGrant extends CodeOptions {
  used: boolean
}

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

/** By hand (RFC 7515), so that a test can sign claims that a library would reject. */
export function signJwt(claims: unknown, header: Record<string, unknown>, key: KeyObject | string = signingKeys().privateKey): string {
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${signature(signed, String(header['alg']), key).toString('base64url')}`
}

function signature(text: string, alg: string, key: KeyObject | string): Buffer {
  if (alg === 'none') return Buffer.alloc(0)
  if (typeof key === 'string') return createHmac('sha256', key).update(text).digest()
  return sign(`sha${alg.slice(2)}`, Buffer.from(text), {
    key,
    ...(alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' as const } : {}),
    ...(alg.startsWith('PS') ? { padding: 6, saltLength: -1 } : {}),
  })
}

/** One pair for the whole process, made at the first call, because that takes a tenth of a second. */
export function signingKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  keys ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return keys
}
let keys: { publicKey: KeyObject; privateKey: KeyObject } | null = null

/** The private key signs the client secrets, and the fake provider knows the public key. */
export function appleKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  teamKeys ??= generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return teamKeys
}
let teamKeys: { publicKey: KeyObject; privateKey: KeyObject } | null = null

/** ES256. Null: another key signed the JWT, or it is malformed. */
export function claimsSignedBy(jwt: string, key: KeyObject): Record<string, unknown> | null {
  const [header = '', claims = '', signature = ''] = jwt.split('.')
  const signed = Buffer.from(`${header}.${claims}`)
  if (!verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))) return null
  return JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as Record<string, unknown>
}

/** S256 (RFC 7636 section 4.2). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

export function sayYes(provider: FakeProvider, url: string, profile: FakeProfile | undefined): Authorization {
  const params = authorizeParams(provider, url)
  const code = provider.issueCode({
    ...(profile ? { profile } : {}),
    redirectUri: params.get('redirect_uri') ?? '',
    scope: params.get('scope') ?? '',
    ...optional('codeChallenge', params.get('code_challenge')),
    ...optional('nonce', params.get('nonce')),
  })
  const user = nameOnce(provider, params, profile)
  return record(provider, params, code, { code, ...optional('user', user) })
}

const known = new WeakMap<FakeProvider, Set<unknown>>()

/** Apple posts the field `user` unsigned and only with a person's first consent. Null: no such field. */
function nameOnce(provider: FakeProvider, params: URLSearchParams, profile: FakeProfile | undefined): string | null {
  const scopes = (params.get('scope') ?? '').split(' ')
  if (!isForm(params) || !scopes.includes('name')) return null
  const { sub, name, email } = { ...provider.profile, ...profile }
  const before = known.get(provider) ?? new Set()
  known.set(provider, before)
  if (before.has(sub) || typeof name !== 'string') return null
  before.add(sub)
  const [firstName, ...others] = name.split(' ')
  return JSON.stringify({ name: { firstName, lastName: others.join(' ') }, ...(scopes.includes('email') && { email }) })
}

function isForm(params: URLSearchParams): boolean {
  return params.get('response_mode') === 'form_post'
}

export function sayNo(provider: FakeProvider, url: string, error: string): Authorization {
  return record(provider, authorizeParams(provider, url), '', { error })
}

function authorizeParams(provider: FakeProvider, url: string): URLSearchParams {
  const parsed = new URL(url)
  if (parsed.origin + parsed.pathname !== provider.authorizeUrl) throw new Error(`not this provider's authorize URL: ${url}`)
  return parsed.searchParams
}

function optional<Name extends string>(name: Name, value: string | null): { [Key in Name]?: string } {
  return (value === null ? {} : { [name]: value }) as { [Key in Name]?: string } // a computed key widens to string
}

function record(provider: FakeProvider, params: URLSearchParams, code: string, outcome: Record<string, string>): Authorization {
  const state = params.get('state') ?? ''
  const answer = { ...outcome, state }
  const callbackForm = isForm(params) ? answer : null
  const callbackQuery: Record<string, string> = callbackForm ? {} : answer
  const callback = new URL(params.get('redirect_uri') ?? '')
  for (const [name, value] of Object.entries(callbackQuery)) callback.searchParams.set(name, value)
  const authorization = { params, code, state, callbackUrl: callback.href, callbackQuery, callbackForm }
  provider.authorizations.push(authorization)
  return authorization
}
