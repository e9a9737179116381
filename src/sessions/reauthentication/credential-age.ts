import type { AuthContext } from '../../context'
import type { Settings } from '../../core/config/every-setting'
import { MfaFactorTooNewError } from '../../core/errors'
import { hasPassword } from '../../passwords/unusable-password'
import type { PasskeyRecord, UserRecord, UserStore } from '../../store/auth-store'
import { after } from '../instants'

/** A credential is young for `youngCredentialSeconds` after it was added to an existing account. */
export interface YoungContext extends Pick<AuthContext, 'now'> {
  readonly settings: Pick<Settings, 'youngCredentialSeconds'>
}

/**
 * Returns the time when a young credential can confirm changes. Returns null if the credential can already confirm changes. With
 * `youngCredentialSeconds: 0`, every credential can, even if the host's column rounded the time of the addition up.
 */
export function usableAt({ now, settings: { youngCredentialSeconds } }: YoungContext, addedAt: Date): Date | null {
  const usable = after(addedAt, youngCredentialSeconds)
  return youngCredentialSeconds > 0 && now() < usable ? usable : null
}

/**
 * Returns the time when an identity can confirm changes. If the account was created with the identity, the identity can confirm changes at
 * once. If the account was created with a password, the identity was added later. The function compares whole seconds, because the
 * columns of some hosts store only whole seconds.
 */
export function identityUsableAt(ctx: IdentityContext, user: Birth, linkedAt: Date): Date | null {
  return isBornWith(user, linkedAt) && !hadPassword(ctx, user) ? null : usableAt(ctx, linkedAt)
}

/**
 * Returns true if a social login created the account with this identity. If the table has no column `password_set_at`, an account that has
 * a password may have begun with it, so the function returns false.
 */
export function isCreatedWith(
  ctx: Pick<IdentityContext, 'store'>,
  user: Birth & Pick<UserRecord, 'hashedPassword'>,
  linkedAt: Date,
): boolean {
  return isBornWith(user, linkedAt) && !hadPassword(ctx, user) && (saysWhen(ctx) || !hasPassword(user))
}

type Birth = Pick<UserRecord, 'createdAt' | 'passwordSetAt'>

function isBornWith({ createdAt }: Birth, at: Date): boolean {
  return Math.floor(at.getTime() / 1000) <= Math.floor(createdAt.getTime() / 1000)
}

function hadPassword(ctx: Pick<IdentityContext, 'store'>, user: Birth): boolean {
  return saysWhen(ctx) && user.passwordSetAt !== null && isBornWith(user, user.passwordSetAt)
}

function saysWhen({ store }: Pick<IdentityContext, 'store'>): boolean {
  return store?.users.fields.has('passwordSetAt') === true
}

export interface IdentityContext extends YoungContext {
  readonly store: { readonly users: Pick<UserStore, 'fields'> } | null
}

/**
 * Rejects a young passkey. New accounts have no exception, because no account is created with a passkey.
 * @throws MfaFactorTooNewError
 */
export function refuseYoungPasskey(ctx: YoungContext, { createdAt }: Pick<PasskeyRecord, 'createdAt'>): void {
  const usable = usableAt(ctx, createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}

/** Returns true if the account's second factor is active and young. */
export function hasYoungFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) !== null
}

/** Returns true if the account's second factor is active and no longer young. */
export function hasMatureFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): boolean {
  return user.totpEnabledAt !== null && usableAt(ctx, user.totpEnabledAt) === null
}

/**
 * Rejects an account if its second factor is young.
 * @throws MfaFactorTooNewError
 */
export function refuseYoungFactor(ctx: YoungContext, user: Pick<UserRecord, 'totpEnabledAt'>): void {
  const usable = user.totpEnabledAt && usableAt(ctx, user.totpEnabledAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
}
