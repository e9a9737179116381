import type { HostFields, UserRecord } from './auth-store'

/** The fields of a user that the person may see. Each field is copied by name, so a column that the host added is never included. */
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
  /** The host's own fields, with the private ones. Absent if the store has none. Responses omit the private ones. */
  readonly fields?: HostFields
}

export function toPublicUser(user: UserRecord): PublicUser {
  const { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, fields } = user
  const mfaEnabled = user.totpEnabledAt !== null
  const shown = { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, mfaEnabled }
  return Object.freeze(fields ? { ...shown, fields: Object.freeze({ ...fields }) } : shown)
}
