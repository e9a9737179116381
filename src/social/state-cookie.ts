import { createHmac, type KeyObject } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { clearCookie, readCookie, setCookie } from '../http/cookies'
import { setCookieLines } from '../http/doubled-cookies'
import type { Locale } from '../http/locale'
import { findKey, type KeyList } from '../keys'
import type { Destination } from '../session/destination'
import { type Finality, readFinality, writeFinality } from '../step-up/finality'
import { writePostStates } from './post-states'
import { sameText } from './same-text'

/** One browser tab on its way to a provider and back. */
export type Attempt = LoginAttempt | BoundAttempt

interface AttemptCore {
  readonly provider: string
  /** The `state` of the authorization request: 256 bits. The PKCE verifier and the nonce are derived from it. */
  readonly random: string
  /** Seconds since 1970; the server's own, whatever the cookie's Max-Age. */
  readonly expiresAt: number
  /** Which secret of `jwtSecret` made it: the verifier and the nonce follow from that one. */
  readonly secret: number
  /** What `?lang=` asked for at the start: the provider does not bring it back. */
  readonly locale: Locale | null
  /** Where the browser goes after a success. */
  readonly destination: Destination | null
}

export interface LoginAttempt extends AttemptCore {
  readonly purpose: 'login'
}

/** Begun by a signed-in person: it is for this account and this session alone. */
export interface BoundAttempt extends AttemptCore {
  readonly purpose: 'link' | 'reauthenticate'
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** `accountDigest` at the start. */
  readonly digest: string
  /** Seconds since 1970. */
  readonly startedAt: number
  /** The start of a link showed a code of an old factor, so no link of a notice undoes it. */
  readonly isFinal: Finality
}

/** What the callback may do with an attempt. */
export type Intent = Pick<LoginAttempt, 'purpose'> | Omit<BoundAttempt, keyof AttemptCore>

/** Tabs that may be on their way at once. */
export const parallelAttempts = 5

/** Browsers drop a cookie of more than 4,096 bytes (RFC 6265bis section 5.6). */
const longestCookie = 4_000

// The cookie's value: attempts joined by `~`, fields by `.`, each attempt under a MAC of its own.

/** The attempts still open in this browser: those under a valid MAC and not expired by our clock. */
export function readAttempts(ctx: AuthContext, req: Request): Attempt[] {
  const value = readCookie(ctx, req, ctx.settings.oauthStateCookieName)
  if (!value) return []
  return value
    .split('~', parallelAttempts)
    .map((text) => openAttempt(ctx, text))
    .filter((attempt) => attempt !== null)
}

/** The oldest attempts give way until the cookie with its attributes is small enough for every browser. */
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
  return [...fields, mac(ctx, keyOf(ctx.keys.state, attempt), fields)].join('.')
}

function openAttempt(ctx: AuthContext, sealed: string): Attempt | null {
  const fields = sealed.split('.')
  const seal = fields.pop()
  const secret = findKey(ctx.keys.state, (key) => sameText(mac(ctx, key, fields), seal ?? null))
  const attempt = secret === -1 ? null : attemptOf(ctx, fields, secret)
  return attempt && attempt.expiresAt > epochSeconds(ctx) ? attempt : null
}

/** Fields under our MAC are as `fieldsOf` wrote them, perhaps in a version before or after this one. */
function attemptOf({ texts }: AuthContext, [purpose, provider, random, expiry, locale, ...rest]: string[], secret: number): Attempt | null {
  const [expiresAt, language] = [Number(expiry), texts.find(locale ?? '')]
  const core = { provider: provider ?? '', random: random ?? '', expiresAt, secret, locale: language }
  if (purpose === 'login' && rest.length <= 1) return { ...core, purpose, destination: destinationOf(rest[0]) }
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
    isFinal: readFinality(final),
    destination: destinationOf(destination),
  }
}

function destinationOf(field: string | undefined): Destination | null {
  return field === undefined ? null : (JSON.parse(decoded(field)) as Destination) // as `fieldsOf` wrote it
}

/** A user id is the host's: encoded, it can hold neither of our separators. */
function fieldsOf(attempt: Attempt): string[] {
  const { purpose, provider, random, expiresAt, locale, destination } = attempt
  const core = [purpose, provider, random, String(expiresAt), locale ?? '']
  const last = destination ? [encoded(JSON.stringify(destination))] : []
  if (attempt.purpose === 'login') return [...core, ...last]
  const { userId, digest, sessionId, startedAt, isFinal } = attempt
  return [...core, encoded(userId), digest, sessionId ?? '', String(startedAt), writeFinality(isFinal), ...last]
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}

function decoded(field: string): string {
  return Buffer.from(field, 'base64url').toString('utf8')
}

/** The key of the attempt's own secret, one of `ctx.keys`. */
export function keyOf(keys: KeyList, { secret }: Attempt): KeyObject {
  return keys[secret] ?? keys[0]
}

/** The cookie's name is covered too: a value made for another cookie says nothing here. */
function mac(ctx: AuthContext, key: KeyObject, fields: readonly string[]): string {
  const text = JSON.stringify([ctx.settings.oauthStateCookieName, ...fields])
  return createHmac('sha256', key).update(text).digest('base64url')
}

/**
 * Lax, whatever the other cookies are: the provider's redirect is a cross-site navigation, and must bring it along. Of
 * this host alone, where login and callback are: no sibling host is sent it.
 */
function scope({ prefix }: AuthContext) {
  return { path: prefix, sameSite: 'lax', hostOnly: true } as const
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}
