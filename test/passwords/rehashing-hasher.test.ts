import { describe, expect, test } from 'vitest'
import {
  argon2idHasher,
  aspNetIdentityReader,
  bcryptHasher,
  bcryptReader,
  djangoPbkdf2Reader,
  firebaseScryptReader,
  type PasswordReader,
  pepperedReader,
  rehashingHasher,
} from '../../src'
import { newAddress, onLocal, post } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { firebase, legacyHashes, legacyPassword, microsoft, pepper } from './legacy-hashes'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

const of = (...hashes: string[]) => hashes.map((hash) => [hash, legacyPassword] as const)

const readers: Readonly<Record<string, { reader: PasswordReader; accounts: readonly (readonly [hash: string, password: string])[] }>> = {
  django: { reader: djangoPbkdf2Reader(), accounts: of(legacyHashes.django, legacyHashes.djangoSha1) },
  bcrypt: { reader: bcryptReader(), accounts: of(legacyHashes.php, legacyHashes.php.replace('$2y$', '$2a$')) },
  peppered: { reader: pepperedReader(bcryptReader(), { pepper }), accounts: of(legacyHashes.peppered) },
  firebase: {
    reader: firebaseScryptReader(firebase.parameters),
    accounts: [[firebase.hash, firebase.password], ...of(legacyHashes.firebase)],
  },
  'ASP.NET': {
    reader: aspNetIdentityReader(),
    accounts: [
      ...microsoft.hashes.map((hash) => [hash, microsoft.password] as const),
      ...of(legacyHashes.aspNet, legacyHashes.aspNetSha512, legacyHashes.aspNetSha1),
    ],
  },
}

const flipped = (hash: string, at: number) => `${hash.slice(0, at)}${hash[at] === 'A' ? 'B' : 'A'}${hash.slice(at + 1)}`

describe.each(Object.entries(readers))('the reader of %s', (_name, { reader, accounts }) => {
  test('20.3 takes the right password of a hash that the other system made, and no other', async () => {
    for (const [hash, password] of accounts) {
      expect([reader.reads(hash), await reader.verify(hash, password)]).toEqual([true, true])
      for (const wrong of [`${password} `, password.slice(1), '', `${password}\0`]) expect(await reader.verify(hash, wrong)).toBe(false)
      expect(await reader.verify(flipped(hash, hash.length - 10), password)).toBe(false)
    }
  })

  test('20.3 reads nothing else, and is false for it without a throw', async () => {
    const [[first, password] = ['', '']] = accounts
    const own = await argon2idHasher().hash(password)
    const others = Object.values(readers).flatMap((other) =>
      other.reader.name.endsWith(reader.name.replace('peppered ', '')) ? [] : other.accounts.map(([hash]) => hash),
    )
    const damaged = [
      first.slice(0, -12),
      `${first}A`.repeat(5),
      first.slice(1),
      '',
      '!',
      'x'.repeat(100),
      '$2x$10$rxb3VjwaEYC4QJaz.Kfl4uvChqCbS/YN50s5me.mtqQTxlUSsrkvS',
    ]
    for (const hash of [own, ...others, ...damaged])
      expect([hash, reader.reads(hash), await reader.verify(hash, password)]).toEqual([hash, false, false])
  })
})

test("20.3 ASP.NET: a key that is not 32 bytes long is refused, also with the right password, and so are the failure cases of .NET's tests", async () => {
  const reader = aspNetIdentityReader()
  for (const hash of [...microsoft.otherKeyLengths, ...microsoft.failures])
    expect([hash, reader.reads(hash), await reader.verify(hash, microsoft.password)]).toEqual([hash, false, false])
})

test('47 absurd costs are no match: a row of the table stops no process', async () => {
  const aspNet = Buffer.from(legacyHashes.aspNet, 'base64')
  const costly = (change: (bytes: Buffer) => void) => {
    const bytes = Buffer.from(aspNet)
    change(bytes)
    return bytes.toString('base64')
  }
  const refused: readonly (readonly [PasswordReader, string])[] = [
    [djangoPbkdf2Reader(), legacyHashes.django.replace('260000', '10000001')],
    [djangoPbkdf2Reader(), legacyHashes.django.replace('260000', '999999999999')],
    [djangoPbkdf2Reader(), legacyHashes.django.replace('260000', '0')],
    [aspNetIdentityReader(), costly((bytes) => bytes.writeUInt32BE(10_000_001, 5))],
    [aspNetIdentityReader(), costly((bytes) => bytes.writeUInt32BE(0, 5))],
    [aspNetIdentityReader(), costly((bytes) => bytes.writeUInt32BE(3, 1))],
    [aspNetIdentityReader(), costly((bytes) => bytes.writeUInt32BE(0xffffffff, 9))],
    [aspNetIdentityReader(), costly((bytes) => bytes.writeUInt8(0, 0))],
    [bcryptReader(), legacyHashes.php.replace('$10$', '$31$')],
  ]
  for (const [reader, hash] of refused)
    expect([hash, reader.reads(hash), await reader.verify(hash, legacyPassword)]).toEqual([hash, false, false])
  const { parameters } = firebase
  for (const wrong of [
    { memCost: 17 },
    { rounds: 65 },
    { memCost: 31 },
    { memCost: 0 },
    { rounds: 1.5 },
    { signerKey: '' },
    { saltSeparator: '%' },
  ])
    expect(() => firebaseScryptReader({ ...parameters, ...wrong })).toThrow(/^firebaseScryptReader: /)
})

