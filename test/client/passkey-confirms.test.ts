import { afterEach, expect, test, vi } from 'vitest'
import { createAuthClient } from '../../src/client/client'

afterEach(() => vi.unstubAllGlobals())

const credential = (id: string) => ({
  id,
  type: 'public-key',
  rawId: new ArrayBuffer(1),
  response: {},
  getClientExtensionResults: () => ({}),
})

/** What the client sends, by the route. */
function sentBy(answers: Readonly<Record<string, object>>) {
  const sent: [string, Record<string, unknown>][] = []
  vi.stubGlobal('navigator', { credentials: { get: async () => credential('old'), create: async () => credential('new') } })
  vi.stubGlobal('fetch', async (input: string | Request, { body = '{}' }: { body?: string } = {}) => {
    const { pathname } = new URL(typeof input === 'string' ? input : input.url)
    sent.push([pathname, JSON.parse(body)])
    return Response.json(answers[pathname] ?? { user: null, delivery: 'cookie' })
  })
  return sent
}

const auth = () => createAuthClient({ baseUrl: 'https://app.example.test/auth', delivery: 'cookie' })
const options = (name: string) => ({ challenge: 'AA', challenge_token: name })

test('passkeys.register({ passkey: true }) confirms with an old passkey, at the options alone', async () => {
  const sent = sentBy({
    '/auth/reauthenticate/passkey/options': options('confirming'),
    '/auth/passkeys/register/options': { ...options('making'), user: { id: 'AA' } },
    '/auth/passkeys/register': { id: '1' },
  })
  await auth().passkeys.register({ passkey: true, name: 'Laptop' })
  const posted = sent.filter(([path]) => path.includes('passkey'))
  expect(posted.map(([path]) => path)).toEqual([
    '/auth/reauthenticate/passkey/options',
    '/auth/passkeys/register/options',
    '/auth/passkeys/register',
  ])
  expect(posted[1]?.[1]).toMatchObject({ credential: { id: 'old' }, challenge_token: 'confirming' })
  expect(posted[2]?.[1]).toMatchObject({ credential: { id: 'new' }, challenge_token: 'making', name: 'Laptop' })
})

test('passkeys.register({ code }) sends the code to the options alone', async () => {
  const sent = sentBy({
    '/auth/passkeys/register/options': { ...options('making'), user: { id: 'AA' } },
    '/auth/passkeys/register': { id: '1' },
  })
  await auth().passkeys.register({ code: '123456', name: 'Laptop' })
  const posted = sent.filter(([path]) => path.includes('passkeys'))
  expect(posted.map(([, body]) => Object.keys(body))).toEqual([['code'], ['name', 'credential', 'challenge_token']])
})

test('secondFactor.verify({ passkey: true, trust_device: true }) sends the wish with the answer, and tells that the browser is trusted', async () => {
  const sent = sentBy({
    '/auth/login': { user_id: '1', mfa_required: true, mfa_token: 'step', access_token: null, refresh_token: null },
    '/auth/mfa/passkey/options': options('step'),
    '/auth/mfa/verify': {
      user_id: '1',
      mfa_required: false,
      mfa_token: null,
      access_token: null,
      refresh_token: null,
      device_trusted: true,
    },
  })
  const client = auth()
  await client.logIn({ email: 'ana@example.test', password: 'a long password' })
  const result = await client.secondFactor.verify({ passkey: true, trust_device: true })
  expect(result).toMatchObject({ kind: 'session', device_trusted: true })
  expect(sent.find(([path]) => path === '/auth/mfa/verify')?.[1]).toMatchObject({
    mfa_token: 'step',
    trust_device: true,
    challenge_token: 'step',
  })
  expect(sent.find(([path]) => path === '/auth/mfa/passkey/options')?.[1]).toEqual({ mfa_token: 'step' })
})
