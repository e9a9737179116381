import { userBody, userSchema } from '../accounts/public-user-schema'
import { instantOrNull, type JsonSchema } from '../http/description'
import type { UserRecord, UserStore } from '../store/auth-store'
import { type PublicUser, toPublicUser } from '../store/public-user'

/** An account as an administrator sees it: the fields that the owner sees, and two dates. The object never contains a hash or a secret. */
export interface AdminUser extends PublicUser {
  readonly emailVerifiedAt: Date | null
  readonly activatedAt: Date | null
}

export function toAdminUser(user: UserRecord): AdminUser {
  const { emailVerifiedAt, activatedAt } = user
  return Object.freeze({ ...toPublicUser(user), emailVerifiedAt, activatedAt })
}

export function adminUserSchema(users: UserStore): JsonSchema {
  return userSchema(users, 'AdminUser', { email_verified_at: instantOrNull, activated_at: instantOrNull })
}

export function adminUserBody(users: UserStore, user: AdminUser): object {
  return {
    ...userBody(users, user),
    email_verified_at: user.emailVerifiedAt?.toISOString() ?? null,
    activated_at: user.activatedAt?.toISOString() ?? null,
  }
}
