import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { type AuthenticatorFlags, authenticatorData, coseKey, type Encodable, encodeCbor } from '../../src/testing/virtual-authenticator'
import { baseUrl } from '../support/app'

const base64url = (bytes: Buffer) => bytes.toString('base64url')
const honest: AuthenticatorFlags = { isUserPresent: true, isUserVerified: true, isBackupEligible: true, isBackedUp: true }

export interface Options {
  challenge: string
  rpId?: string
  rp?: { id: string }
  user?: { id: string }
}

/** What is made of each part before it is signed, or afterwards. Left out: as an honest authenticator does. */
export interface Damage {
  /** Of the client data, as an object; what comes back is written as it is. */
  clientData?: (data: Record<string, unknown>) => object | Buffer
  /** Of the authenticator data, before it is signed. */
  data?: (bytes: Buffer) => Buffer
  /** In the place of the right signature over these bytes. */
  signature?: (signed: Buffer, key: KeyObject) => Buffer
  /** Of the answer's JSON, after it was signed. */
  // biome-ignore lint/suspicious/noExplicitAny: it is damaged on purpose
  answer?: (answer: any) => void
  /** The COSE_Key of a registration. */
  publicKey?: Encodable | Buffer
  /** Of the attestation object. */
  attestation?: (data: Buffer) => Map<string, Encodable> | Buffer
}

/** An authenticator whose every byte is the test's. It signs by ES256, and never counts. */
export function handMade() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const id = randomBytes(32)
  let userHandle = ''
  const clientDataOf = (type: string, { challenge }: Options, { clientData = (data) => data }: Damage) => {
    const made = clientData({ type, challenge, origin: baseUrl, crossOrigin: false })
    return Buffer.isBuffer(made) ? made : Buffer.from(JSON.stringify(made))
  }
  const answer = (response: object, { answer: damage }: Damage) => {
    const whole = { id: base64url(id), rawId: base64url(id), type: 'public-key', response, clientExtensionResults: {} }
    damage?.(whole)
    return whole
  }
  return {
    create(options: Options, damage: Damage = {}) {
      userHandle = options.user?.id ?? ''
      const key = damage.publicKey ?? coseKey('ES256', publicKey)
      const made = authenticatorData(options.rp?.id ?? '', honest, 0, {
        aaguid: '00000000-0000-0000-0000-000000000000',
        credentialId: id,
        publicKey: Buffer.isBuffer(key) ? key : encodeCbor(key),
      })
      const data = (damage.data ?? ((bytes) => bytes))(made)
      const attestation = (damage.attestation ?? noneOf)(data)
      const clientDataJSON = base64url(clientDataOf('webauthn.create', options, damage))
      const attestationObject = base64url(Buffer.isBuffer(attestation) ? attestation : encodeCbor(attestation))
      return answer({ clientDataJSON, attestationObject, transports: ['internal'] }, damage)
    },
    get(options: Options, damage: Damage = {}) {
      const data = (damage.data ?? ((bytes) => bytes))(authenticatorData(options.rpId ?? '', honest, 0))
      const clientData = clientDataOf('webauthn.get', options, damage)
      const signed = Buffer.concat([data, createHash('sha256').update(clientData).digest()])
      const signature = damage.signature?.(signed, privateKey) ?? sign('sha256', signed, privateKey)
      const response = {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(data),
        signature: base64url(signature),
        userHandle,
      }
      return answer(response, damage)
    },
  }
}

/** Attestation `none`. */
export function noneOf(data: Buffer): Map<string, Encodable> {
  return new Map<string, Encodable>([
    ['fmt', 'none'],
    ['attStmt', new Map()],
    ['authData', data],
  ])
}

const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const ed25519 = generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const set = (bytes: Buffer, at: number, value: number) =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from([value]), bytes.subarray(at + 1)])
const flagsAt = 32
const withFlags = (change: (flags: number) => number) => (bytes: Buffer) => set(bytes, flagsAt, change(bytes.readUInt8(flagsAt)))
const cut = (length: number) => (bytes: Buffer) => bytes.subarray(0, length)

