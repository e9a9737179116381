import { instant, shape, string, stringOrNull } from '../http/description'
import type { IdentityRecord } from '../store/auth-store'

export const identitySchema = shape('Identity', {
  provider: string,
  subject: string,
  email: stringOrNull,
  email_verified: { type: ['boolean', 'null'] },
  name: stringOrNull,
  picture: stringOrNull,
  created_at: instant,
  last_login_at: instant,
})

/** Returns the JSON of a linked identity. Copies each field by its name, so the JSON never contains another column of the row. */
export function identityBody(identity: IdentityRecord): object {
  return {
    provider: identity.provider,
    subject: identity.subject,
    email: identity.email,
    email_verified: identity.emailVerified,
    name: identity.name,
    picture: identity.picture,
    created_at: identity.createdAt.toISOString(),
    last_login_at: identity.lastLoginAt.toISOString(),
  }
}
