import type { NewUser } from './auth-store'

/** The values that differ between new accounts, and any default values to override. */
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
