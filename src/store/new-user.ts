import type { NewUser } from './auth-store'

/** What an account is made with, beside what every new one has. */
type Given = Pick<NewUser, 'email' | 'name' | 'hashedPassword' | 'fields'> & Partial<NewUser>

/** The row of a new account: active, with no second factor and no proven address, unless `given` says otherwise. */
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
