import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export type AuthenticatorAlgorithm = 'ES256' | 'EdDSA' | 'RS256'

export interface VirtualAuthenticatorOptions {
  /** The origin of the page, such as `https://app.example.com`. */
  origin: string
  /** Default `ES256`, even if the options of a registration prefer another algorithm. */
  algorithm?: AuthenticatorAlgorithm
  /** The model of the authenticator, a UUID. Default: only zeros, like most authenticators. */
  aaguid?: string
  /** The authenticator counts its signatures, from 1. Default false: the counter stays 0, as for passkeys copied between devices. */
  counts?: boolean
  /** Whether other devices can get a copy of the passkeys. Default true. */
  isBackupEligible?: boolean
  /** Whether other devices have a copy of the passkeys. Default: the value of `isBackupEligible`. */
  isBackedUp?: boolean
}

/** False values for a response. The authenticator signs them, so the signature is valid. For an invalid one, set `signature`. */
export interface AuthenticatorLies {
  origin?: string
  /** The type in the client data: `webauthn.create` or `webauthn.get`. */
  type?: string
  challenge?: string
  rpId?: string
  crossOrigin?: boolean
  topOrigin?: string
  isUserPresent?: boolean
  isUserVerified?: boolean
  isBackupEligible?: boolean
  isBackedUp?: boolean
  counter?: number
  /** The user handle, in base64url. Null: the response has no user handle. */
  userHandle?: string | null
  /** The signature of the response, in base64url. Replaces the right signature. */
  signature?: string
}

/** `RegistrationResponseJSON` of Web Authentication Level 3. */
export interface VirtualRegistration {
  id: string
  rawId: string
  type: 'public-key'
  authenticatorAttachment: 'platform'
  response: { clientDataJSON: string; attestationObject: string; transports: string[] }
  clientExtensionResults: Record<string, never>
}

/** `AuthenticationResponseJSON` of Web Authentication Level 3. */
export interface VirtualAssertion {
  id: string
  rawId: string
  type: 'public-key'
  authenticatorAttachment: 'platform'
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string }
  clientExtensionResults: Record<string, never>
}

/** The fields of `POST /passkeys/register/options` that the authenticator reads. */
export interface CreationRequest {
  rp: { id: string }
  user: { id: string }
  challenge: string
  excludeCredentials?: readonly { id: string }[]
}

/** The fields that the authenticator reads from the options of a login, a second step or a reauthentication. */
export interface AssertionRequest {
  rpId: string
  challenge: string
  allowCredentials?: readonly { id: string }[]
}

export interface VirtualAuthenticator {
  /** The ids of the passkeys, oldest first. */
  readonly credentialIds: readonly string[]
  /** Like `navigator.credentials.create()`. @throws Error if an excluded credential belongs to this authenticator */
  create(options: CreationRequest, lies?: AuthenticatorLies): VirtualRegistration
  /** Like `navigator.credentials.get()`, with the newest allowed passkey. @throws Error if the options allow none of its passkeys */
  get(options: AssertionRequest, lies?: AuthenticatorLies): VirtualAssertion
}

interface Credential {
  readonly id: string
  readonly rpId: string
  readonly userHandle: string
  readonly privateKey: KeyObject
  counter: number
}

/** An authenticator in memory, for tests without a browser: as the standard says, or with false values. The user is always verified. */
export function virtualAuthenticator({
  origin,
  algorithm = 'ES256',
  aaguid = '00000000-0000-0000-0000-000000000000',
  counts = false,
  isBackupEligible = true,
  isBackedUp = isBackupEligible,
}: VirtualAuthenticatorOptions): VirtualAuthenticator {
  const credentials: Credential[] = []
  const flagsOf = (lies: AuthenticatorLies): AuthenticatorFlags => ({
    isUserPresent: lies.isUserPresent ?? true,
    isUserVerified: lies.isUserVerified ?? true,
    isBackupEligible: lies.isBackupEligible ?? isBackupEligible,
    isBackedUp: lies.isBackedUp ?? isBackedUp,
  })
  return {
    get credentialIds() {
      return credentials.map(({ id }) => id)
    },

    create({ rp, user, challenge, excludeCredentials = [] }, lies = {}) {
      if (excludeCredentials.some(({ id }) => credentials.some((known) => known.id === id)))
        throw new Error('virtualAuthenticator: one of its passkeys is excluded, as the browser would say with an InvalidStateError.')
      const { publicKey, privateKey } = newKeyPair(algorithm)
      const credential = { id: base64url(randomBytes(32)), rpId: rp.id, userHandle: user.id, privateKey, counter: counts ? 1 : 0 }
      credentials.push(credential)
      const { id } = credential
      const data = authenticatorData(lies.rpId ?? rp.id, flagsOf(lies), lies.counter ?? credential.counter, {
        aaguid,
        credentialId: Buffer.from(id, 'base64url'),
        publicKey: coseKey(algorithm, publicKey),
      })
      const clientDataJSON = clientData('webauthn.create', origin, challenge, lies)
      return answer(id, { clientDataJSON, attestationObject: base64url(attestationObject(data)), transports: ['internal', 'hybrid'] })
    },

    get({ rpId, challenge, allowCredentials }, lies = {}) {
      const isAllowed = ({ id }: Credential) => allowCredentials === undefined || allowCredentials.some((allowed) => allowed.id === id)
      const credential = credentials.findLast((known) => known.rpId === rpId && isAllowed(known))
      if (!credential) throw new Error('virtualAuthenticator: it has no passkey that these options allow.')
      if (counts) credential.counter += 1
      const data = authenticatorData(lies.rpId ?? rpId, flagsOf(lies), lies.counter ?? credential.counter)
      const clientDataJSON = clientData('webauthn.get', origin, challenge, lies)
      const userHandle = lies.userHandle === undefined ? credential.userHandle : lies.userHandle
      return answer(credential.id, {
        clientDataJSON,
        authenticatorData: base64url(data),
        signature: lies.signature ?? signatureOf(algorithm, credential.privateKey, data, clientDataJSON),
        ...(userHandle !== null && { userHandle }),
      })
    },
  }
}

