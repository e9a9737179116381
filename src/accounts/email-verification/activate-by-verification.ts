import type { AuthContext } from '../../context'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'
import { isPending } from '../email-links/is-pending'
import { refusesEmailLink } from '../email-links/refuses-email-link'
import type { Clearing } from '../take-over'
import { hasDuplicateSignups } from './duplicate-signup'
import { signupMarkOf } from './signup-binding'
import { isFirstVerification, type ProofOptions } from './verify-address'

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
