import { type PublicUser, toPublicUser, userBody, userFields } from '../guards/public-user'
import { instantOrNull, shape } from '../http/description'
import type { UserRecord } from '../store/auth-store'

/** What an administrator sees of an account: what its owner does, and two dates. Never a hash, never a secret. */
export interface AdminUser extends PublicUser {
  readonly emailVerifiedAt: Date | null
  readonly activatedAt: Date | null
}

export function toAdminUser(user: UserRecord): AdminUser {
  const { emailVerifiedAt, activatedAt } = user
  return Object.freeze({ ...toPublicUser(user), emailVerifiedAt, activatedAt })
}

export const adminUserSchema = shape('AdminUser', { ...userFields, email_verified_at: instantOrNull, activated_at: instantOrNull })

export function adminUserBody(user: AdminUser): object {
  return {
    ...userBody(user),
    email_verified_at: user.emailVerifiedAt?.toISOString() ?? null,
    activated_at: user.activatedAt?.toISOString() ?? null,
  }
}
