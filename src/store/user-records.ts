import type { HostFields, NewUser, UserRecord } from './auth-store'

type Given = Pick<NewUser, 'email' | 'name' | 'hashedPassword' | 'fields'> & Partial<NewUser>

/** Default: active, no second factor, no verified address. */
export function newUser(now: Date, given: Given): NewUser {
  return {
    isActive: true,
    isAdmin: false,
    createdAt: now,
    updatedAt: now,
    lastLoginAt: null,
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: null,
    activatedAt: now,
    passwordSetAt: null,
    ...given,
  }
}

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

/** Copies each field by its name, so that a column that the host added never gets into a response. */
export function toPublicUser(user: UserRecord): PublicUser {
  const { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, fields } = user
  const mfaEnabled = user.totpEnabledAt !== null
  const presented = { id, email, name, isActive, isAdmin, createdAt, updatedAt, lastLoginAt, mfaEnabled }
  return Object.freeze(fields ? { ...presented, fields: Object.freeze({ ...fields }) } : presented)
}

const yearMs = 366 * 86_400_000

/** No purge deletes the row. A TIMESTAMP column of a host holds no later year than 2037. */
export function neverEnds(now: Date): Date {
  return new Date(Math.max(Date.UTC(2037, 11, 31), now.getTime() + yearMs))
}
