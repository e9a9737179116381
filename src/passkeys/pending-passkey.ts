import { type AuthContext, passkeysOf } from '../context'
import { PasskeyRejectedError } from '../core/errors'
import type { NewPasskey, PasskeyRecord, UserRecord, UserTokenRecord } from '../store/auth-store'
import { usedChallenge } from './passkey-challenge'
import { isCopy, type PresentedPasskey, passkeyToolsOf, readPresented, refusePasskey } from './verify-passkey'
import { authenticatorName, CeremonyRefused } from './webauthn/ceremonies'
import { storedId } from './webauthn/read-credential'

/** A passkey of a sign-up. It waits in the rows of the activation links, and logs nobody in before the activation. */
export type PendingPasskey = Omit<NewPasskey, 'userId' | 'name' | 'createdAt' | 'lastUsedAt'>

/** The authenticator of the sign-up has signed a challenge of a login. */
export interface ProvenPasskey {
  /** With the counter of this use. */
  readonly pending: PendingPasskey
  readonly used: Omit<UserTokenRecord, 'id'>
}

/** Of a row that doorward wrote. */
export function readPendingPasskey(value: unknown): PendingPasskey | null {
  return typeof value === 'object' && value !== null && 'credentialId' in value ? (value as PendingPasskey) : null
}

/**
 * Call it before any transaction, because verifying takes time. Changes nothing: `useProvenPasskey` then uses the challenge.
 * @param pending null if the link has none
 * @throws PasskeyRejectedError for every fault
 */
export function verifyPendingPasskey(
  ctx: AuthContext,
  userId: string,
  pending: PendingPasskey | null,
  shown: PresentedPasskey,
): Promise<ProvenPasskey> {
  return prove(ctx, userId, pending, shown).catch((error: unknown) => refusePasskey(ctx, 'login', error, PasskeyRejectedError))
}

async function prove(ctx: AuthContext, userId: string, pending: PendingPasskey | null, shown: PresentedPasskey): Promise<ProvenPasskey> {
  const { presented, open } = readPresented(ctx, 'login', null, shown)
  const known = pending?.credentialId === storedId(presented.id) ? pending : null
  const asserted = await passkeyToolsOf(ctx).webauthn.verifyAssertion(presented, open.challenge, known)
  if (known?.userHandle !== presented.userHandle) throw new CeremonyRefused('the user handle is missing, or is not the one of this passkey')
  if (isCopy(known, asserted)) throw new CeremonyRefused('the counter of the authenticator did not increase')
  return { pending: { ...known, ...asserted }, used: usedChallenge(ctx, userId, open) }
}

/** Call it inside the transaction that has locked the user's row. @throws PasskeyRejectedError for a used challenge */
export async function useProvenPasskey(ctx: AuthContext, { used }: ProvenPasskey): Promise<void> {
  if (await ctx.store.userTokens.find(used.tokenHash)) throw new PasskeyRejectedError()
  await ctx.store.userTokens.insert(used)
}

/**
 * The account begins with this passkey, so it is not young: both have one `createdAt`. Call it inside the transaction of the activation.
 * Null if another account has the passkey by now, or if passkeys are off.
 */
export async function addPendingPasskey(ctx: AuthContext, user: UserRecord, pending: PendingPasskey): Promise<PasskeyRecord | null> {
  const passkeys = passkeysOf(ctx)
  if (!passkeys || (await passkeys.findWithUser(pending.credentialId))) return null
  const { id: userId, createdAt } = user
  return passkeys.insert({ ...pending, userId, name: authenticatorName(pending.aaguid), createdAt, lastUsedAt: null })
}
