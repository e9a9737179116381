import { flag, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import type { UserStore } from '../store/auth-store'
import type { PublicUser } from '../store/public-user'

const userFields = {
  id: string,
  email: string,
  name: stringOrNull,
  is_active: flag,
  is_admin: flag,
  created_at: instant,
  updated_at: instant,
  last_login_at: instantOrNull,
  mfa_enabled: flag,
}

type FieldRules = Pick<UserStore, 'hostFields'>

/**
 * Returns the JSON schema of a user.
 * @param more additional properties of this body
 */
export function userSchema(users: FieldRules, title = 'User', more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  const names = shownFields(users)
  const fields = { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])), required: names }
  return shape(title, { ...userFields, ...more, ...(users.hostFields && { fields }) })
}

/** Returns the JSON body of a user. The body never contains private fields. */
export function userBody(users: FieldRules, user: PublicUser) {
  const { fields = {} } = user
  const own = users.hostFields && Object.fromEntries(shownFields(users).map((name) => [name, asJson(fields[name])]))
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    is_active: user.isActive,
    is_admin: user.isAdmin,
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    mfa_enabled: user.mfaEnabled,
    ...(own && { fields: own }),
  }
}

function shownFields({ hostFields = new Map() }: FieldRules): string[] {
  return [...hostFields].flatMap(([name, rules]) => (rules.private ? [] : [name]))
}

/** Converts a value for JSON. A bigint becomes a text, because JSON numbers are not exact beyond 2^53. */
function asJson(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : (value ?? null)
}
