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

/** The context with the host's hook for claims. */
interface ClaimsSource {
  /** Null if the host adds no claims. */
  readonly accessTokenClaims: AccessTokenClaimsHook | null
  readonly logger: Logger
}

/**
 * The error if the host's claims are not available. doorward logs the reason here. The response says only that the client may try again.
 */
class ClaimsUnavailableError extends ServiceUnavailableError {
  override readonly isLogged = true
}

const deadlineMs = 5_000

/**
 * Calls the host's hook for the claims of an access token. Never call this function inside an open transaction. The hook can query the
 * host's database. If the pool has only one connection, the transaction holds it, and the hook would never get a connection.
 * @throws ServiceUnavailableError if the host's function fails, takes longer than 5 seconds, or returns invalid claims
 */
export async function askForClaims(
  { accessTokenClaims: hook, logger }: ClaimsSource,
  user: PublicUser,
  amr: readonly AuthMethod[],
): Promise<HostClaims> {
  if (!hook) return noClaims
  try {
    // Uses an async arrow function, so that a synchronous throw becomes a rejection.
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

/** A session that continues with a new access token. */
interface GoingOn {
  readonly userId: string
  /** Null: the store keeps no sessions. */
  readonly session: Pick<SessionRecord, 'kind'> | null
  readonly amr: readonly AuthMethod[]
}

/**
 * Asks the host for the claims of a session that continues. Call it before the transaction. The function reads the user's row only if the
 * host has a hook.
 * @throws ServiceUnavailableError
 */
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

/** The error if a host's function returned invalid claims. The message names a claim, never a value. */
class ClaimRefusedError extends Error {
  override readonly name = 'ClaimRefusedError'
  /** Null if the error is not about one claim. */
  readonly claim: string | null

  constructor(claim: string | null, message: string) {
    super(message)
    this.claim = claim
  }
}

/**
 * Copies the claims that a host's function returned; `undefined` means no claims. Leaves out members that are `undefined`, as JSON does.
 * @throws ClaimRefusedError for a value that is not a plain JSON object, for a reserved name, or for more than 1 KiB
 */
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

/** Returns the host's claims of a token. Leaves out reserved names. Call this function only after the signature was verified. */
export function hostClaimsOf(payload: object): HostClaims {
  const own = Object.entries(payload).filter(([name]) => !reserved.has(name))
  return own.length === 0 ? noClaims : Object.fromEntries(own.map(([name, value]) => [name, copyOfJson(value) ?? null]))
}

// The most nested levels that `copyOfJson` reads. Claims of 1 KiB cannot have that many levels. A circular structure has more, so it is
// rejected.
const maxDepth = 512

/** Returns a frozen copy. Undefined: JSON cannot represent the value, or would change it (a date, NaN, an object of a class). */
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

/** Returns true for a plain object, also from another realm. A test runner that isolates files has several realms. */
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
