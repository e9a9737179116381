import type { Request } from 'express'
import type { AuthContext } from '../../context'
import { describeError, type Logger } from '../../core/logger'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import type { Locale } from '../../http/locale'
import { invitationOfPending } from '../../invitations/invitation'
import type { PendingPasskey } from '../../passkeys/pending-passkey'
import { mayProve } from '../../sessions/account-state'
import type { UserChanges, UserRecord, UserTokenRecord } from '../../store/auth-store'
import { neverEnds } from '../../store/user-records'
import { isPending, refusesEmailLink } from '../email-links/email-link'
import { completeFirstActivation, firstActivation } from '../first-activation'
import { type Clearing, emitTakeOver, type TakenOver, takeOver, tellHostOfTakeOver } from '../take-over'
import { signupMarkOf } from './signup-binding'
import { isSignupOwnership, sessionOfRequest, type VerifiedSignupOwnership } from './signup-ownership'
import { endSignupPasskey, type SignupPasskeyEnd } from './signup-passkey'

interface AddressProof {
  readonly user: UserRecord
  /** Null if the evidence identified the owner, or if the address was already verified. */
  readonly takenOver: TakenOver | null
  /** Of the sign-up, for `announceSignupPasskey`. */
  readonly passkey: SignupPasskeyEnd
}

export interface ProofOptions {
  /** For the first time. */
  readonly isActivation?: boolean
  /** The sign-up that the mailed link belongs to. */
  readonly signup?: string | null
  /** True if the link alone identifies the person who signed up. */
  readonly trustsLink?: boolean
  /** Of the sign-up. Only with evidence of the owner it goes live, even if the address was verified before. */
  readonly passkey?: PendingPasskey | null
  /** Of the sign-up or of the login. Used only by an activation. */
  readonly invitation?: string | null
  /** The host itself signed the person up. */
  readonly isApproved?: boolean
  readonly clearing?: Clearing
  readonly changes?: UserChanges
}

/** Without the column `emailVerifiedAt`, only an activation counts as the first verification. */
export function isFirstVerification({ store }: Pick<AuthContext, 'store'>, user: UserRecord, isActivation = false): boolean {
  return store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt === null : isActivation
}

/** Without evidence of the owner, a first verification takes over (`takeOver`). Call it in a transaction with the user's row locked. */
export async function verifyAddress(
  ctx: AuthContext,
  user: UserRecord,
  evidence: VerifiedSignupOwnership,
  {
    isActivation = false,
    signup = null,
    trustsLink = false,
    passkey = null,
    invitation = null,
    isApproved = false,
    clearing = 'nothing',
    changes = {},
  }: ProofOptions = {},
): Promise<AddressProof> {
  const now = ctx.now()
  const isAsked = isFirstVerification(ctx, user, isActivation) || passkey !== null
  const isSafe = !isAsked || trustsLink || (await isSignupOwnership(ctx, user, evidence, signup))
  const takenOver = isSafe ? null : await takeOver(ctx, user, clearing, { hasPendingPasskey: passkey !== null })
  const activation = isActivation ? firstActivation(ctx, { isApproved, invitation }) : {}
  const written: UserChanges = { ...takenOver?.changes, ...changes, ...activation, emailVerifiedAt: now, updatedAt: now }
  await ctx.store.users.update(user.id, written)
  const proven = { ...user, ...written, ...(user.fields && { fields: { ...user.fields, ...written.fields } }) } as UserRecord
  if (takenOver) await tellHostOfTakeOver(ctx, proven)
  if (isActivation) await completeFirstActivation(ctx, proven, invitation)
  const added = isSafe && passkey ? await endSignupPasskey(ctx, proven, passkey) : null
  if (takenOver) emitTakeOver(ctx, proven, takenOver)
  return { user: proven, takenOver, passkey: added }
}

/**
 * A login by a provider or by email may activate a pending account: an attacker's sign-up must not lock the owner out. Without a valid
 * activation link, the app may have deactivated the account. False if the host rejects mailed links to it.
 */
export async function mayActivate(ctx: AuthContext, user: UserRecord): Promise<boolean> {
  const waits = isFirstVerification(ctx, user, true) && (await newestLink(ctx, user)) !== undefined && (await isPending(ctx, user))
  return waits && !(await refusesEmailLink(ctx, user))
}

