import type { NewUser } from './auth-store'

/** The values that differ between new accounts, and any others to override. */
type Given = Pick<NewUser, 'email' | 'name' | 'hashedPassword' | 'fields'> & Partial<NewUser>

/** Returns the row of a new account: active, without a second factor or a verified address, unless `given` says otherwise. */
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
