import type { AuthMethod } from '../amr'
import { ServiceUnavailableError } from '../errors'
import { inTime } from '../in-time'
import { describeError, type Logger, withOwnMessage } from '../logger'
import type { HostTypes, WithFields } from '../store/host-types'
import type { PublicUser } from '../store/public-user'
import { seeTroubleshooting } from '../troubleshooting'
import { ClaimRefusedError, type ClaimsOf, type HostClaims, noClaims, readHostClaims } from './host-claims'

/** Says what an access token carries beside our own claims. */
export type AccessTokenClaimsHook<Host extends HostTypes = HostTypes> = (
  user: WithFields<PublicUser, Host>,
  about: {
    /** How the session began. */
    readonly amr: readonly AuthMethod[]
  },
) => ClaimsOf<Host> | undefined | Promise<ClaimsOf<Host> | undefined>

/** Who can be asked for the host's claims. */
export interface ClaimsSource {
  /** Null: the host adds none. */
  readonly accessTokenClaims: AccessTokenClaimsHook | null
  readonly logger: Logger
}

/** The log has the reason; the answer says no more than that it is worth trying again. */
class ClaimsUnavailableError extends ServiceUnavailableError {
  override readonly isLogged = true
}

const deadlineMs = 5_000

/**
 * Asks the host what a user's access token is to say. Never call it inside a transaction of ours, because the host may query its database,
 * and its pool may have one connection.
 * @throws ServiceUnavailableError where the host's function fails, takes longer than 5 seconds, or returns what is no set of claims
 */
export async function askForClaims(
  { accessTokenClaims: hook, logger }: ClaimsSource,
  user: PublicUser,
  amr: readonly AuthMethod[],
): Promise<HostClaims> {
  if (!hook) return noClaims
  try {
    // An async arrow: a function that throws at once is like one that rejects.
    const answer = (async (): Promise<unknown> => hook(user, { amr: Object.freeze([...amr]) }))()
    return readHostClaims(await inTime(answer, deadlineMs, late))
  } catch (error) {
    logger.error(
      reasonOf(error),
      `doorward: accessTokenClaims failed, so nobody gets an access token. ${seeTroubleshooting('claims-of-your-own-fail')}`,
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