/** What no page of the site gets from its browser; of a registration and of an assertion. */
const untrueClientData: Record<string, NonNullable<Damage['clientData']>> = {
  'another origin': (data) => ({ ...data, origin: 'https://evil.example' }),
  'an origin below ours': (data) => ({ ...data, origin: baseUrl.replace('://', '://x.') }),
  'our origin by http': (data) => ({ ...data, origin: baseUrl.replace('https:', 'http:') }),
  'our origin at another port': (data) => ({ ...data, origin: `${baseUrl}:8443` }),
  'our origin with a path': (data) => ({ ...data, origin: `${baseUrl}/` }),
  'our origin in capitals': (data) => ({ ...data, origin: baseUrl.toUpperCase() }),
  'an origin that ends like ours': (data) => ({ ...data, origin: baseUrl.replace('://', '://evil') }),
  'no origin': ({ origin: _, ...data }) => data,
  'the origin null': (data) => ({ ...data, origin: 'null' }),
  'a list of origins': (data) => ({ ...data, origin: [baseUrl] }),
  'another type': (data) => ({ ...data, type: 'payment.get' }),
  'the type of the other ceremony': (data) => ({ ...data, type: data['type'] === 'webauthn.get' ? 'webauthn.create' : 'webauthn.get' }),
  'no type': ({ type: _, ...data }) => data,
  'another challenge': (data) => ({ ...data, challenge: base64url(randomBytes(32)) }),
  'an empty challenge': (data) => ({ ...data, challenge: '' }),
  'half of the challenge': (data) => ({ ...data, challenge: String(data['challenge']).slice(0, 20) }),
  'the challenge with padding': (data) => ({ ...data, challenge: `${data['challenge']}=` }),
  'no challenge': ({ challenge: _, ...data }) => data,
  'a frame of another site': (data) => ({ ...data, crossOrigin: true }),
  'a frame, told by a text': (data) => ({ ...data, crossOrigin: 'true' }),
  'a top origin': (data) => ({ ...data, topOrigin: 'https://evil.example' }),
  'client data that is no JSON': () => Buffer.from('{'),
  'client data null': () => Buffer.from('null'),
  'client data that is a list': () => Buffer.from('[]'),
  'client data behind a byte order mark': (data) => Buffer.from(`\ufeff${JSON.stringify(data)}`),
  'oversized client data': (data) => ({ ...data, padding: 'x'.repeat(4_096) }),
}

const untrueData: Record<string, NonNullable<Damage['data']>> = {
  'the hash of another RP id': (bytes) => Buffer.concat([createHash('sha256').update('evil.example').digest(), bytes.subarray(32)]),
  'the hash of the domain above': (bytes) => Buffer.concat([createHash('sha256').update('example.test').digest(), bytes.subarray(32)]),
  'a user who was not verified': withFlags((flags) => flags & ~0x04),
  'a user who was not there': withFlags((flags) => flags & ~0x01),
  'no flags at all': withFlags((flags) => flags & 0x40),
  'a backup of what cannot be copied': withFlags((flags) => flags & ~0x08),
  'extensions that are not there': withFlags((flags) => flags | 0x80),
  'bytes after the end': (bytes) => Buffer.concat([bytes, Buffer.from([0])]),
  'no bytes': cut(0),
  'half a hash': cut(16),
  'authenticator data cut before its flags': cut(32),
  'authenticator data cut in its counter': cut(35),
}

// biome-ignore lint/suspicious/noExplicitAny: it is damaged on purpose
const unshapely: Record<string, (answer: any) => void> = {
  'no response': (answer) => delete answer.response,
  'a response that is null': (answer) => Object.assign(answer, { response: null }),
  'a response that is a text': (answer) => Object.assign(answer, { response: 'x' }),
  'no client data': ({ response }) => delete response.clientDataJSON,
  'client data that is no text': ({ response }) => Object.assign(response, { clientDataJSON: 7 }),
  'client data in base64': ({ response }) => Object.assign(response, { clientDataJSON: `${response.clientDataJSON}==` }),
  'another raw id': (answer) => Object.assign(answer, { rawId: base64url(randomBytes(32)) }),
  'another id': (answer) => Object.assign(answer, { id: base64url(randomBytes(32)) }),
  'an id with spare bits': (answer) => Object.assign(answer, { id: `${answer.id}A`, rawId: `${answer.id}A` }),
  'no id': (answer) => delete answer.id,
  'an empty id': (answer) => Object.assign(answer, { id: '', rawId: '' }),
  'an oversized id': (answer) => Object.assign(answer, { id: 'A'.repeat(1_368), rawId: 'A'.repeat(1_368) }),
  'an id with NUL': (answer) => Object.assign(answer, { id: '\0', rawId: '\0' }),
  'an id that is a list': (answer) => Object.assign(answer, { id: [answer.id], rawId: [answer.id] }),
  'a password credential': (answer) => Object.assign(answer, { type: 'password' }),
  'no type of credential': (answer) => delete answer.type,
}

const bothWays: Record<string, Damage> = {
  ...each(untrueClientData, (clientData) => ({ clientData })),
  ...each(untrueData, (data) => ({ data })),
  ...each(unshapely, (answer) => ({ answer })),
}

