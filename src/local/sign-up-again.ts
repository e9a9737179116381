import { type AuthContext, unitOfWork } from '../context'
import { markContested } from '../first-proof/contested'
import { retryingWithoutFields } from '../first-proof/retrying-without-fields'
import { type Clearing, emptyFields } from '../first-proof/take-over'
import { isPending } from '../mailbox/is-pending'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { mayMail } from '../mailbox/send-mail'
import type { NewUser, UserRecord } from '../store/auth-store'

/** The data of the newest sign-up with an address. */
export type NewestSignup = Pick<NewUser, 'email' | 'name' | 'hashedPassword' | 'passwordSetAt' | 'fields'>

/**
 * The result of a second sign-up. `unchanged`: the account is pending and keeps its earlier values. `taken`: the address counts as taken.
 */
export type Repeat<T> = { kind: 'replaced'; made: T } | { kind: 'unchanged' | 'taken' }

/**
 * Signs up again with the address of a pending account (an account that nobody has activated). The new password, name and fields replace
 * the old values. The older activation links become invalid. An attacker may have made one of the sign-ups, so the account is then marked
 * as contested. If the library may send no mail, the password, name and fields stay, because nobody could activate the newer sign-up.
 * @param signup null if the sign-up must not replace anything; the address then counts as taken
 * @param complete more work of the sign-up, in the same transaction
 */
export async function signUpAgain<T>(
  ctx: AuthContext,
  seen: UserRecord,
  signup: NewestSignup | null,
  complete: (ctx: AuthContext, user: UserRecord) => Promise<T>,
): Promise<Repeat<T>> {
  if (!(await isPending(ctx, seen))) return { kind: 'taken' }
  const isHidden = signup !== null && !ctx.settings.autoActivate && !ctx.settings.revealTakenEmail
  const mayReplace = isHidden && !(await refusesEmailLink(ctx, seen)) && (await mayMail(ctx, seen, 'ACTIVATION'))
  if (!mayReplace) return { kind: (await contest(ctx, seen)) && isHidden ? 'unchanged' : 'taken' }
  return retryingWithoutFields(ctx, (clearing) =>
    unitOfWork(ctx, async (ctx) => {
      const locked = await lockPending(ctx, seen)
      if (!locked) return { kind: 'taken' }
      const replaced = await replaceSignup(ctx, locked, signup, clearing)
      return { kind: 'replaced', made: await complete(ctx, replaced) }
    }),
  )
}

/** Marks the account as contested, because two sign-ups used its address. Returns false if the account is no longer pending. */
function contest(ctx: AuthContext, seen: UserRecord): Promise<boolean> {
  return unitOfWork(ctx, async (ctx) => {
    const locked = await lockPending(ctx, seen)
    if (locked) await markContested(ctx, locked)
    return locked !== null
  })
}

async function lockPending(ctx: AuthContext, seen: UserRecord): Promise<UserRecord | null> {
  const locked = await ctx.store.users.lock(seen.id)
  return locked?.email === seen.email && (await isPending(ctx, locked)) ? locked : null
}

async function replaceSignup(ctx: AuthContext, user: UserRecord, signup: NewestSignup, clearing: Clearing): Promise<UserRecord> {
  const now = ctx.now()
  const older = clearing === 'name and fields' ? emptyFields(ctx).fields : undefined
  const fields = { ...older, ...signup.fields }
  const { hashedPassword, passwordSetAt, name } = signup
  await ctx.store.userTokens.consumeAllForUser(user.id, now, 'ACTIVATION')
  await markContested(ctx, user)
  await ctx.store.users.update(user.id, {
    hashedPassword,
    name,
    passwordSetAt,
    updatedAt: now,
    ...(Object.keys(fields).length > 0 && { fields }),
  })
  return (await ctx.store.users.find(user.id)) ?? user
}
