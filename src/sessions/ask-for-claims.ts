import type { AuthMethod } from '../core/amr'
import { ServiceUnavailableError } from '../core/errors'
import { describeError, type Logger, withOwnMessage } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { withTimeout } from '../core/with-timeout'
import type { AuthStore, SessionRecord } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type PublicUser, toPublicUser } from '../store/public-user'
import { ClaimRefusedError, type ClaimsOf, type HostClaims, noClaims, readHostClaims } from './host-claims'

/** Returns further claims for an access token. */
export type AccessTokenClaimsHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<PublicUser, Host>,
  about: {
    /** How the session authenticated. */
    readonly amr: readonly AuthMethod[]
  },
) => ClaimsOf<Host> | undefined | Promise<ClaimsOf<Host> | undefined>

/** The context with the host's hook for claims. */
export interface ClaimsSource {
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
