import { type AuthContext, passkeysOf } from '../context'
import { ConfigurationError, PasskeyRejectedError } from '../errors'
import {
  DuplicateRecordError,
  type PasskeyRecord,
  type PasskeyStore,
  type PasskeyUse,
  type UserRecord,
  type UserTokenRecord,
} from '../store/auth-store'
import type { AssertedCredential, WebAuthn } from '../webauthn/ceremonies'
import { readAssertion } from '../webauthn/read-credential'
import { type Ceremony, type ChallengeOwner, readPasskeyChallenge, spentChallenge } from './passkey-challenge'

/** What a person shows of a passkey. */
export interface ShownPasskey {
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.get()`. */
  readonly credential: unknown
  /** From the options. */
  readonly challenge: string
}

/** A signature that is right, and what it was right about: the transaction that relies on it looks whether that still holds. */
export interface ProvenPasskey {
  readonly passkey: PasskeyRecord
  /** As it was then. */
  readonly user: UserRecord
  readonly use: PasskeyUse
  readonly spent: Omit<UserTokenRecord, 'id'>
}

/**
 * Checks what an authenticator signed, before any transaction, because it takes time. An unknown passkey takes as long as a known one. Changes
 * nothing: `acceptPasskey`, or `PasskeyStore.recordLogin`, uses it up.
 * @param owner who began the ceremony; null: whose passkey it is
 * @throws PasskeyRejectedError, for whatever is wrong
 */
export async function provePasskey(
  ctx: AuthContext,
  ceremony: Ceremony,
  owner: ChallengeOwner | null,
  { credential, challenge: token }: ShownPasskey,
): Promise<ProvenPasskey> {
  const { webauthn, passkeys } = passkeyToolsOf(ctx)
  const [shown, open] = [readAssertion(credential), readPasskeyChallenge(ctx, ceremony, owner, token)]
  if (!shown || !open) throw new PasskeyRejectedError()
  const found = await passkeys.findWithUser(shown.id)
  const asserted = await webauthn.verifyAssertion(shown, open.challenge, found?.passkey ?? null)
  if (!asserted || !found?.user?.isActive || (owner && found.user.id !== owner.userId)) throw new PasskeyRejectedError()
  const { passkey, user } = found
  const isOwnHandle = shown.userHandle === passkey.userHandle || (owner !== null && shown.userHandle === null)
  if (!isOwnHandle) throw new PasskeyRejectedError()
  refuseCopy(ctx, passkey, asserted)
  const { id, userId, signCount: seenCount } = passkey
  return { passkey, user, use: { id, userId, seenCount, ...asserted, at: ctx.now() }, spent: spentChallenge(ctx, userId, open) }
}

/** Web Authentication Level 3, section 6.1.1: a counter that is not ahead says that there may be a copy of the authenticator. */
function refuseCopy(ctx: AuthContext, { id, userId, signCount: last }: PasskeyRecord, { signCount }: AssertedCredential): void {
  if (signCount > last || (signCount === 0 && last === 0)) return
  ctx.events.emit('passkey.cloned', { userId, passkeyId: id })
  throw new PasskeyRejectedError()
}

/**
 * Uses the challenge up and writes the counter. Inside the transaction that relies on it, which has locked the user's row.
 * @throws PasskeyRejectedError where it was used already, or the passkey was removed or used since
 */
export async function acceptPasskey(ctx: AuthContext, user: UserRecord, { use, spent, passkey }: ProvenPasskey): Promise<void> {
  // Looked up first: a second presentation costs a host's own transaction nothing.
  const isSpent = user.id !== passkey.userId || (await ctx.store.userTokens.find(spent.tokenHash)) !== null
  if (isSpent || !(await passkeyToolsOf(ctx).passkeys.recordUse(use))) throw new PasskeyRejectedError()
  await ctx.store.userTokens.insert(spent)
}

/** Of two transactions with one challenge, the later one loses at its unique hash. */
export async function refusingReplay<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new PasskeyRejectedError({ cause: error }) : error
  }
}

/** @throws ConfigurationError where passkeys are off */
export function passkeyToolsOf(ctx: AuthContext): { webauthn: WebAuthn; passkeys: PasskeyStore } {
  const passkeys = passkeysOf(ctx)
  if (!ctx.webauthn || !passkeys)
    throw new ConfigurationError('There are no passkeys here: set passkeysEnabled (AUTH_PASSKEYS_ENABLED) to true.')
  return { webauthn: ctx.webauthn, passkeys }
}
