import { flag, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import type { PasskeyRecord } from '../store/auth-store'

/** What its owner sees of a passkey. */
export interface PublicPasskey {
  /** Names it in the list; opens nothing. */
  readonly id: string
  readonly name: string | null
  readonly createdAt: Date
  /** Null: not since it was registered. */
  readonly lastUsedAt: Date | null
  /** Copied to other devices of its owner, or to a service that does that. */
  readonly isBackedUp: boolean
  /** The make of the authenticator, a UUID; zeros where it does not say. */
  readonly aaguid: string
}

export function toPublicPasskey({ id, name, createdAt, lastUsedAt, isBackedUp, aaguid }: PasskeyRecord): PublicPasskey {
  return Object.freeze({ id, name, createdAt, lastUsedAt, isBackedUp, aaguid })
}

export function passkeyBody({ id, name, createdAt, lastUsedAt, isBackedUp, aaguid }: PublicPasskey) {
  return {
    id,
    name,
    created_at: createdAt.toISOString(),
    last_used_at: lastUsedAt?.toISOString() ?? null,
    is_backed_up: isBackedUp,
    aaguid,
  }
}

export const passkeySchema: JsonSchema = shape('Passkey', {
  id: string,
  name: stringOrNull,
  created_at: instant,
  last_used_at: instantOrNull,
  is_backed_up: flag,
  aaguid: string,
})
