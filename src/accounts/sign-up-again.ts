import { type AuthContext, transaction } from '../context'
import type { Settings } from '../core/config/every-setting'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import type { LinkCode } from '../mail/mail-queue'
import { verifyPassword } from '../passwords/verify-password'
import type { NewUser, UserRecord } from '../store/auth-store'
import { neverEnds } from '../store/user-records'
import { isPending, issueLink, type LinkToken, refusesEmailLink } from './email-links/email-link'
import { mayMail } from './email-links/send-mail'
import { newSignupMark, type SignupMark, signupMarkToText } from './email-verification/signup-binding'
import { markDuplicateSignups, retryingWithoutFields } from './email-verification/verify-address'
import type { IssueCode } from './mailed-codes/issue-code'
import { type Clearing, emptyFields, placeholderName } from './take-over'

export type NewestSignup = Pick<NewUser, 'email' | 'name' | 'hashedPassword' | 'passwordSetAt' | 'fields'>

interface RepeatedSignup {
  readonly values: NewestSignup
  /** Undefined if passwords are off. */
  readonly password: string | undefined
  readonly userAgent: string | null | undefined
  /** If false, the address of a pending account counts as taken. */
  readonly mayRepeat: boolean
  readonly issueCode: IssueCode
  /** The id. Null: none. */
  readonly invitation: string | null
}

/** `again`: the same person; `link` is null if no mail may be sent. `unchanged`: another password, and the account keeps its values. */
type Repeat<T> =
  | { kind: 'replaced'; made: T }
  | { kind: 'again'; user: UserRecord; mark: SignupMark; link: LinkToken | null; code: LinkCode | null }
  | { kind: 'unchanged' }
  | { kind: 'taken' }

/** True if the response must not reveal whether the address has an account. */
export function hidesTakenAddress({ autoActivate, revealTakenEmail }: Settings): boolean {
  return !autoActivate && !revealTakenEmail
}

/** For every other account and for none, verifies the new hash, so that the time reveals nothing about the address. */
export async function isOfPending(
  ctx: AuthContext,
  pending: UserRecord | null,
  { password, values }: Pick<RepeatedSignup, 'password' | 'values'>,
): Promise<boolean> {
  if (password === undefined) return false
  const { matches } = await verifyPassword(ctx, (pending ?? values).hashedPassword, password)
  return pending !== null && matches
}

/** Reads of the account, if other sign-ups change the password meanwhile. */
const mostAttempts = 5

/**
 * With the password of the pending account it is the same person: nothing changes, and a further link is mailed. Any other sign-up may be
 * an attacker's, or its victim's: new values replace the old, and older links become invalid (contested). If no mail may be sent, the old
 * values stay, because nobody could activate the newer sign-up.
 * @param complete more work of a sign-up that replaces the earlier one, in the same transaction
 */
export async function signUpAgain<T>(
  ctx: AuthContext,
  owner: UserRecord,
  signup: RepeatedSignup,
  complete: (ctx: AuthContext, user: UserRecord) => Promise<T>,
): Promise<Repeat<T>> {
  const isHidden = signup.mayRepeat && hidesTakenAddress(ctx.settings)
  let seen = (await isPending(ctx, owner)) ? owner : null
  let isSame = await isOfPending(ctx, seen, signup)
  const sendsLink = isHidden && seen !== null && !(await refusesEmailLink(ctx, seen)) && (await mayMail(ctx, seen, 'ACTIVATION'))
  for (let attempt = 1; seen !== null; attempt++) {
    const known = { seen, isSame, isHidden, sendsLink, isLast: attempt === mostAttempts || signup.password === undefined }
    const repeat = await retryingWithoutFields(ctx, (clearing) => decide(ctx, signup, known, clearing, complete))
    if (repeat) return repeat
    const now: UserRecord | null = await ctx.store.users.find(owner.id)
    seen = now && (await isPending(ctx, now)) ? now : null
    isSame = await isOfPending(ctx, seen, signup)
  }
  return { kind: 'taken' }
}

interface Known {
  /** Before the transaction. */
  readonly seen: UserRecord
  /** The password matches the hash of `seen`. */
  readonly isSame: boolean
  readonly isHidden: boolean
  readonly sendsLink: boolean
  /** True: a password that has changed since `seen` counts as another one, and is not verified again. */
  readonly isLast: boolean
}

/** Null if another sign-up has changed the password, so that the caller must verify it again. */
function decide<T>(
  ctx: AuthContext,
  { values, userAgent, issueCode, invitation }: RepeatedSignup,
  { seen, isSame, isHidden, sendsLink, isLast }: Known,
  clearing: Clearing,
  complete: (ctx: AuthContext, user: UserRecord) => Promise<T>,
): Promise<Repeat<T> | null> {
  return transaction(ctx, async (ctx) => {
    const locked = await lockPending(ctx, seen)
    if (!locked) return { kind: 'taken' }
    const isChanged = locked.hashedPassword !== seen.hashedPassword
    if (isChanged && !isLast) return null
    await keepImported(ctx, locked)
    if (isSame && !isChanged) {
      if (!isHidden) return { kind: 'taken' }
      const mark = newSignupMark(ctx, locked, userAgent, { invitation })
      const link = sendsLink ? await issueLink(ctx, locked.id, 'ACTIVATION', signupMarkToText(mark)) : null
      return { kind: 'again', user: locked, mark, link, code: link && (await issueCode(ctx, link)) }
    }
    await markDuplicateSignups(ctx, locked)
    if (sendsLink) return { kind: 'replaced', made: await complete(ctx, await replaceSignup(ctx, locked, values, clearing)) }
    return { kind: isHidden ? 'unchanged' : 'taken' }
  })
}

async function lockPending(ctx: AuthContext, seen: UserRecord): Promise<UserRecord | null> {
  const locked = await ctx.store.users.lock(seen.id)
  return locked?.email === seen.email && (await isPending(ctx, locked)) ? locked : null
}

async function replaceSignup(ctx: AuthContext, user: UserRecord, signup: NewestSignup, clearing: Clearing): Promise<UserRecord> {
  const now = ctx.now()
  const older = clearing === 'placeholder' ? undefined : emptyFields(ctx).fields
  const fields = { ...older, ...signup.fields }
  const { hashedPassword, passwordSetAt } = signup
  const name = signup.name ?? (clearing === 'name and fields' ? null : placeholderName(ctx))
  await ctx.store.userTokens.consumeAllForUser(user.id, now, 'ACTIVATION')
  await ctx.store.users.update(user.id, {
    hashedPassword,
    name,
    passwordSetAt,
    updatedAt: now,
    ...(Object.keys(fields).length > 0 && { fields }),
  })
  return (await ctx.store.users.find(user.id)) ?? user
}

/**
 * An imported pending account has no activation link. The purge would delete it after the first link of a stranger's request. Inserts a
 * used link that never expires. Call it inside a transaction that has locked the user's row, before a further link.
 */
export async function keepImported({ store, now }: AuthContext, { id: userId }: UserRecord): Promise<void> {
  if (!store.users.deleteAbandoned || !store.users.fields.has('activatedAt')) return
  if ((await store.userTokens.listOpen(userId, 'ACTIVATION', new Date(0))).length > 0) return
  const at = now()
  const tokenHash = hashOpaqueToken(newOpaqueToken()) // nobody has this token
  await store.userTokens.insert({
    userId,
    tokenHash,
    purpose: 'ACTIVATION',
    payload: null,
    expiresAt: neverEnds(at),
    usedAt: at,
    createdAt: at,
  })
}
