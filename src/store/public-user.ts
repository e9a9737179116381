import type { HostFields, UserRecord } from './auth-store'

/** The fields of a user that the person may see. */
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
  /** The host's own fields. Absent if the store has none. Includes the private fields, which responses omit. */
  readonly fields?: HostFields
}

/**
 * Returns the fields that the person may see. Copies each field by its name, so that a column that the host added never gets into a
 * response.
 */
export function toPublicUser(user: UserRecord): PublicUser {
  const { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, fields } = user
  const mfaEnabled = user.totpEnabledAt !== null
  const presented = { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, mfaEnabled }
  return Object.freeze(fields ? { ...presented, fields: Object.freeze({ ...fields }) } : presented)
}
