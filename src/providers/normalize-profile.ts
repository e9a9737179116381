import { AppError, OAuthProviderUnavailableError } from '../core/errors'
import { type KeySet, verifyByKeySet } from './key-set'
import { getClaimsWithBearer, type ProviderConnection } from './oauth2-request'
import type { OAuthTokens, OAuthUser, TokenProof } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { isPlainObject } from './provider-request'
import { readHeader, reasonOf, SIGNATURE_ALGORITHMS, signedTokenRefusal } from './signed-token'

/**
 * Never guesses whether an address is verified. The email stays unchanged: the login decides later whether it counts.
 * @throws OAuthError when the profile has no usable subject
 */
export function normalizeProfile(provider: string, profile: unknown): OAuthUser {
  const { subject, email, emailVerified, name, picture, sid, raw } = isPlainObject(profile) ? profile : {}
  return {
    provider,
    subject: requireSubject(provider, subject),
    email: typeof email === 'string' ? email : null,
    emailVerified: verificationOf(emailVerified),
    name: displayName(name),
    picture: pictureUrl(picture),
    ...(isStorable(sid) && { sid }),
    raw: isPlainObject(raw) ? raw : {},
  }
}

/**
 * At most 255 characters, case sensitive (OpenID Connect Core section 2). A safe integer becomes its decimal text. A database can change
 * control characters and lone surrogates, so that two people could get the same subject.
 * @throws OAuthError
 */
export function requireSubject(provider: string, value: unknown): string {
  const subject = Number.isSafeInteger(value) ? String(value) : value
  if (isStorable(subject)) return subject
  throw unusableIdentity(provider, 'the provider gave no usable subject')
}

function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= 255 && !/[\p{Cc}\p{Cs}]/u.test(value)
}

/** Some providers quote the value, so the texts "true" and "false" count too. Null: any other value. */
function verificationOf(value: unknown): boolean | null {
  if (value === true || value === 'true') return true
  if (value === false || value === 'false') return false
  return null
}

/** Control and bidirectional characters can make a name look like another name. */
function displayName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const visible = value.replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/gu, '').trim()
  return [...visible].slice(0, 200).join('').trim() || null
}

function pictureUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > 1024 || !URL.canParse(value)) return null
  const url = new URL(value)
  const isPlain = url.protocol === 'https:' && url.username === '' && url.password === ''
  // `href` is the parsed spelling: the parser encodes or removes quotes, blanks and line breaks.
  return isPlain && url.href.length <= 1024 ? url.href : null
}

type Claims = Record<string, unknown>

/** `email` and `email_verified` come from one document, userinfo if it has an email: a flag is about its own address only. */
export function mergeClaims(idToken: Claims, userinfo: Claims): Claims {
  const { email: _email, email_verified: _flag, ...others } = { ...withoutNulls(idToken), ...withoutNulls(userinfo) }
  const { email, email_verified } = withoutNulls(userinfo)['email'] === undefined ? idToken : userinfo
  return { ...others, ...withoutNulls({ email, email_verified }) }
}

function withoutNulls(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined && value !== null))
}

/** @param subject the profile's `sub` as text, as the provider spells it @throws OAuthTokenRejectedError */
export function refuseOtherSubject(proof: TokenProof | undefined, subject: string): void {
  const proven = proof?.claims?.['sub']
  if (proven === undefined || proven === null) return
  if (spelled(proven) !== subject) throw signedTokenRefusal('the profile is of another subject than the token')
}

/** Some providers send a number in one response and a string in another. */
function spelled(subject: unknown): string | null {
  if (Number.isSafeInteger(subject)) return String(subject)
  return typeof subject === 'string' && subject !== '' ? subject : null
}

type UserinfoClaims = Record<string, unknown>

interface UserinfoRules {
  clientId: string
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  keySet: KeySet | null
  now: Date
}

/**
 * OpenID Connect Core section 5.3. Userinfo is a JSON object, or a JWT if the client is registered for one.
 * @throws OAuthError when the provider refuses or its response is unusable
 * @throws OAuthProviderUnavailableError if an app sent the token and no readable response came; the app can try again
 */
export async function readUserinfo(
  connection: ProviderConnection,
  url: string,
  tokens: OAuthTokens,
  rules: UserinfoRules,
): Promise<UserinfoClaims> {
  const content = await getClaimsWithBearer(connection, url, tokens)
  if (typeof content !== 'string') return content
  try {
    return await verifyUserinfo(content, rules, { isOwnExchange: !tokens.proof })
  } catch (error) {
    if (!(error instanceof AppError) || (tokens.proof && error instanceof OAuthProviderUnavailableError)) throw error
    throw unusableIdentity(connection.providerName, `userinfo refused: ${reasonOf(error)}`)
  }
}

/** Section 5.3.2: present `iss`, `aud` and `exp` must be right. `exp` may be missing, because the JWT came directly from the provider. */
async function verifyUserinfo(jwt: string, rules: UserinfoRules, { isOwnExchange }: { isOwnExchange: boolean }): Promise<UserinfoClaims> {
  const header = readHeader(jwt, SIGNATURE_ALGORITHMS)
  if (!rules.keySet) throw signedTokenRefusal('it is a signed JWT, and no jwksUri is set to check it')
  const claims = await verifyByKeySet(rules.keySet, jwt, header, { isOwnExchange })
  const { iss, aud, exp } = claims
  if (iss !== undefined && !(typeof iss === 'string' && rules.acceptsIssuer(iss, claims)))
    throw signedTokenRefusal('iss is not the issuer: check issuer')
  if (aud !== undefined && ![aud].flat().includes(rules.clientId)) throw signedTokenRefusal('aud does not name this client: check clientId')
  if (exp !== undefined && !(typeof exp === 'number' && exp > rules.now.getTime() / 1000))
    throw signedTokenRefusal('exp is past: check the clocks')
  return claims
}
