import type { HostFields, UserRecord } from './auth-store'

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
  /** The host's own fields, the private ones too; absent where the store has none. No response shows the private ones. */
  readonly fields?: HostFields
}

export function toPublicUser(user: UserRecord): PublicUser {
  const { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, fields } = user
  const mfaEnabled = user.totpEnabledAt !== null
  const shown = { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, mfaEnabled }
  return Object.freeze(fields ? { ...shown, fields: Object.freeze({ ...fields }) } : shown)
}
