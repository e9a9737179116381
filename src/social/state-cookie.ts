import { createHmac, type KeyObject } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { findKey, type KeyList } from '../core/keys'
import { constantTimeEqual } from '../core/opaque-token'
import { clearCookie, cookieNames, readCookie, setCookie, setCookieLines } from '../http/cookies'
import type { Locale } from '../http/locale'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import { clearProofCookie, cookiePlaceOf, readProofCookie, setProofCookie } from '../sessions/cookies'
import type { Destination } from '../sessions/destination'
import { type Irreversibility, readIrreversibility, writeIrreversibility } from '../sessions/reauthentication/irreversible-change'

/** One browser tab that went to a provider and has not come back yet. */
export type Attempt = LoginFlow | BoundAttempt

interface AttemptCore {
  readonly provider: string
  /** The `state` of the authorization request: 256 bits. The PKCE verifier and the nonce are derived from this value. */
  readonly random: string
  /** The expiry in seconds since 1970. The server checks the expiry, even if the cookie's Max-Age is later. */
  readonly expiresAt: number
  /**
   * The position in `jwtSecret` of the secret that signed the attempt. The verifier and the nonce are derived with the key of this secret.
   */
  readonly secret: number
  /** The language of `?lang=` at the start. The cookie stores the language, because the provider does not return it. */
  readonly locale: Locale | null
  /** The page or app that the browser opens after a success. */
  readonly destination: Destination | null
}

interface LoginFlow extends AttemptCore {
  readonly purpose: 'login'
  /** The id of the browser that began the attempt (`browser-mark.ts`). Null without such a mark. */
  readonly browser: string | null
}

/** An attempt that a signed-in person began. The attempt is valid only for this account and this session. */
export interface BoundAttempt extends AttemptCore {
  readonly purpose: 'link' | 'reauthenticate'
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** The `accountDigest` at the start. */
  readonly digest: string
  /** The start, in seconds since 1970. */
  readonly startedAt: number
  /**
   * Whether an older factor confirmed the start of a link (`Irreversibility`). If it did, the owner cannot undo the change with the mailed notice.
   */
  readonly isFinal: Irreversibility
}

/** The purpose of an attempt, with the data that the callback needs. */
export type Intent = Omit<LoginFlow, keyof AttemptCore> | Omit<BoundAttempt, keyof AttemptCore>

/** The maximum number of tabs that can be at providers at the same time. */
export const parallelAttempts = 5

/** The maximum length of the cookie's line. Browsers drop a cookie of more than 4,096 bytes (RFC 6265bis section 5.6). */
const longestCookie = 4_000

// The cookie's value is a list of attempts, joined by `~`. An attempt is a list of fields, joined by `.`. Each attempt has its own MAC.

/** Returns the open attempts of this browser: attempts with a valid MAC that have not expired by our clock. */
export function readAttempts(ctx: AuthContext, req: Request): Attempt[] {
  const value = readCookie(ctx, req, ctx.settings.oauthStateCookieName)
  if (!value) return []
  return value
    .split('~', parallelAttempts)
    .map((text) => openAttempt(ctx, text))
    .filter((attempt) => attempt !== null)
}

/** Returns true if a key of ours sealed an attempt in this value. */
export function isOwnState(ctx: Pick<AuthContext, 'settings' | 'keys'>, value: string): boolean {
  return value.split('~', parallelAttempts).some((text) => secretOf(ctx, text.split('.')) !== -1)
}

/** Writes the attempts into the cookie. If the cookie is too long for a browser, the function removes the oldest attempts. */
export function writeAttempts(ctx: AuthContext, res: Response, attempts: readonly Attempt[]): void {
  const name = ctx.settings.oauthStateCookieName
  const value = attempts.map((attempt) => sealAttempt(ctx, attempt)).join('~')
  if (value === '') clearCookie(ctx, res, name, scope(ctx))
  else setCookie(ctx, res, name, value, { ...scope(ctx), maxAgeSeconds: ctx.settings.oauthStateTtlSeconds })
  const line = setCookieLines(res).at(-1) ?? ''
  if (line.length > longestCookie && attempts.length > 1) writeAttempts(ctx, res, attempts.slice(1))
  else writePostStates(ctx, res, attempts)
}

function sealAttempt(ctx: AuthContext, attempt: Attempt): string {
  const fields = fieldsOf(attempt)
  return [...fields, mac(ctx, attemptKeyOf(ctx.keys.state, attempt), fields)].join('.')
}

function openAttempt(ctx: AuthContext, sealed: string): Attempt | null {
  const fields = sealed.split('.')
  const secret = secretOf(ctx, fields)
  const attempt = secret === -1 ? null : attemptOf(ctx, fields.slice(0, -1), secret)
  return attempt && attempt.expiresAt > epochSeconds(ctx) ? attempt : null
}

/** Returns the position of the secret that signed the fields, the last of which is the MAC. -1: none did. */
function secretOf(ctx: Pick<AuthContext, 'settings' | 'keys'>, fields: readonly string[]): number {
  return findKey(ctx.keys.state, (key) => constantTimeEqual(mac(ctx, key, fields.slice(0, -1)), fields.at(-1) ?? null))
}

