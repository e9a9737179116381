import type { Request } from 'express'
import type { AuthContext } from '../../context'
import { describeError, type Logger } from '../../core/logger'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import type { Locale } from '../../http/locale'
import type { UserChanges, UserRecord, UserTokenRecord } from '../../store/auth-store'
import { neverEnds } from '../../store/user-records'
import { isPending, refusesEmailLink } from '../email-links/email-link'
import { type Clearing, type TakenOver, takeOver, tellHostOfTakeOver } from '../take-over'
import { signupMarkOf } from './signup-binding'
import { isSignupOwnership, sessionOfRequest, type VerifiedSignupOwnership } from './signup-ownership'

interface AddressProof {
  /** The row after the verification. */
  readonly user: UserRecord
  /** Null if the evidence identified the owner, or if the address was already verified. */
  readonly takenOver: TakenOver | null
}

interface ProofOptions {
  /** True if this verification activates the account for the first time. */
  readonly isActivation?: boolean
  /** The sign-up that the mailed link belongs to. */
  readonly signup?: string | null
  /** True if the link alone identifies the person who signed up. */
  readonly trustsLink?: boolean
  readonly clearing?: Clearing
  /** Additional changes of the user's row. */
  readonly changes?: UserChanges
}

/**
 * Returns true if this is the first verification of the address. Without the column `emailVerifiedAt`, only an activation counts as the
 * first verification.
 */
export function isFirstVerification({ store }: Pick<AuthContext, 'store'>, user: UserRecord, isActivation = false): boolean {
  return store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt === null : isActivation
}

/**
 * Marks an address as verified. Every kind of verification calls this function. If the evidence does not identify the owner, the first
 * verification takes the account over (`takeOver`). A later verification removes nothing. Call the function inside a transaction that has
 * locked the user's row.
 */
export async function verifyAddress(
  ctx: AuthContext,
  user: UserRecord,
  evidence: VerifiedSignupOwnership,
  { isActivation = false, signup = null, trustsLink = false, clearing = 'nothing', changes = {} }: ProofOptions = {},
): Promise<AddressProof> {
  const now = ctx.now()
  const isSafe = !isFirstVerification(ctx, user, isActivation) || trustsLink || (await isSignupOwnership(ctx, user, evidence, signup))
  const takenOver = isSafe ? null : await takeOver(ctx, user, clearing)
  const written: UserChanges = { ...takenOver?.changes, ...changes, emailVerifiedAt: now, updatedAt: now }
  await ctx.store.users.update(user.id, written)
  // Sets `fields` only if the store has fields.
  const proven = { ...user, ...written, ...(user.fields && { fields: { ...user.fields, ...written.fields } }) } as UserRecord
  if (takenOver) await tellHostOfTakeOver(ctx, proven)
  return { user: proven, takenOver }
}

/**
 * Returns true if a login by a provider or by email may activate this pending (never activated) account. Such a login must work, because an
 * attacker who signed up with the address must not lock the owner out. The account must have a valid activation link. If it has no such
 * link, the app may have deactivated it. Returns false if the host rejects mailed links to the account.
 */
export async function mayActivate(ctx: AuthContext, user: UserRecord): Promise<boolean> {
  const waits = isFirstVerification(ctx, user, true) && (await newestLink(ctx, user)) !== undefined && (await isPending(ctx, user))
  return waits && !(await refusesEmailLink(ctx, user))
}

/**
 * Locks an account in the transaction of a verification. Returns null if the account changed meanwhile: its address changed, or the account
 * was deactivated, activated or verified.
 */
export async function lockForProof(ctx: AuthContext, seen: UserRecord, email: string | null): Promise<UserRecord | null> {
  const user = await ctx.store.users.lock(seen.id)
  if (user?.email !== email || user.isActive !== seen.isActive) return null
  if (isFirstVerification(ctx, user, !user.isActive) !== isFirstVerification(ctx, seen, !seen.isActive)) return null
  return user.isActive || ((await newestLink(ctx, user)) && (await isPending(ctx, user))) ? user : null
}

/** Returns the account's newest activation link that is still valid. */
async function newestLink(ctx: AuthContext, { id }: Pick<UserRecord, 'id'>): Promise<UserTokenRecord | undefined> {
  return (await ctx.store.userTokens.listOpen(id, 'ACTIVATION', ctx.now())).at(-1)
}

/**
 * Uses up the activation links of an account, and returns the options of `verifyAddress` for the activation. Call the function inside the
 * transaction, before any other code revokes the links.
 */
export async function activating(ctx: AuthContext, user: UserRecord, clearing: Clearing): Promise<ProofOptions> {
  const now = ctx.now()
  const [signup, hasDuplicates] = [await signupOf(ctx, user), await hasDuplicateSignups(ctx, user)]
  await ctx.store.userTokens.consumeAllForUser(user.id, now, ['ACTIVATION', 'CONTESTED'])
  return { signup, clearing: hasDuplicates ? clearing : 'nothing', changes: { isActive: true, activatedAt: now } }
}

/** Returns the id of the sign-up that the newest activation link belongs to. The browser of that sign-up counts as the owner's browser. */
export async function signupOf(ctx: AuthContext, { id, isActive }: UserRecord): Promise<string | null> {
  const newest = isActive ? undefined : await newestLink(ctx, { id })
  return newest ? (signupMarkOf(newest)?.id ?? null) : null
}

/**
 * Records that a pending account got sign-ups with different passwords. In that case the activation link alone does not show who chose the
 * account's password. The row never expires, so no purge deletes the row. The activation marks the row as used. Call the function inside a
 * transaction that has locked the user's row.
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

/**
 * Runs a transaction that empties the name and the host's fields of an account. If the database rejects the empty values, the function runs
 * the work again: with a placeholder for the name, then also without emptying the fields. Otherwise a column that is not nullable would
 * lock the owner out.
 */
export function retryingWithoutFields<T>(ctx: AuthContext, work: (clearing: Clearing) => Promise<T>): Promise<T> {
  const keepingFields = async (error: Error) => {
    const result = await work('placeholder')
    warnOfKeptFields(ctx, error)
    return result
  }
  const withPlaceholder = () => orElse(() => work('placeholder and fields'), keepingFields)
  return orElse(() => work('name and fields'), withPlaceholder)
}

/** Runs `work`, and `otherwise` if the database rejects a value. */
async function orElse<T>(work: () => Promise<T>, otherwise: (error: Error) => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'DriverError') throw error
    return otherwise(error)
  }
}

const warned = new WeakSet<Logger>()

/** Logs the error once per logger, because every account has the same cause. */
function warnOfKeptFields({ logger }: AuthContext, error: Error): void {
  if (warned.has(logger)) return
  warned.add(logger)
  logger.error(
    { error: describeError(error) },
    'doorward: the name or your own fields of an earlier signup could not be removed, because a column does not allow null. The old values stay. Clear them in onTakeOver and onSignup, or allow null in the columns.',
  )
}

/**
 * Returns the lines for the page of a login link. The first line says to which account the link logs in. A second line says which account's
 * session the link replaces in this browser.
 */
export async function loginLinkSummary(ctx: AuthContext, req: Request, email: string, locale: Locale): Promise<string[]> {
  const session = await sessionOfRequest(ctx, req)
  const user = session && (await ctx.store.users.find(session.userId))
  const replaced = user && user.email !== email ? [ctx.texts.say(locale, 'link.replaces', { email: user.email })] : []
  return [ctx.texts.say(locale, 'link.signs_in_as', { email }), ...replaced]
}
