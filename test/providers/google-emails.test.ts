import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError, GoogleClient } from '../../src'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider'

const redirectUri = 'https://app.example.com/auth/oauth/google/callback'
let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

async function logIn(profile: Record<string, unknown>, options: object = { authoritativeEmails: true }) {
  const client = new GoogleClient(provider.googleOptions(options))
  const all = { email_verified: true, ...profile }
  return client.fetchUser(await client.exchangeCode({ code: provider.issueCode({ profile: all }), redirectUri }))
}

describe('GoogleClient with authoritativeEmails', () => {
  test.each<[string, Record<string, unknown>, boolean | null]>([
    ['at gmail.com', { email: 'ana@gmail.com' }, true],
    ['at gmail.com in capitals', { email: 'Ana@GMail.com' }, true],
    ['at googlemail.com', { email: 'ana@googlemail.com' }, true],
    ['of the Workspace domain', { email: 'ana@example.com', hd: 'example.com' }, true],
    ['of the Workspace domain, spelled otherwise', { email: 'ana@Example.com', hd: 'example.COM' }, true],
    ['of another domain than the Workspace’s', { email: 'ana@example.com', hd: 'example.org' }, null],
    ['of a subdomain', { email: 'ana@mail.example.com', hd: 'example.com' }, null],
    ['of a domain that ends like it', { email: 'ana@evilexample.com', hd: 'example.com' }, null],
    ['of no Workspace', { email: 'ana@example.com' }, null],
    ['with an empty Workspace', { email: 'ana@', hd: '' }, null],
    ['whose Workspace is no text', { email: 'ana@example.com', hd: ['example.com'] }, null],
    ['with gmail.com before the @', { email: '"ana@gmail.com"@example.com' }, null],
    ['at gmail.com, which Google did not verify', { email: 'ana@gmail.com', email_verified: false }, false],
    ['at gmail.com, of which Google says nothing', { email: 'ana@gmail.com', email_verified: null }, null],
  ])('an address %s', async (_case, profile, verified) => {
    expect((await logIn(profile)).emailVerified).toBe(verified)
  })

  test('is off unless asked for: then Google’s word stands', async () => {
    for (const options of [{}, { authoritativeEmails: false }]) {
      expect((await logIn({ email: 'ana@example.com' }, options)).emailVerified).toBe(true)
    }
  })

  test('must be true or false', () => {
    expect(() => new GoogleClient(provider.googleOptions({ authoritativeEmails: 'yes' as never }))).toThrow(ConfigurationError)
  })
})
