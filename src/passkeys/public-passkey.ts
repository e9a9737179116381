import { flag, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import type { PasskeyRecord } from '../store/auth-store'

/** A passkey as its owner sees it. */
export interface PublicPasskey {
  /** Identifies it in the list; it is no secret. */
  readonly id: string
  readonly name: string | null
  readonly createdAt: Date
  /** Null if it was not used since it was registered. */
  readonly lastUsedAt: Date | null
  /** True if it is copied to the owner's other devices, or to a sync service. */
  readonly isBackedUp: boolean
  /** The model of the authenticator, a UUID; zeros if it does not say. */
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
