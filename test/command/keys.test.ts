import { createPrivateKey } from 'node:crypto'
import { expect, test } from 'vitest'
import { readSigningKeys } from '../../src/sessions/access-keys'
import { doorward } from './run-command'

const newKeys = (count: number) => Promise.all(Array.from({ length: count }, async () => JSON.parse((await doorward('keys new')).out)))

test('secret prints 43 base64url characters and a line end, and nothing else', async () => {
  const first = await doorward('secret')

  expect(first).toEqual({ exitCode: 0, out: expect.stringMatching(/^[\w-]{43}\n$/), err: '' })
  expect((await doorward('secret')).out).not.toBe(first.out)
  expect(JSON.parse((await doorward('secret --json')).out)).toEqual({ secret: expect.stringMatching(/^[\w-]{43}$/) })
})

test('secret mfa prints 32 bytes in base64', async () => {
  expect(Buffer.from((await doorward('secret mfa')).out, 'base64')).toHaveLength(32)
})

test.each(['ES256', 'RS256', 'PS256'])('keys new makes a key of %s that a router signs with', async (alg) => {
  const entry = JSON.parse((await doorward(`keys new --alg ${alg}`)).out)

  expect(readSigningKeys([entry])).toMatchObject([{ kid: entry.kid, algorithm: alg }])
})

test('keys list names what signs and what verifies, and never a private key', async () => {
  const keys = await newKeys(2)
  const { out } = await doorward('keys list', { env: { AUTH_JWT_KEYS: JSON.stringify(keys) } })

  expect(out).toBe(`${keys[0].kid}  ES256  signs\n${keys[1].kid}  ES256  verifies\n`)
  expect((await doorward('keys list --json', { env: { AUTH_JWT_KEYS: JSON.stringify(keys) } })).out).not.toContain('PRIVATE')
})

test('keys rotate publishes a key behind the old one, signs with it, and retires the old one', async () => {
  const old = JSON.parse((await doorward('keys new')).out)
  const step = async (name: string, value: string) => {
    const { exitCode, out, err } = await doorward(`keys rotate --step ${name}`, { env: { AUTH_JWT_KEYS: value } })
    expect(exitCode).toBe(0)
    return { value: out, note: err, kids: readSigningKeys(JSON.parse(out)).map(({ kid }) => kid) }
  }
  const published = await step('publish', JSON.stringify([old]))
  const [, added = ''] = published.kids
  const signing = await step('sign', published.value)
  const retired = await step('retire', signing.value)

  expect([published.kids, signing.kids, retired.kids]).toEqual([[old.kid, added], [added, old.kid], [added]])
  expect(published.note).toContain('600 seconds')
  expect(signing.note).toContain('900 seconds')
  expect(createPrivateKey(JSON.parse(retired.value)[0].privateKey).asymmetricKeyType).toBe('ec')
})

test('each step of keys rotate, run twice, does nothing the second time', async () => {
  let value = `[${(await doorward('keys new')).out.trim()}]`
  for (const name of ['publish', 'sign', 'retire']) {
    const first = await doorward(`keys rotate --step ${name}`, { env: { AUTH_JWT_KEYS: value } })
    value = first.out.trim()
    const again = await doorward(`keys rotate --step ${name}`, { env: { AUTH_JWT_KEYS: value } })
    expect([again.exitCode, again.out.trim(), again.err]).toEqual([0, value, expect.stringContaining('nothing to do')])
  }
  expect(readSigningKeys(JSON.parse(value))).toHaveLength(1)
})

test('a rotation that was begun by hand is not turned back: an older key never signs again', async () => {
  const [old, signing] = await newKeys(2)
  const env = {
    AUTH_JWT_KEYS: JSON.stringify([
      { ...signing, kid: '2026-11-02-bb' },
      { ...old, kid: '2026-05-01-aa' },
    ]),
  }
  expect((await doorward('keys rotate --step sign', { env })).err).toContain('nothing to do')
  expect(JSON.parse((await doorward('keys rotate --step publish', { env })).out)).toHaveLength(3)
})

test('the lifetime of access tokens in the environment says when the old key may go', async () => {
  const keys = JSON.stringify(await newKeys(2))
  const { out } = await doorward('keys rotate --step sign --json', { env: { AUTH_JWT_KEYS: keys, AUTH_ACCESS_TOKEN_TTL_SECONDS: '60' } })

  expect(JSON.parse(out)).toMatchObject({ step: 'sign', waitSeconds: 60 })
})

test('a step out of turn is refused with exit 1, and with --json as one document', async () => {
  const one = { AUTH_JWT_KEYS: `[${(await doorward('keys new')).out}]` }

  expect(await doorward('keys rotate --step sign', { env: one })).toMatchObject({
    exitCode: 1,
    out: '',
    err: expect.stringContaining('publish first'),
  })
  expect(JSON.parse((await doorward('keys list --json')).out)).toMatchObject({ error: { code: 'NO_KEYS' } })
})

test('keys that cannot be read are refused, and no part of the value is quoted', async () => {
  const refused = await doorward('keys list', { env: { AUTH_JWT_KEYS: 'hush-hush' } })

  expect(refused.exitCode).toBe(1)
  expect(refused.err).not.toContain('hush')
})

test.each([
  '',
  'nothing',
  'secret other',
  'secret --step sign',
  'keys',
  'keys new --alg HS256',
  'keys rotate',
  'keys new --step sign',
  'secret --wrong',
])('wrong usage is exit 2, with nothing on stdout: %s', async (line) => {
  const keys = JSON.stringify(await newKeys(1))
  expect(await doorward(line, { env: { AUTH_JWT_KEYS: keys } })).toMatchObject({
    exitCode: 2,
    out: '',
    err: expect.stringMatching(/\S/),
  })
})

test('--help is a result', async () => {
  expect(await doorward('--help')).toMatchObject({ exitCode: 0, out: expect.stringContaining('Usage: doorward'), err: '' })
})
