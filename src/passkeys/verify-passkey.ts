import { type AuthContext, passkeysOf } from '../context'
import { ConfigurationError, type PasskeyInvalidError, PasskeyRejectedError, ServiceUnavailableError } from '../core/errors'
import { mayProve } from '../sessions/account-state'
import {
  DuplicateRecordError,
  type PasskeyRecord,
  type PasskeyStore,
  type PasskeyUse,
  type UserRecord,
  type UserTokenRecord,
} from '../store/auth-store'
import { type Ceremony, type ChallengeOwner, type OpenChallenge, readPasskeyChallenge, usedChallenge } from './passkey-challenge'
import { type AssertedCredential, CeremonyRefused, type WebAuthn } from './webauthn/ceremonies'
import { type PresentedAssertion, readAssertion, storedId } from './webauthn/read-credential'

export interface PresentedPasskey {
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`. */
  readonly credential: unknown
  /** Came with the options. */
  readonly challenge: string
}

/** The transaction that uses the signature checks that the state it was verified against is unchanged. */
export interface VerifiedPasskey {
  readonly passkey: PasskeyRecord
  /** At the time of the verification. */
  readonly user: UserRecord
  readonly use: PasskeyUse
  readonly used: Omit<UserTokenRecord, 'id'>
}

/**
 * Call it before any transaction, because verifying takes time. An unknown passkey takes as long as a known one. Changes nothing:
 * `acceptPasskey` or `PasskeyStore.recordLogin` then records the use.
 * @param owner began the ceremony; null: the passkey identifies its account
 * @throws PasskeyRejectedError for every fault
 */
export async function verifyPasskey(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  presented: PresentedPasskey,
): Promise<VerifiedPasskey> {
  return prove(ctx, ceremony, owner, presented).catch((error: unknown) => refusePasskey(ctx, ceremony, error, PasskeyRejectedError))
}

async function prove(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  shown: PresentedPasskey,
): Promise<VerifiedPasskey> {
  const { webauthn, passkeys } = passkeyToolsOf(ctx)
  const { presented, open } = readPresented(ctx, ceremony, owner, shown)
  const found = await passkeys.findWithUser(storedId(presented.id))
  const asserted = await webauthn.verifyAssertion(presented, open.challenge, found?.passkey ?? null)
  if (!found?.user || !mayProve(found.user)) throw new CeremonyRefused('the account of the passkey is not active')
  if (owner && found.user.id !== owner.userId) throw new CeremonyRefused('the passkey is of another account')
  const { passkey, user } = found
  const isOwnHandle = presented.userHandle === passkey.userHandle || (owner !== null && presented.userHandle === null)
  if (!isOwnHandle) throw new CeremonyRefused('the user handle is missing, or is not the one of this passkey')
  refuseCopy(ctx, passkey, asserted)
  const { id, userId, signCount: seenCount } = passkey
  return { passkey, user, use: { id, userId, seenCount, ...asserted, at: ctx.now() }, used: usedChallenge(ctx, userId, open) }
}

/** @throws CeremonyRefused */
export function readPresented(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  { credential, challenge: token }: PresentedPasskey,
): { presented: PresentedAssertion; open: OpenChallenge } {
  const [presented, open] = [readAssertion(credential), readPasskeyChallenge(ctx, ceremony, owner, token)]
  if (!presented) throw new CeremonyRefused('a field of the response is missing, malformed or too long')
  if (!open) throw new CeremonyRefused('the challenge has expired, or is of another ceremony, account or session')
  return { presented, open }
}

/** Without a higher counter, an attacker may have copied the authenticator (Web Authentication Level 3, section 6.1.1). */
export function isCopy({ signCount: last }: Pick<PasskeyRecord, 'signCount'>, { signCount }: AssertedCredential): boolean {
  return signCount <= last && (signCount !== 0 || last !== 0)
}

function refuseCopy(ctx: AuthContext, passkey: PasskeyRecord, asserted: AssertedCredential): void {
  if (!isCopy(passkey, asserted)) return
  const { id, userId } = passkey
  ctx.events.emit('passkey.cloned', { userId, passkeyId: id })
  throw new CeremonyRefused('the counter of the authenticator did not increase, so somebody may have copied it')
}

/** In the transaction of the action, with the user's row locked. @throws PasskeyRejectedError for a used challenge or changed passkey */
export async function acceptPasskey(ctx: AuthContext, user: UserRecord, { use, used, passkey }: VerifiedPasskey): Promise<void> {
  // Checked before the insert, because a failed insert would break a transaction of the host.
  const isUsed = user.id !== passkey.userId || (await ctx.store.userTokens.find(used.tokenHash)) !== null
  if (isUsed || !(await passkeyToolsOf(ctx).passkeys.recordUse(use))) throw new PasskeyRejectedError()
  await ctx.store.userTokens.insert(used)
}

/** A unique violation means that another transaction used the challenge first. */
export async function refusingReplay<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new PasskeyRejectedError({ cause: error }) : error
  }
}

/** Two transactions inserted one credential or one challenge at once. The second run finds out which rule was violated. */
export async function againAfterRace<T>(work: () => Promise<T>): Promise<T> {
  for (let round = 1; round <= 2; round += 1) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof DuplicateRecordError)) throw error
    }
  }
  throw new ServiceUnavailableError()
}

/** @throws ConfigurationError if passkeys are off */
export function passkeyToolsOf(ctx: AuthContext): { webauthn: WebAuthn; passkeys: PasskeyStore } {
  const passkeys = passkeysOf(ctx)
  if (!ctx.webauthn || !passkeys) throw new ConfigurationError('Passkeys are off: set passkeysEnabled (AUTH_PASSKEYS_ENABLED) to true.')
  return { webauthn: ctx.webauthn, passkeys }
}

/** Only the log and `doctor` get the reason. @param thrown an error of a ceremony; every other error is thrown as it is */
export function refusePasskey(
  ctx: Pick<AuthContext, 'logger' | 'notices'>,
  ceremony: Ceremony,
  thrown: unknown,
  Refusal: typeof PasskeyInvalidError | typeof PasskeyRejectedError,
): never {
  if (!(thrown instanceof CeremonyRefused)) throw thrown
  const reason = thrown.message
  ctx.logger.warn({ ceremony, reason }, 'doorward: a passkey was refused')
  const message = `a passkey was refused (${ceremony}): ${reason}.`
  ctx.notices.keep({ level: 'warn', entry: 'passkey-refused', message, about: `${ceremony} ${reason}` })
  throw new Refusal()
}
