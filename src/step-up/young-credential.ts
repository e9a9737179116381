import type { AuthContext } from '../context'
import { MfaFactorTooNewError } from '../errors'
import { after } from '../session/instants'
import type { PasskeyRecord, UserRecord, UserStore } from '../store/auth-store'

const youngSeconds = 86_400

/**
 * Returns the time when a credential can confirm changes: 24 hours after it was added. Returns null if the credential can already confirm
 * changes.
 */
export function usableAt({ now }: Pick<AuthContext, 'now'>, addedAt: Date): Date | null {
  const usable = after(addedAt, youngSeconds)
  return now() < usable ? usable : null
}

/**
 * Returns the time when an identity can confirm changes. If the account was created with the identity, the identity can confirm changes at
 * once. If the account was created with a password, the identity was added later, so the 24 hours apply. The function compares whole
 * seconds, because the columns of some hosts store only whole seconds.
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

/**
 * Rejects a passkey that was added less than 24 hours ago. New accounts have no exception, because no account is created with a passkey.
 * @throws MfaFactorTooNewError
 */
export function refuseYoungPasskey(ctx: Pick<AuthContext, 'now'>, { createdAt }: Pick<PasskeyRecord, 'createdAt'>): void {
  const usable = usableAt(ctx, createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

/** Returns true if the account's second factor is active and was added less than 24 hours ago. */
export function hasYoungFactor(ctx: Pick<AuthContext, 'now'>, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) !== null
}

/** Returns true if the account's second factor is active and was added at least 24 hours ago. */
export function hasMatureFactor(ctx: Pick<AuthContext, 'now'>, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) === null
}

/**
 * Rejects an account if its second factor was added less than 24 hours ago.
 * @throws MfaFactorTooNewError
 */
export function refuseYoungFactor(ctx: Pick<AuthContext, 'now'>, user: Pick<UserRecord, 'totpEnabledAt'>): void {
  const usable = user.totpEnabledAt && usableAt(ctx, user.totpEnabledAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}
