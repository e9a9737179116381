import { createRequire } from 'node:module'
import { expect, test } from 'vitest'

// A file of its own: nothing here may have been loaded by another test.

const { cache } = createRequire(import.meta.url)

/** Which packages of those that not everybody needs are in memory. */
function loaded(): string[] {
  const paths = Object.keys(cache).map((path) => path.replaceAll('\\', '/'))
  const names = ['@zxcvbn-ts/language-common', '@node-rs/argon2', 'argon2', 'bcrypt', 'undici']
  return names.filter((name) => paths.some((path) => path.includes(`/node_modules/${name}/`)))
}

test('each package is loaded by what needs it, none by importing doorward', async () => {
  const { argon2idHasher, createHttpClient } = await import('../../src')
  const { checkPassword } = await import('../../src/passwords/check-password')
  expect(Object.keys(cache).length).toBeGreaterThan(10)
  expect(loaded()).toEqual([])

  const logger = { info: () => {}, warn: () => {}, error: () => {} }
  await checkPassword({ passwordPolicy: {}, logger }, 'tuba-lagoon-9-velvet', { email: 'ada@example.com', name: null })
  expect(loaded()).toEqual(['@zxcvbn-ts/language-common'])

  const hasher = argon2idHasher()
  await hasher.verify('garbage', 'tuba-lagoon-9-velvet')
  expect(loaded()).toEqual(['@zxcvbn-ts/language-common', '@node-rs/argon2'])

  await hasher.verify('$2b$04$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi', 'tuba-lagoon-9-velvet')
  expect(loaded()).toEqual(['@zxcvbn-ts/language-common', '@node-rs/argon2', 'bcrypt'])

  createHttpClient()
  expect(loaded()).toEqual(['@zxcvbn-ts/language-common', '@node-rs/argon2', 'bcrypt', 'undici'])
  // undici of npm would stand behind the host's `fetch` if no agent of Node's own were there before it.
  const dispatcher: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  expect(dispatcher).toBeDefined()
  expect(dispatcher).not.toBeInstanceOf(createRequire(import.meta.url)('undici').Agent)
})