/** Null if the account's address changed, or the account was deactivated, activated or verified meanwhile. */
export async function lockForProof(ctx: AuthContext, seen: UserRecord, email: string | null): Promise<UserRecord | null> {
  const user = await ctx.store.users.lock(seen.id)
  if (user?.email !== email || user.isActive !== seen.isActive) return null
  if (isFirstVerification(ctx, user, !mayProve(user)) !== isFirstVerification(ctx, seen, !mayProve(seen))) return null
  return mayProve(user) || ((await newestLink(ctx, user)) && (await isPending(ctx, user))) ? user : null
}

async function newestLink(ctx: AuthContext, { id }: Pick<UserRecord, 'id'>): Promise<UserTokenRecord | undefined> {
  return (await ctx.store.userTokens.listOpen(id, 'ACTIVATION', ctx.now())).at(-1)
}

/** Uses up the activation links. Call it inside the transaction, before any other code revokes them. */
export async function activating(
  ctx: AuthContext,
  user: UserRecord,
  clearing: Clearing,
): Promise<ProofOptions & { readonly mailedAt: Date | null }> {
  const now = ctx.now()
  const newest = user.isActive ? undefined : await newestLink(ctx, user)
  const [signup, hasDuplicates] = [newest ? signupMarkOf(newest) : null, await hasDuplicateSignups(ctx, user)]
  await ctx.store.userTokens.consumeAllForUser(user.id, now, ['ACTIVATION', 'CONTESTED'])
  return {
    mailedAt: newest?.createdAt ?? null,
    signup: signup?.id ?? null,
    passkey: signup?.passkey ?? null,
    invitation: signup === null ? null : await invitationOfPending(ctx, signup.invitation, user.email),
    clearing: hasDuplicates ? clearing : 'nothing',
    isApproved: signup?.isApproved === true,
  }
}

/** The browser of that sign-up counts as the owner's. */
export async function signupOf(ctx: AuthContext, user: UserRecord): Promise<string | null> {
  const newest = user.isActive ? undefined : await newestLink(ctx, user)
  return (newest && signupMarkOf(newest)?.id) ?? null
}

/**
 * After sign-ups with different passwords, the activation link alone does not show who chose the password. The row never expires, so no
 * purge deletes it. Call it inside a transaction that has locked the user's row.
 */
export async function markDuplicateSignups(ctx: AuthContext, user: Pick<UserRecord, 'id'>): Promise<void> {
  if (await hasDuplicateSignups(ctx, user)) return
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: user.id,
    tokenHash: hashOpaqueToken(newOpaqueToken()), // nobody has this token
    purpose: 'CONTESTED',
    payload: null,
    expiresAt: neverEnds(now),
    usedAt: null,
    createdAt: now,
  })
}

export async function hasDuplicateSignups(ctx: AuthContext, { id }: Pick<UserRecord, 'id'>): Promise<boolean> {
  return (await ctx.store.userTokens.listOpen(id, 'CONTESTED', ctx.now())).length > 0
}

/** A column that is not nullable must not lock the owner out: tries a placeholder for the name, then also keeps the fields. */
export function retryingWithoutFields<T>(ctx: AuthContext, work: (clearing: Clearing) => Promise<T>): Promise<T> {
  const keepingFields = async (error: Error) => {
    const result = await work('placeholder')
    warnOfKeptFields(ctx, error)
    return result
  }
  const withPlaceholder = () => orElse(() => work('placeholder and fields'), keepingFields)
  return orElse(() => work('name and fields'), withPlaceholder)
}

/** `otherwise` runs if the database rejects a value. */
async function orElse<T>(work: () => Promise<T>, otherwise: (error: Error) => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'DriverError') throw error
    return otherwise(error)
  }
}

const warned = new WeakSet<Logger>()

/** Once per logger, because every account has the same cause. */
function warnOfKeptFields({ logger }: AuthContext, error: Error): void {
  if (warned.has(logger)) return
  warned.add(logger)
  logger.error(
    { error: describeError(error) },
    'doorward: the name or your own fields of an earlier signup could not be removed, because a column does not allow null. The old values stay. Clear them in onTakeOver and onSignup, or allow null in the columns.',
  )
}

/** Says to which account the link logs in, and which account's session it replaces in this browser. */
export async function loginLinkSummary(ctx: AuthContext, req: Request, email: string, locale: Locale): Promise<string[]> {
  const session = await sessionOfRequest(ctx, req)
  const user = session && (await ctx.store.users.find(session.userId))
  const replaced = user && user.email !== email ? [ctx.texts.say(locale, 'link.replaces', { email: user.email })] : []
  return [ctx.texts.say(locale, 'link.signs_in_as', { email }), ...replaced]
}
