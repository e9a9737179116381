import { generateKeyPairSync } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OAuthProviderUnavailableError, OAuthTokenRejectedError } from '../../src/core/errors'
import { createTokenVerifier, type TokenVerifierOptions } from '../../src/providers/token-verifier'
import { answer, type FakeProvider, startFakeProvider } from '../support/fake-provider'

let provider: FakeProvider
let time: number

beforeEach(async () => {
  time = Date.parse('2026-03-01T12:00:00Z')
  provider = await startFakeProvider({ now: () => new Date(time) })
})
afterEach(() => provider.close())

function verifierFor(options: Partial<TokenVerifierOptions> = {}) {
  const now = () => new Date(time)
  return createTokenVerifier({ issuer: provider.issuer, jwksUri: provider.jwksUri, algorithms: ['RS256'], now, ...options })
}

const advance = (seconds: number) => {
  time += seconds * 1000
}
const goodToken = (header: Record<string, unknown> = {}) => provider.signJwt(provider.idTokenClaims(), { header })
const fetches = () => provider.requestsTo('jwks').length
const breakDown = () => provider.on('jwks', answer(503, { error: 'down' }))
const isServed = (verifier: ReturnType<typeof verifierFor>) => verifier.verify(goodToken()).then(Boolean, (error: Error) => error)

/** One whole fetch at a time, although nobody waits for a background one. */
async function settled(count: number): Promise<void> {
  await expect.poll(fetches).toBe(count)
  await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('a set in use', () => {
  test('is read again in the background from 80 % of its lifespan on, once, and nobody waits', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    advance(239)
    await verifier.verify(goodToken())
    expect(fetches()).toBe(1)

    advance(1)
    let hanging: ServerResponse | undefined
    provider.on('jwks', (_request, response) => {
      hanging = response
    })
    expect(await Promise.all(Array.from({ length: 40 }, () => isServed(verifier)))).toEqual(Array(40).fill(true))
    await expect.poll(() => hanging !== undefined).toBe(true)
    expect(fetches()).toBe(2)
    hanging?.destroy()
  })

  test('that is read again in the background serves another whole lifespan', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    advance(240)
    await verifier.verify(goodToken())
    await settled(2)
    breakDown()
    advance(239)
    await verifier.verify(goodToken())
    expect(fetches()).toBe(2)
  })

  test('that nobody uses is not read: there is no timer', async () => {
    const verifier = verifierFor({ lifespanSeconds: 1 })
    await verifier.verify(goodToken())
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(fetches()).toBe(1)
  })
})

describe('a set that cannot be read again', () => {
  test('is asked for again after 1, 2, 4 … 60 seconds, and the last good one serves meanwhile', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    breakDown()
    advance(240)
    let expected = 1
    for (const delay of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
      expect(await isServed(verifier)).toBe(true)
      expected += 1
      await settled(expected)
      for (const seconds of [delay - 0.5, 0]) {
        advance(seconds)
        expect(await isServed(verifier)).toBe(true)
        expect(fetches()).toBe(expected)
      }
      advance(0.5)
    }
    provider.on('jwks', null)
    expect(await isServed(verifier)).toBe(true)
    await settled(expected + 1)
    advance(239)
    expect(await isServed(verifier)).toBe(true)
    expect(fetches()).toBe(expected + 1)
  })

  test.each([
    [undefined, 86_400],
    [7_200, 7_200],
    [0, 300],
  ])('with staleIfErrorSeconds %s it serves for %i seconds since its fetch, and no longer', async (staleIfErrorSeconds, seconds) => {
    const verifier = verifierFor(staleIfErrorSeconds === undefined ? {} : { staleIfErrorSeconds })
    await verifier.verify(goodToken())
    breakDown()
    advance(seconds - 1)
    expect(await isServed(verifier)).toBe(true)
    advance(1)
    expect(await isServed(verifier)).toBeInstanceOf(OAuthProviderUnavailableError)
  })

  test('answers known keys at once while the provider hangs', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    breakDown()
    advance(400)
    await verifier.verify(goodToken())
    advance(60)
    provider.on('jwks', () => undefined)
    const began = performance.now()
    expect(await Promise.all(Array.from({ length: 20 }, () => isServed(verifier)))).toEqual(Array(20).fill(true))
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test('a kid that a later good set does not have is gone at once, also after a stale time', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    breakDown()
    advance(3_600)
    expect(await isServed(verifier)).toBe(true)
    advance(60)
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    provider.on('jwks', answer(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'another' }] }))
    await isServed(verifier) // served, and read again in the background
    await expect.poll(() => isServed(verifier)).toBeInstanceOf(OAuthTokenRejectedError)
  })
})

describe('an unknown kid', () => {
  test('is looked for at once, whatever else caused a read just before, and the next one after 60 seconds', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    provider.on('jwks', answer(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'new' }] }))
    const rotated = provider.signJwt(provider.idTokenClaims(), { key: privateKey, header: { kid: 'new' } })

    await expect(verifier.verify(rotated)).resolves.toBeDefined()
    expect(fetches()).toBe(2)
    for (let index = 0; index < 20; index++) await verifier.verify(goodToken({ kid: `k${index}` })).catch(() => undefined)
    expect(fetches()).toBe(2)
    advance(60)
    for (let index = 0; index < 20; index++) await verifier.verify(goodToken({ kid: `k${index}` })).catch(() => undefined)
    expect(fetches()).toBe(3)
  })

  test('costs a provider that is down the same retries as everything else', async () => {
    const verifier = verifierFor()
    await verifier.verify(goodToken())
    breakDown()
    for (let second = 0; second < 60; second++) {
      for (let index = 0; index < 5; index++)
        await expect(verifier.verify(goodToken({ kid: `k${second}-${index}` }))).rejects.toBeInstanceOf(OAuthProviderUnavailableError)
      advance(1)
    }
    expect(fetches()).toBe(1 + 6)
    expect(await isServed(verifier)).toBe(true)
  })
})
