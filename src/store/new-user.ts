import type { NewUser } from './auth-store'

/** The values that every new account needs, and values that replace a default of `newUser`. */
type Given = Pick<NewUser, 'email' | 'name' | 'hashedPassword' | 'fields'> & Partial<NewUser>

/** Returns the row of a new account. By default the account is active, and has no second factor and no verified address. */
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
