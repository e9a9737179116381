import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { deriveKey, deriveKeys, type KeyPurpose } from '../src/core/keys'

const secret = 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe'

/** Made with `openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt key:… -kdfopt salt: -kdfopt info:doorward/<purpose>/v1 HKDF`. */
const pinned: Record<KeyPurpose, string> = {
  access: '56d09ef4b5dda4aa3a2e7918aba7f3d22e07a1d77c94ab5d06fae2cb24dc3892',
  mfa: '0c8945afad918ef893835ad225c662b61cd2b311dda0941b3c505116c56db77d',
  refresh: 'd738223ae884002d51d36dc4aaabce88f25e8018d0414214a9d533fd100b6d10',
  'refresh-successor': 'd53f0d6de0b878dc8e573744601f7cef91d1ea3bee7046c00598b63e8830b89b',
  'session-token': 'b8f298a1c8705b9bff2613134ec3a16ce899ffc10af36f21dfb0ca761b5329cc',
  state: '371c07e2aff92b9979ccb2e43fcb099195a11c6b404ee839f5db62c1bda8b04e',
  pkce: '2f67e6799c25575b8d5f8552b3277f0d337b7fa2a3d16030f8f7c0f5e5327272',
  nonce: '36bde9c65e2e3dad2435d873024f77b2516243b30e06383d45daed997d9409af',
  cursor: '944c5e3fbaf678b7eb67c66802083977eed40bbf827a9ec1091242bbcb6e96bd',
  'proof-cookie': '0715c88a8f7b6df34aea39ffccaafcf58bb6ad1817501d984e427d16f0f440c5',
  'event-digest': 'eda971b57f35ae6f584fcdf9b0f1154c94fdcd2a128390f551baa783b4695401',
  'enrolment-page': '05438d1d65934f4f4d6645be9567e6ebe523b19dd461b0e9b9cc0246ac768b84',
  'form-answer': '3a917c31f06d909f1af36cfd5be53bb31faf638d98f7f5c930479004a2fad21a',
  'passkey-challenge': '53325c489bf7fb6e70a131292126a3f7b905fd76a7722ce34091a6baabed6196',
  'webauthn-user-handle': '4adad5770b8ec88472e0ef34bd007ad3de0cca18f34f5e7dad801bca998c15b8',
  'email-login': '35263d9ede38d25bb10c976de51e9146abe4923bba91826978a77966e0b41084',
  'email-login-code': 'c141dcafaedcaf09ed0f4d55421baa75f9d92d6a04927e14b5be4e2992b03e97',
  'mailed-code': '78c1cf0369d90c9607c7f7abea0800277d28934aac7f1d9909a455bd573dfc31',
  'signup-token': '2104031b1ade75a20d0bf99c9cb0134e71330214eefd8a4a612b79cc29c4ea3a',
  csrf: '7c37970d9441337219d2c5ef5d04c0917a212302046ddb896c30dc4c79fc7ecb',
  'csrf-binding': 'b5d9056de0b0dd0419e44fb5453dd3a3d99de0fdad5d0ac6548683ee94e14678',
  captcha: 'bd35e5e5d1ffbcbd29d68ab7c4d7f4fac936dc45c2f900c4354323e2d2fcfcd8',
  'account-restore': '77118e578dd1271c15c1cc5129f4c5ff632671b0957506cf57f7d02b044b8d13',
  tasks: '7bcd01506847e701bbab4f58a5f6fe869611feab22e1526ac22e647c0f9ce345',
  device: '92b8d23a5fbc2ec430a7513a6ba7424a06531b195945620450b85af3a3310507',
}
const purposes = Object.keys(pinned) as KeyPurpose[] // the record has every purpose

function bytesOf(purpose: KeyPurpose, of = secret): Buffer {
  return deriveKey(of, purpose).export()
}

/** RFC 5869 with two HMACs: extract under an empty salt (a block of zeros), expand one block of 32 bytes. */
function hkdfByHand(of: string, info: string): Buffer {
  const pseudoRandomKey = createHmac('sha256', Buffer.alloc(32)).update(of, 'utf8').digest()
  return createHmac('sha256', pseudoRandomKey).update(info, 'utf8').update(Buffer.of(1)).digest()
}

describe.each(purposes)('the key for %s', (purpose) => {
  test('is HKDF-SHA256 with empty salt and info doorward/<kind>/v1, byte for byte', () => {
    expect(bytesOf(purpose).toString('hex')).toBe(pinned[purpose])
  })

  test('follows RFC 5869 for a secret outside ASCII too', () => {
    const other = 'Ação-'.repeat(8)
    expect(bytesOf(purpose, other)).toEqual(hkdfByHand(other, `doorward/${purpose}/v1`))
  })

  test('is a secret key object, made for no other purpose', () => {
    expect(deriveKey(secret, purpose).type).toBe('secret')
    const others = purposes.filter((other) => other !== purpose && bytesOf(other).equals(bytesOf(purpose)))
    expect(others).toEqual([])
  })
})

test('a list of secrets is one key of each for every purpose, in its order', () => {
  const keys = deriveKeys([secret, `${secret}2`])
  expect(Object.keys(keys).sort()).toEqual([...purposes].sort())
  for (const purpose of purposes)
    expect(
      keys[purpose].map((key) => key.export()),
      purpose,
    ).toEqual([bytesOf(purpose), bytesOf(purpose, `${secret}2`)])
})
