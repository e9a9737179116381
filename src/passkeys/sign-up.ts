import { createHash } from 'node:crypto'
import type { AuthContext } from '../context'
import { PasskeyInvalidError } from '../core/errors'
import { newOpaqueToken } from '../core/opaque-token'
import { requireEmail } from '../http/email-address'
import { tryToCount } from '../rate-limits/rate-limiter'
import { DuplicateRecordError } from '../store/auth-store'
import {
  issuePasskeyChallenge,
  type NewcomerOfChallenge,
  type OpenChallenge,
  type PasskeyOptions,
  readPasskeyChallenge,
  signupSeconds,
  usedChallenge,
} from './passkey-challenge'
import type { PendingPasskey } from './pending-passkey'
import { type PresentedPasskey, passkeyToolsOf, refusePasskey } from './verify-passkey'
import { CeremonyRefused, type PasskeyCreationOptions } from './webauthn/ceremonies'

/** Equal for every address: reads and stores nothing. @throws ValidationError for an invalid address */
export function passkeySignupOptions(
  ctx: AuthContext,
  { email: typed, name, invitation = null }: { email: string; name?: string | null | undefined; invitation?: string | null },
): PasskeyOptions<PasskeyCreationOptions> {
  const email = requireEmail(typed)
  const handle = newOpaqueToken()
  const { challenge, token, seconds } = issuePasskeyChallenge(ctx, 'signup', ownerOf(email), {
    handle,
    ...(invitation !== null && { invitation }),
  })
  const user = { id: handle, name: email, displayName: name || email }
  return { options: passkeyToolsOf(ctx).webauthn.creationOptions({ challenge, seconds, user, exclude: [] }), challenge: token }
}

/** The id of the invitation for which the options were made. Null: none, or a wrong challenge, which the sign-up refuses later. */
export function invitationOfPasskeySignup(ctx: AuthContext, email: string, { challenge }: PresentedPasskey): string | null {
  const invitation = readPasskeyChallenge(ctx, 'signup', ownerOf(email), challenge)?.carries['invitation']
  return typeof invitation === 'string' ? invitation : null
}

/** A new passkey that the request has shown to be made for this sign-up. */
export interface SignupPasskey {
  readonly pending: PendingPasskey
  readonly open: OpenChallenge
}

/** Call it before the address is looked up, so that no error depends on the address. @throws PasskeyInvalidError for every fault */
export function verifySignupPasskey(ctx: AuthContext, email: string, shown: PresentedPasskey): Promise<SignupPasskey> {
  return verify(ctx, email, shown).catch((error: unknown) => refusePasskey(ctx, 'signup', error, PasskeyInvalidError))
}

async function verify(ctx: AuthContext, email: string, { credential, challenge: token }: PresentedPasskey): Promise<SignupPasskey> {
  const { webauthn, passkeys } = passkeyToolsOf(ctx)
  const open = readPasskeyChallenge(ctx, 'signup', ownerOf(email), token)
  if (!open) throw new CeremonyRefused('the challenge has expired, or is of another ceremony or address')
  const { transports, ...found } = await webauthn.verifyRegistration(credential, open.challenge)
  if (await passkeys.findWithUser(found.credentialId)) throw new CeremonyRefused('an account has this passkey already')
  return { pending: { ...found, transports: transports.join(' '), userHandle: String(open.carries['handle']) }, open }
}

/**
 * The unique row decides which of several requests is the first, for a taken address too.
 * @param userId the new account, or the account of the taken address
 * @throws PasskeyInvalidError if the challenge was used before
 */
export async function useSignupChallenge(ctx: AuthContext, userId: string, { open }: SignupPasskey): Promise<void> {
  try {
    await ctx.store.userTokens.insert(usedChallenge(ctx, userId, open))
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new PasskeyInvalidError({ cause: error }) : error
  }
}

/**
 * A sign-up that the database refuses leaves no account for the row of its challenge, so a counter keeps the challenge used: otherwise only
 * a free address would accept the same body twice. `work` looks the address up.
 * @throws PasskeyInvalidError if a lost sign-up has used the challenge, or if another request presents it at this moment
 */
export async function oncePerChallenge<T>(
  ctx: AuthContext,
  { open }: SignupPasskey,
  work: () => Promise<T>,
  isLost: (made: T) => boolean,
): Promise<T> {
  const rateLimit = { attempts: 1, windowSeconds: signupSeconds }
  const counted = await tryToCount(ctx, [{ name: 'signup:challenge', subject: open.challenge, rateLimit }])
  if (!counted) throw new PasskeyInvalidError()
  let staysUsed = false
  try {
    const made = await work()
    staysUsed = isLost(made)
    return made
  } finally {
    if (!staysUsed) await counted.release()
  }
}

/** The hash keeps the address out of the token. */
function ownerOf(email: string): NewcomerOfChallenge {
  return { userId: null, boundTo: createHash('sha256').update(email).digest('base64url') }
}
