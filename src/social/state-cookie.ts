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
  /** 256 bits. The `state`, the PKCE verifier and the nonce are derived from it. */
  readonly random: string
  /** Seconds since 1970. The server checks it, even if the cookie's Max-Age is later. */
  readonly expiresAt: number
  /** The position of its secret in `jwtSecret`. The verifier and the nonce are derived with the key of this secret. */
  readonly secret: number
  /** Of `?lang=` at the start, because the provider does not return it. */
  readonly locale: Locale | null
  readonly destination: Destination | null
}

interface LoginFlow extends AttemptCore {
  readonly purpose: 'login'
  /** The browser that began the attempt (`browserOf`). Null without a mark. */
  readonly browser: string | null
  /** The token of an invitation, for a new account. */
  readonly invitation: string | null
}

/** Begun by a signed-in person, and valid only for this account and this session. */
export interface BoundAttempt extends AttemptCore {
  readonly purpose: 'link' | 'reauthenticate'
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** `accountDigest` at the start. */
  readonly digest: string
  readonly startedAt: number
  /** Whether an older factor confirmed the start of a link (`Irreversibility`). If so, the mailed notice cannot undo the change. */
  readonly isFinal: Irreversibility
}

export type Intent = Omit<LoginFlow, keyof AttemptCore> | Omit<BoundAttempt, keyof AttemptCore>

/** Tabs that can be at providers at the same time. */
export const parallelAttempts = 5

/** Browsers drop a cookie of more than 4,096 bytes (RFC 6265bis section 5.6). */
const longestCookie = 4_000

// The cookie's value: attempts joined by `~`, each with its own MAC. An attempt: fields joined by `.`.

/** With a valid MAC, and not expired by our clock. */
export function readAttempts(ctx: AuthContext, req: Request): Attempt[] {
  const value = readCookie(ctx, req, ctx.settings.oauthStateCookieName)
  if (!value) return []
  return value
    .split('~', parallelAttempts)
    .map((text) => openAttempt(ctx, text))
    .filter((attempt) => attempt !== null)
}

export function isOwnState(ctx: Pick<AuthContext, 'settings' | 'keys'>, value: string): boolean {
  return value.split('~', parallelAttempts).some((text) => secretOf(ctx, text.split('.')) !== -1)
}

/** If the cookie is too long for a browser, the oldest attempts are removed. */
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

/** The last field is the MAC. -1: no secret signed. */
function secretOf(ctx: Pick<AuthContext, 'settings' | 'keys'>, fields: readonly string[]): number {
  return findKey(ctx.keys.state, (key) => constantTimeEqual(mac(ctx, key, fields.slice(0, -1)), fields.at(-1) ?? null))
}

/** Another version of doorward may have written the fields, so their number is checked. */
function attemptOf({ texts }: AuthContext, [purpose, provider, random, expiry, locale, ...rest]: string[], secret: number): Attempt | null {
  const [expiresAt, language] = [Number(expiry), texts.find(locale ?? '')]
  const core = { provider: provider ?? '', random: random ?? '', expiresAt, secret, locale: language }
  if (purpose === 'login' && rest.length >= 1 && rest.length <= 3) {
    const [browser, destination, invitation] = rest
    return {
      ...core,
      purpose,
      browser: browser || null,
      destination: destinationOf(destination || undefined),
      invitation: invitation === undefined ? null : decoded(invitation),
    }
  }
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

/** Encodes the host's user id, because it can contain our separators. */
function fieldsOf(attempt: Attempt): string[] {
  const { purpose, provider, random, expiresAt, locale, destination } = attempt
  const core = [purpose, provider, random, String(expiresAt), locale ?? '']
  const last = destination ? [encoded(JSON.stringify(destination))] : []
  if (attempt.purpose === 'login') {
    const { browser, invitation } = attempt
    return [...core, browser ?? '', ...(invitation === null ? last : [last[0] ?? '', encoded(invitation)])]
  }
  const { userId, digest, sessionId, startedAt, isFinal } = attempt
  return [...core, encoded(userId), digest, sessionId ?? '', String(startedAt), writeIrreversibility(isFinal), ...last]
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}

function decoded(field: string): string {
  return Buffer.from(field, 'base64url').toString('utf8')
}

/** @param keys one list of `ctx.keys` */
export function attemptKeyOf(keys: KeyList, { secret }: Attempt): KeyObject {
  return keys[secret] ?? keys[0]
}

/** With the cookie's name, so that the value of another cookie is not valid here. */
function mac(ctx: Pick<AuthContext, 'settings'>, key: KeyObject, fields: readonly string[]): string {
  const text = JSON.stringify([ctx.settings.oauthStateCookieName, ...fields])
  return createHmac('sha256', key).update(text).digest('base64url')
}

/** Lax, because the provider's redirect is a cross-site navigation. Login and callback are on this host, so no other host needs it. */
function scope({ prefix }: AuthContext) {
  return { path: prefix, sameSite: 'lax', hostOnly: true } as const
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}

const cookieName = 'oauth_state_post'

/** Expiry in seconds since 1970. */
type PostState = readonly [provider: string, state: string, expiresAt: number]

export function answersByForm(client: Provider | undefined): boolean {
  return client !== undefined && !isPassportProvider(client) && client.responseMode === 'form_post'
}

/**
 * For attempts whose response comes by POST: a browser sends this cookie with another site's form (`SameSite=None`). It has only the
 * states. The attempts stay in the Lax cookie, for the later GET.
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

/** An attacker on another subdomain can neither set nor sign this cookie. */
export function isPostState(ctx: AuthContext, req: Request, provider: string, state: string | null): boolean {
  const value = readProofCookie(ctx, req, cookieName)
  const states = value === null ? [] : (JSON.parse(value) as PostState[]) // as `writePostStates` wrote it
  const now = Math.floor(ctx.now().getTime() / 1000)
  return states.some(([key, random, expiresAt]) => key === provider && expiresAt > now && constantTimeEqual(random, state))
}