describe('rehashingHasher', () => {
  test('20.3 at the next login the old hash is replaced, and the password still works', async () => {
    const legacy = [
      djangoPbkdf2Reader(),
      pepperedReader(bcryptReader(), { pepper }),
      firebaseScryptReader(firebase.parameters),
      aspNetIdentityReader(),
    ]
    const host = await start({ options: { passwordHasher: rehashingHasher({ current: argon2idHasher(), legacy }) } })
    for (const [hashedPassword, password] of Object.values(readers).flatMap(({ accounts }) => accounts)) {
      const { id, email } = await addUser(host.knex, { email: newAddress(), hashedPassword })
      expect((await post(host, '/login', { email, password: 'a wrong one entirely' })).status).toBe(401)
      expect((await host.knex('auth_users').where({ id }).first()).hashed_password).toBe(hashedPassword)
      expect([hashedPassword, (await post(host, '/login', { email, password })).status]).toEqual([hashedPassword, 200])
      expect((await host.knex('auth_users').where({ id }).first()).hashed_password).toMatch(/^\$argon2id\$/)
      expect((await post(host, '/login', { email, password })).status).toBe(200)
    }
  })

  test('with a pepper over the form that the current hasher makes, nobody is locked out by the new hash', async () => {
    const legacy = [pepperedReader(bcryptReader(), { pepper })]
    const hasher = rehashingHasher({ current: bcryptHasher({ cost: 11 }), legacy })
    expect([await hasher.verify(legacyHashes.peppered, legacyPassword), hasher.needsRehash(legacyHashes.peppered)]).toEqual([true, true])
    const made = await hasher.hash(legacyPassword)
    expect([await hasher.verify(made, legacyPassword), hasher.needsRehash(made)]).toEqual([true, false])
    expect(await hasher.verify(made, legacyPassword + pepper)).toBe(false)
  })

  test('46 says what it reads, and keeps what the current one says of itself', async () => {
    const current = argon2idHasher()
    const hasher = rehashingHasher({ current, legacy: [djangoPbkdf2Reader()] })
    const own = await current.hash(legacyPassword)
    expect([legacyHashes.django, own, legacyHashes.php, legacyHashes.aspNet, 'x'].map((hash) => hasher.reads?.(hash))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect([
      current.reads?.(own),
      current.reads?.(legacyHashes.django),
      bcryptHasher().reads?.(legacyHashes.php),
      bcryptHasher().reads?.(own),
    ]).toEqual([true, false, true, false])
    expect([hasher.unreadable?.(legacyHashes.django), hasher.unreadable?.(legacyHashes.aspNet)]).toEqual([null, 'unknown_format'])
    expect([hasher.hashLength, hasher.maxPasswordBytes]).toEqual([current.hashLength, current.maxPasswordBytes])
    expect(rehashingHasher({ current: bcryptHasher(), legacy: [] }).maxPasswordBytes).toBe(72)
    expect(await hasher.verify(legacyHashes.django, '\ud800')).toBe(false)
  })

  test('what is no hasher, no reader or no pepper is told at once', () => {
    const current = argon2idHasher()
    expect(() => rehashingHasher({ current: djangoPbkdf2Reader() as never, legacy: [] })).toThrow('current must be a PasswordHasher')
    expect(() => rehashingHasher({ current, legacy: djangoPbkdf2Reader() as never })).toThrow('legacy must be a list of readers')
    expect(() => rehashingHasher({ current, legacy: [djangoPbkdf2Reader] as never })).toThrow('legacy must be a list of readers')
    expect(() => pepperedReader(djangoPbkdf2Reader(), { pepper: '' })).toThrow('pepper must be a text')
    expect(() => pepperedReader({} as never, { pepper })).toThrow('must be a reader')
    expect(pepperedReader(bcryptReader(), { pepper, combine: (one, two) => two + one }).name).toBe('peppered bcrypt')
  })
})
