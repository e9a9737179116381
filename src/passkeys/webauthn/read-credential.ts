import { createHash } from 'node:crypto'

/**
 * An assertion in the form that a browser sends (`PublicKeyCredential.toJSON()`), with only the fields that we need. Bytes are base64url.
 */
export interface PresentedAssertion {
  readonly id: string
  readonly clientDataJSON: string
  readonly authenticatorData: string
  readonly signature: string
  readonly userHandle: string | null
}

/** A new credential in the form that a browser sends. */
export interface PresentedAttestation {
  readonly id: string
  readonly clientDataJSON: string
  readonly attestationObject: string
  readonly transports: readonly string[]
}

/**
 * Limits in characters of base64url. A credential's id has at most 1,023 bytes (Web Authentication Level 3, section 4). The other limits are
 * far above what any authenticator writes.
 */
const most = { id: 1_364, clientData: 4_096, authenticatorData: 2_048, signature: 2_048, userHandle: 88, attestation: 12_288 }

/** The longest id that the column takes. A longer id is stored as its hash. */
const longestStored = 700

/**
 * Returns the text that the table stores for a credential's id. A hash has a colon, so that it never equals an id.
 */
export function storedId(id: string): string {
  return id.length <= longestStored ? id : `sha256:${createHash('sha256').update(id).digest('base64url')}`
}

/** The transports of Web Authentication Level 3, section 5.8.4. Unknown transports are dropped. */
const transportNames: ReadonlySet<unknown> = new Set(['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'])

/** Reads an assertion. Returns null if a field is missing or malformed. */
export function readAssertion(credential: unknown): PresentedAssertion | null {
  const read = readCommon(credential)
  if (!read) return null
  const { id, clientDataJSON, response } = read
  const { authenticatorData, signature, userHandle } = response
  if (!isBytes(authenticatorData, most.authenticatorData) || !isBytes(signature, most.signature)) return null
  // Some authenticators send an empty handle for a credential without a handle.
  if (userHandle === undefined || userHandle === null || userHandle === '')
    return { id, clientDataJSON, authenticatorData, signature, userHandle: null }
  return isBytes(userHandle, most.userHandle) ? { id, clientDataJSON, authenticatorData, signature, userHandle } : null
}

/** Reads an attestation. Returns null if a field is missing or malformed. */
export function readAttestation(credential: unknown): PresentedAttestation | null {
  const read = readCommon(credential)
  if (!read) return null
  const { id, clientDataJSON, response } = read
  const { attestationObject, transports } = response
  if (!isBytes(attestationObject, most.attestation)) return null
  const known = Array.isArray(transports) ? transports.filter((name) => transportNames.has(name)) : []
  return { id, clientDataJSON, attestationObject, transports: [...new Set(known)].sort() }
}

function readCommon(credential: unknown): { id: string; clientDataJSON: string; response: Record<string, unknown> } | null {
  const { id, rawId, type, response } = fieldsOf(credential)
  if (!isBytes(id, most.id) || rawId !== id || type !== 'public-key') return null
  const fields = fieldsOf(response)
  const { clientDataJSON } = fields
  return isBytes(clientDataJSON, most.clientData) ? { id, clientDataJSON, response: fields } : null
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/**
 * Returns true for valid base64url. The spare bits of the last character must be 0 (RFC 4648 section 3.5). Each value therefore has only
 * one spelling.
 */
function isBytes(value: unknown, longest: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > longest) return false
  return Buffer.from(value, 'base64url').toString('base64url') === value
}
