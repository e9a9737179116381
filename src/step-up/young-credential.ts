import type { AuthContext } from '../context'
import { MfaFactorTooNewError } from '../errors'
import { after } from '../session/instants'
import type { PasskeyRecord, UserRecord, UserStore } from '../store/auth-store'

const youngSeconds = 86_400

/** Returns when a credential can confirm changes: 24 hours after it was added. Null: it already can. */
export function usableAt({ now }: Pick<AuthContext, 'now'>, addedAt: Date): Date | null {
  const usable = after(addedAt, youngSeconds)
  return now() < usable ? usable : null
}

/**
 * The same for an identity. What an account was made with is old at once; an account that was made with a password was made without an
 * identity. Compared in whole seconds, because a column of the host's may keep no others.
 */
export function identityUsableAt(ctx: IdentityContext, user: Pick<UserRecord, 'createdAt' | 'passwordSetAt'>, linkedAt: Date): Date | null {
  const isBornWith = (at: Date) => Math.floor(at.getTime() / 1000) <= Math.floor(user.createdAt.getTime() / 1000)
  const saysWhen = ctx.store?.users.fields.has('passwordSetAt') === true
  const hadPassword = saysWhen && user.passwordSetAt !== null && isBornWith(user.passwordSetAt)
  return isBornWith(linkedAt) && !hadPassword ? null : usableAt(ctx, linkedAt)
}

export interface IdentityContext extends Pick<AuthContext, 'now'> {
  readonly store: { readonly users: Pick<UserStore, 'fields'> } | null
}

/** No account is made with a passkey. @throws MfaFactorTooNewError where it was added less than 24 hours ago */
export function refuseYoungPasskey(ctx: Pick<AuthContext, 'now'>, { createdAt }: Pick<PasskeyRecord, 'createdAt'>): void {
  const usable = usableAt(ctx, createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

/** True where the account's second factor is active, and was added less than 24 hours ago. No account is made with one. */
export function hasYoungFactor(ctx: Pick<AuthContext, 'now'>, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) !== null
}

/** True where the account's second factor is active, and was added at least 24 hours ago. */
export function hasMatureFactor(ctx: Pick<AuthContext, 'now'>, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) === null
}

/** @throws MfaFactorTooNewError where the account's second factor was added less than 24 hours ago */
export function refuseYoungFactor(ctx: Pick<AuthContext, 'now'>, user: Pick<UserRecord, 'totpEnabledAt'>): void {
  const usable = user.totpEnabledAt && usableAt(ctx, user.totpEnabledAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}