function answer<Response>(id: string, response: Response) {
  return { id, rawId: id, type: 'public-key', authenticatorAttachment: 'platform', response, clientExtensionResults: {} } as const
}

function clientData(type: string, origin: string, challenge: string, lies: AuthenticatorLies): string {
  const data = {
    type: lies.type ?? type,
    challenge: lies.challenge ?? challenge,
    origin: lies.origin ?? origin,
    crossOrigin: lies.crossOrigin ?? false,
    ...(lies.topOrigin !== undefined && { topOrigin: lies.topOrigin }),
  }
  return base64url(Buffer.from(JSON.stringify(data)))
}

function newKeyPair(algorithm: AuthenticatorAlgorithm) {
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return algorithm === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: 2048 })
}

/** Web Authentication Level 3, section 6.3.3. */
function signatureOf(algorithm: AuthenticatorAlgorithm, key: KeyObject, data: Buffer, clientDataJSON: string): string {
  const hash = createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest()
  return base64url(sign(algorithm === 'EdDSA' ? null : 'sha256', Buffer.concat([data, hash]), key))
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url')
}

export interface AuthenticatorFlags {
  readonly isUserPresent: boolean
  readonly isUserVerified: boolean
  readonly isBackupEligible: boolean
  readonly isBackedUp: boolean
}

interface AttestedCredential {
  readonly aaguid: string
  readonly credentialId: Buffer
  readonly publicKey: Buffer
}

/** Web Authentication Level 3, section 6.1. */
export function authenticatorData(rpId: string, flags: AuthenticatorFlags, counter: number, credential?: AttestedCredential): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(
    (flags.isUserPresent ? 0x01 : 0) |
      (flags.isUserVerified ? 0x04 : 0) |
      (flags.isBackupEligible ? 0x08 : 0) |
      (flags.isBackedUp ? 0x10 : 0) |
      (credential ? 0x40 : 0),
  )
  head.writeUInt32BE(counter, 1)
  const parts = [createHash('sha256').update(rpId).digest(), head]
  if (!credential) return Buffer.concat(parts)
  const { aaguid, credentialId, publicKey } = credential
  const length = Buffer.alloc(2)
  length.writeUInt16BE(credentialId.length)
  return Buffer.concat([...parts, Buffer.from(aaguid.replaceAll('-', ''), 'hex'), length, credentialId, publicKey])
}

/** Format `none` (section 8.7). */
function attestationObject(data: Buffer): Buffer {
  return encodeCbor(
    new Map<string, Encodable>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', data],
    ]),
  )
}

/** RFC 9052 section 7, with the parameters of RFC 9053 and RFC 8230. */
export function coseKey(algorithm: 'ES256' | 'EdDSA' | 'RS256', key: KeyObject): Buffer {
  const { x = '', y = '', n = '', e = '' } = key.export({ format: 'jwk' })
  const bytes = (text: string) => Buffer.from(text, 'base64url')
  const entries: Record<typeof algorithm, [number, Encodable][]> = {
    ES256: [
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, bytes(x)],
      [-3, bytes(y)],
    ],
    EdDSA: [
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, bytes(x)],
    ],
    RS256: [
      [1, 3],
      [3, -257],
      [-1, bytes(n)],
      [-2, bytes(e)],
    ],
  }
  return encodeCbor(new Map(entries[algorithm]))
}

export type Encodable = number | string | Buffer | ReadonlyMap<number | string, Encodable>

/** Only the part of RFC 8949 that the tests need. */
export function encodeCbor(value: Encodable): Buffer {
  if (typeof value === 'number') return value < 0 ? headOf(1, -1 - value) : headOf(0, value)
  if (typeof value === 'string') return Buffer.concat([headOf(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([headOf(2, value.length), value])
  return Buffer.concat([headOf(5, value.size), ...[...value].flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)])])
}

function headOf(kind: number, size: number): Buffer {
  if (size < 24) return Buffer.from([(kind << 5) | size])
  if (size < 256) return Buffer.from([(kind << 5) | 24, size])
  return Buffer.from([(kind << 5) | 25, size >> 8, size & 255])
}
