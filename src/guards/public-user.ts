import { flag, instant, instantOrNull, shape, string, stringOrNull } from '../http/description'
import type { UserRecord } from '../store/auth-store'

/** What of a user may be shown to it. Built by naming each field: a column the host added never slips out. */
export interface PublicUser {
  readonly id: string
  readonly email: string
  readonly name: string | null
  readonly isActive: boolean
  readonly isAdmin: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly lastLoginAt: Date | null
  readonly mfaEnabled: boolean
}

export function toPublicUser(user: UserRecord): PublicUser {
  const { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt } = user
  return Object.freeze({ id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, mfaEnabled: user.totpEnabledAt !== null })
}

export const userFields = {
  id: string,
  email: string,
  name: stringOrNull,
  is_active: flag,
  is_admin: flag,
  created_at: instant,
  updated_at: instant,
  last_login_at: instantOrNull,
  mfa_enabled: flag,
}

export const userSchema = shape('User', userFields)

/** The same on the wire. */
export function userBody(user: PublicUser) {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    is_active: user.isActive,
    is_admin: user.isAdmin,
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    mfa_enabled: user.mfaEnabled,
  }
}