/**
 * Reads the fields. The MAC shows that doorward wrote the fields, but another version of doorward may have written them. So the function
 * checks the number of fields.
 */
function attemptOf({ texts }: AuthContext, [purpose, provider, random, expiry, locale, ...rest]: string[], secret: number): Attempt | null {
  const [expiresAt, language] = [Number(expiry), texts.find(locale ?? '')]
  const core = { provider: provider ?? '', random: random ?? '', expiresAt, secret, locale: language }
  if (purpose === 'login' && (rest.length === 1 || rest.length === 2))
    return { ...core, purpose, browser: rest[0] || null, destination: destinationOf(rest[1]) }
  const [user, digest, sessionId, startedAt, final, destination] = rest
  if ((purpose !== 'link' && purpose !== 'reauthenticate') || rest.length < 5 || rest.length > 6) return null
  const userId = decoded(user ?? '')
  return {
    ...core,
    purpose,
    userId,
    digest: digest ?? '',
    sessionId: sessionId || null,
    startedAt: Number(startedAt),
    isFinal: readIrreversibility(final),
    destination: destinationOf(destination),
  }
}

function destinationOf(field: string | undefined): Destination | null {
  return field === undefined ? null : (JSON.parse(decoded(field)) as Destination) // as `fieldsOf` wrote it
}

/** Returns the fields. Encodes the host's user id, because the id can contain our separators. */
function fieldsOf(attempt: Attempt): string[] {
  const { purpose, provider, random, expiresAt, locale, destination } = attempt
  const core = [purpose, provider, random, String(expiresAt), locale ?? '']
  const last = destination ? [encoded(JSON.stringify(destination))] : []
  if (attempt.purpose === 'login') return [...core, attempt.browser ?? '', ...last]
  const { userId, digest, sessionId, startedAt, isFinal } = attempt
  return [...core, encoded(userId), digest, sessionId ?? '', String(startedAt), writeIrreversibility(isFinal), ...last]
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}

function decoded(field: string): string {
  return Buffer.from(field, 'base64url').toString('utf8')
}

/** Returns the key of the secret that signed the attempt. @param keys one list of `ctx.keys` */
export function attemptKeyOf(keys: KeyList, { secret }: Attempt): KeyObject {
  return keys[secret] ?? keys[0]
}

/** Returns the MAC of the cookie's name and the fields. The name is included, so that the value of another cookie is not valid here. */
function mac(ctx: Pick<AuthContext, 'settings'>, key: KeyObject, fields: readonly string[]): string {
  const text = JSON.stringify([ctx.settings.oauthStateCookieName, ...fields])
  return createHmac('sha256', key).update(text).digest('base64url')
}

/**
 * Returns the cookie's scope. The cookie is always Lax, because the provider's redirect is a cross-site navigation and the browser must
 * send the cookie with it. The login and the callback are on this host, so no other host needs the cookie.
 */
function scope({ prefix }: AuthContext) {
  return { path: prefix, sameSite: 'lax', hostOnly: true } as const
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}

const cookieName = 'oauth_state_post'

/** The provider's name in the option `providers`, the state and the expiry of an attempt. The expiry is in seconds since 1970. */
type PostState = readonly [provider: string, state: string, expiresAt: number]

export function answersByForm(client: Provider | undefined): boolean {
  return client !== undefined && !isPassportProvider(client) && client.responseMode === 'form_post'
}

/**
 * Stores the states of the attempts whose response comes by POST, in a separate cookie. A browser sends this cookie with another site's
 * form (`SameSite=None`). The cookie contains only the states. The attempts themselves stay in the Lax cookie, for the later GET.
 */
function writePostStates(
  ctx: AuthContext,
  res: Response,
  attempts: readonly { readonly provider: string; readonly random: string; readonly expiresAt: number }[],
): void {
  const states = attempts
    .filter(({ provider }) => answersByForm(ctx.providers.get(provider)))
    .map(({ provider, random, expiresAt }): PostState => [provider, random, expiresAt])
  if (states.length > 0)
    setProofCookie(ctx, res, cookieName, JSON.stringify(states), ctx.settings.oauthStateTtlSeconds, { sameSite: 'none' })
  else if (res.req && cookieNames(res.req).includes(cookiePlaceOf(ctx, cookieName).fullName)) clearProofCookie(ctx, res, cookieName)
}

/**
 * Returns true if this browser began an attempt with this state at this provider. The cookie is reliable, because an attacker on another
 * subdomain can neither set nor sign it.
 */
export function isPostState(ctx: AuthContext, req: Request, provider: string, state: string | null): boolean {
  const value = readProofCookie(ctx, req, cookieName)
  const states = value === null ? [] : (JSON.parse(value) as PostState[]) // as `writePostStates` wrote it
  const now = Math.floor(ctx.now().getTime() / 1000)
  return states.some(([key, random, expiresAt]) => key === provider && expiresAt > now && constantTimeEqual(random, state))
}