/** Answers to a login, a second step or a reauthentication. */
export const forgedAssertions: Record<string, Damage> = {
  ...bothWays,
  'a credential that says it is copied no more': { data: withFlags((flags) => flags & ~0x18) },
  'an attested credential that is not there': { data: withFlags((flags) => flags | 0x40) },
  'a signature of another key': { signature: (signed) => sign('sha256', signed, otherKey) },
  'a signature over nothing': { signature: (_signed, key) => sign('sha256', Buffer.alloc(0), key) },
  'a signature by SHA-512': { signature: (signed, key) => sign('sha512', signed, key) },
  'a signature by SHA-1': { signature: (signed, key) => createSign('sha1').update(signed).sign(key) },
  'a signature as two plain numbers': { signature: (signed, key) => sign('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }) },
  'a signature by EdDSA': { signature: (signed) => sign(null, signed, ed25519.privateKey) },
  'a signature by RS256': { signature: (signed) => sign('sha256', signed, rsa.privateKey) },
  'the two numbers zero': { signature: () => Buffer.from('3006020100020100', 'hex') },
  'a signature that is cut off': { signature: (signed, key) => sign('sha256', signed, key).subarray(0, 40) },
  'a signature with a byte more': { signature: (signed, key) => Buffer.concat([sign('sha256', signed, key), Buffer.from([0])]) },
  'the bytes signed, as the signature': { signature: (signed) => signed },
  'no signature': { answer: ({ response }) => delete response.signature },
  'an empty signature': { answer: ({ response }) => Object.assign(response, { signature: '' }) },
  'an oversized signature': { answer: ({ response }) => Object.assign(response, { signature: 'A'.repeat(2_052) }) },
  'a flag changed after signing': {
    answer: ({ response }) => Object.assign(response, { authenticatorData: changed(response.authenticatorData, flagsAt) }),
  },
  'a counter changed after signing': {
    answer: ({ response }) => Object.assign(response, { authenticatorData: changed(response.authenticatorData, 36) }),
  },
  'client data changed after signing': {
    answer: ({ response }) => Object.assign(response, { clientDataJSON: changed(response.clientDataJSON, 12) }),
  },
  'oversized authenticator data': { answer: ({ response }) => Object.assign(response, { authenticatorData: 'A'.repeat(2_052) }) },
  'no authenticator data': { answer: ({ response }) => delete response.authenticatorData },
  'another user handle': { answer: ({ response }) => Object.assign(response, { userHandle: base64url(randomBytes(32)) }) },
  'a user handle that is no text': { answer: ({ response }) => Object.assign(response, { userHandle: {} }) },
  'an oversized user handle': { answer: ({ response }) => Object.assign(response, { userHandle: 'A'.repeat(92) }) },
}

const { n = '', e = '' } = rsa.publicKey.export({ format: 'jwk' })
const point = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const bytesOf = (text = '') => Buffer.from(text, 'base64url')
const [x, y, modulus, exponent] = [bytesOf(point.x), bytesOf(point.y), bytesOf(n), bytesOf(e)]
const ec = (entries: [number, Encodable][] = []) => new Map<number, Encodable>([[1, 2], [3, -7], [-1, 1], [-2, x], [-3, y], ...entries])
const rsaKey = (modulus: Buffer, exponent: Buffer) =>
  new Map<number, Encodable>([
    [1, 3],
    [3, -257],
    [-1, modulus],
    [-2, exponent],
  ])
const short = bytesOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }).n)

/** Of which nobody asked for, or which no key is. */
const unfitKeys: Record<string, Encodable | Buffer> = {
  'a key of EdDSA that says ES256': new Map<number, Encodable>([
    [1, 1],
    [3, -7],
    [-1, 6],
    [-2, x],
  ]),
  'a key of ES256 that says RS256': ec([[3, -257]]),
  'a key of ES256 that says EdDSA': ec([[3, -8]]),
  ES384: ec([
    [3, -35],
    [-1, 2],
  ]),
  RS1: new Map<number, Encodable>([
    [1, 3],
    [3, -65535],
    [-1, modulus],
    [-2, exponent],
  ]),
  'a key of another curve': ec([[-1, 2]]),
  'a point that is not on the curve': ec([[-3, x]]),
  'a compressed point': ec([[-3, 1]]),
  'half a coordinate': ec([[-2, x.subarray(0, 16)]]),
  'a key with its private part': ec([[-4, x]]),
  'a key of Ed25519 that is too short': new Map<number, Encodable>([
    [1, 1],
    [3, -8],
    [-1, 6],
    [-2, x.subarray(0, 31)],
  ]),
  'RSA of 1,024 bits': rsaKey(short, exponent),
  'RSA of 1,024 bits behind zeros': rsaKey(Buffer.concat([Buffer.alloc(128), short]), exponent),
  'RSA of exponent 1': rsaKey(modulus, Buffer.from([1])),
  'RSA of an even exponent': rsaKey(modulus, Buffer.from([1, 0, 0])),
  'RSA of 8,200 bits': rsaKey(Buffer.concat([modulus, modulus, modulus, modulus, Buffer.from([1])]), exponent),
  'a symmetric key': new Map<number, Encodable>([
    [1, 4],
    [3, 5],
    [-1, x],
  ]),
  'no key': new Map<number, Encodable>(),
  'a key that is a text': 'key',
  'a key with a label twice': Buffer.concat([Buffer.from('a6010203260326', 'hex'), encodeCbor(ec()).subarray(5)]),
  'a key of indefinite length': Buffer.concat([Buffer.from([0xbf]), encodeCbor(ec()).subarray(1), Buffer.from([0xff])]),
}

