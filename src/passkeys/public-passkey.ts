import { flag, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import type { PasskeyRecord } from '../store/auth-store'

/** A passkey as its owner sees it. */
export interface PublicPasskey {
  /** The passkey's id in the list. The id is not secret. */
  readonly id: string
  readonly name: string | null
  readonly createdAt: Date
  /**
   * The time of the last use of the passkey: a login, a second-factor step or a confirmation. Null if the passkey was not used since its
   * registration.
   */
  readonly lastUsedAt: Date | null
  /** True if the passkey is copied to the owner's other devices or to a sync service. */
  readonly isBackedUp: boolean
  /** A UUID for the model of the authenticator. All zeros if the authenticator does not report its model. */
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
