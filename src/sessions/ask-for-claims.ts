import type { AuthMethod } from '../core/amr'
import { ServiceUnavailableError } from '../core/errors'
import { describeError, type Logger, withOwnMessage } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { withTimeout } from '../core/with-timeout'
import type { AuthStore, SessionRecord } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type PublicUser, toPublicUser } from '../store/user-records'

/** Returns further claims for an access token. */
export type AccessTokenClaimsHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<PublicUser, Host>,
  about: {
    /** How the session authenticated. */
    readonly amr: readonly AuthMethod[]
  },
) => ClaimsOf<Host> | undefined | Promise<ClaimsOf<Host> | undefined>

interface ClaimsSource {
  /** Null if the host adds no claims. */
  readonly accessTokenClaims: AccessTokenClaimsHook | null
  readonly logger: Logger
}

/** The log has the reason. The response says only that the client may try again. */
class ClaimsUnavailableError extends ServiceUnavailableError {
  override readonly isLogged = true
}

const deadlineMs = 5_000

/**
 * Never call it inside an open transaction: the hook can query the host's database, whose only connection the transaction may hold.
 * @throws ServiceUnavailableError if the host's function fails, takes longer than 5 seconds, or returns invalid claims
 */
export async function askForClaims(
  { accessTokenClaims: hook, logger }: ClaimsSource,
  user: PublicUser,
  amr: readonly AuthMethod[],
): Promise<HostClaims> {
  if (!hook) return noClaims
  try {
    // Async, so that a synchronous throw becomes a rejection.
    const answer = (async (): Promise<unknown> => hook(user, { amr: Object.freeze([...amr]) }))()
    return readHostClaims(await withTimeout(answer, deadlineMs, late))
  } catch (error) {
    logger.error(
      reasonOf(error),
      `doorward: accessTokenClaims failed, so a login or refresh got no access token. ${seeTroubleshooting('claims-of-your-own-fail')}`,
    )
    throw new ClaimsUnavailableError({ cause: error })
  }
}

function late(): Error {
  return withOwnMessage(Object.assign(new Error('accessTokenClaims took too long.'), { code: 'TIMEOUT' }))
}

function reasonOf(error: unknown): object {
  if (!(error instanceof ClaimRefusedError)) return { error: describeError(error) }
  return { claim: error.claim?.slice(0, 64) ?? null, reason: error.message }
}

interface GoingOn {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly session: Pick<SessionRecord, 'kind'> | null
  readonly amr: readonly AuthMethod[]
}

/** Call it before the transaction (`askForClaims`). Reads the user's row only if the host has a hook. */
export async function claimsToGoOn(
  ctx: ClaimsSource & { readonly store: Pick<AuthStore, 'users'> },
  { userId, session, amr }: GoingOn,
): Promise<HostClaims> {
  if (!ctx.accessTokenClaims || session?.kind === 'session') return noClaims
  const user = await ctx.store.users.find(userId)
  return user ? askForClaims(ctx, toPublicUser(user), amr) : noClaims // the transaction rejects a deleted account
}

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** The host's own claims, at the top level of an access token. The object is deeply frozen, because many requests share it. */
export type HostClaims = Readonly<Record<string, Json>>

/** The type of claims that the host declared. Without a declaration: any JSON object. */
export type ClaimsOf<Host extends HostTypes> = Host extends { claims: infer Claims extends object }
  ? Claims
  : Readonly<Record<string, Json | undefined>>

export const noClaims: HostClaims = Object.freeze({})

/** Claims that only the issuer may set, and a name that would set an object's prototype. */
const reserved: ReadonlySet<string> = new Set([
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'typ', 'amr', 'email', 'sid', 'client_id', 'auth_time', 'act', 'scope'],
  '__proto__',
])

const maxBytes = 1024

/** The message names a claim, never a value. */
class ClaimRefusedError extends Error {
  override readonly name = 'ClaimRefusedError'
  /** Null: not about one claim. */
  readonly claim: string | null

  constructor(claim: string | null, message: string) {
    super(message)
    this.claim = claim
  }
}

/** Leaves out `undefined`, as JSON does. @throws ClaimRefusedError: no plain JSON object, a reserved name, or more than 1 KiB */
function readHostClaims(given: unknown): HostClaims {
  if (given === undefined) return noClaims
  if (!isPlainObject(given)) throw new ClaimRefusedError(null, 'it must return a plain object of claims, or undefined')
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  const claims = Object.freeze(Object.fromEntries(entries.map(([name, value]) => [name, readClaim(name, value)])))
  if (bytesOf(claims) > maxBytes) throw new ClaimRefusedError(largest(claims), `all claims together may have ${maxBytes} bytes as JSON`)
  return claims
}

function readClaim(name: string, value: unknown): Json {
  if (reserved.has(name)) throw new ClaimRefusedError(name, 'the name is reserved')
  const json = copyOfJson(value)
  if (json === undefined) throw new ClaimRefusedError(name, 'its value is not JSON')
  return json
}

/** Leaves out reserved names. Call it only after the signature was verified. */
export function hostClaimsOf(payload: object): HostClaims {
  const own = Object.entries(payload).filter(([name]) => !reserved.has(name))
  return own.length === 0 ? noClaims : Object.fromEntries(own.map(([name, value]) => [name, copyOfJson(value) ?? null]))
}

// Claims of 1 KiB cannot have that many levels. A circular structure has more, so it is rejected.
const maxDepth = 512

/** Undefined: JSON cannot represent the value, or would change it (a date, NaN, an object of a class). */
function copyOfJson(value: unknown, depth = 0): Json | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (depth > maxDepth || typeof value !== 'object') return undefined
  if (Array.isArray(value)) return frozenIfWhole(Array.from(value, (item: unknown) => copyOfJson(item, depth + 1)))
  if (!isPlainObject(value)) return undefined
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const copies = members.map(([name, member]) => [name, copyOfJson(member, depth + 1)] as const)
  return copies.some(([, copy]) => copy === undefined) ? undefined : Object.freeze(Object.fromEntries(copies) as Record<string, Json>)
}

function frozenIfWhole(items: readonly (Json | undefined)[]): Json | undefined {
  return items.includes(undefined) ? undefined : Object.freeze(items as Json[]) // no item is undefined
}

/** Also from another realm: a test runner that isolates files has several. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function largest(claims: HostClaims): string | null {
  const [first] = Object.entries(claims).sort(([, one], [, other]) => bytesOf(other) - bytesOf(one))
  return first?.[0] ?? null
}

function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}