const objectOf =
  (fmt: string, attStmt: Encodable, more: [string, Encodable][] = []) =>
  (data: Buffer) =>
    new Map<string, Encodable>([['fmt', fmt], ['attStmt', attStmt], ['authData', data], ...more])
const wholeOf = (data: Buffer) => encodeCbor(noneOf(data))

const unfitAttestations: Record<string, NonNullable<Damage['attestation']>> = {
  ...Object.fromEntries(
    [1, 9, 20, 60, 120, 180].map((length) => [`CBOR cut after ${length} bytes`, (data: Buffer) => wholeOf(data).subarray(0, length)]),
  ),
  'CBOR cut before its last byte': (data) => wholeOf(data).subarray(0, -1),
  'a byte after the CBOR': (data) => Buffer.concat([wholeOf(data), Buffer.from([0])]),
  'CBOR twice': (data) => Buffer.concat([wholeOf(data), wholeOf(data)]),
  'CBOR of indefinite length': (data) => Buffer.concat([Buffer.from([0xbf]), wholeOf(data).subarray(1), Buffer.from([0xff])]),
  'CBOR in CBOR in CBOR': () => Buffer.from('81'.repeat(5_000), 'hex'),
  'CBOR of a billion entries': () => Buffer.from('ba3b9aca00', 'hex'),
  'CBOR of bytes that are not there': () => Buffer.from('a163666d745b00ffffffffffffff', 'hex'),
  'no CBOR': () => Buffer.from('none'),
  'an attestation by certificates': objectOf(
    'packed',
    new Map<string, Encodable>([
      ['alg', -7],
      ['sig', x],
      ['x5c', x],
    ]),
  ),
  'a signature of its own that is wrong': objectOf(
    'packed',
    new Map<string, Encodable>([
      ['alg', -7],
      ['sig', x],
    ]),
  ),
  'an attestation of another kind': objectOf('fido-u2f', new Map()),
  'an attestation that nobody knows': objectOf('mine', new Map()),
  'a statement with nothing to say': objectOf('none', new Map<string, Encodable>([['sig', x]])),
  'a field more': objectOf('none', new Map(), [['more', 1]]),
  'no statement': (data) =>
    new Map<string, Encodable>([
      ['fmt', 'none'],
      ['authData', data],
    ]),
  'no authenticator data': () =>
    new Map<string, Encodable>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
    ]),
}

/** Answers to a registration. */
export const forgedRegistrations: Record<string, Damage> = {
  ...bothWays,
  ...each(unfitKeys, (publicKey) => ({ publicKey })),
  ...each(unfitAttestations, (attestation) => ({ attestation })),
  'a registration without a credential': { data: (bytes) => withFlags((flags) => flags & ~0x40)(bytes).subarray(0, 37) },
  'another credential id than its data': { data: (bytes) => set(bytes, 60, bytes.readUInt8(60) ^ 1) },
  'a credential id that is longer than its data': { data: (bytes) => set(bytes, 53, 0xff) },
  'a credential id of no bytes': { data: (bytes) => set(set(bytes, 53, 0), 54, 0) },
  'an oversized attestation': { answer: ({ response }) => Object.assign(response, { attestationObject: 'A'.repeat(12_292) }) },
  'no attestation': { answer: ({ response }) => delete response.attestationObject },
}

function changed(text: string, at: number): string {
  const bytes = Buffer.from(text, 'base64url')
  return base64url(set(bytes, at, bytes.readUInt8(at) ^ 1))
}

function each<Value>(table: Record<string, Value>, make: (value: Value) => Damage): Record<string, Damage> {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, make(value)]))
}
