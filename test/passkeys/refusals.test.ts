import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { storedId } from '../../src/passkeys/webauthn/read-credential'
import { bearerOf, type LocalHost, post, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { newAuthenticator, onPasskeys, passkeyOwner, register, registrationOptions } from './people'

/** Section 25.7, rule 6: why a passkey was refused is in the log and in doctor, and never in the response. */

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPasskeys(database)

const begin = () => start({ options: { throttle: { routes: false, login: false } } })

async function told(host: LocalHost) {
  const lines = host.logs.entries.filter(({ message }) => message === 'doorward: a passkey was refused')
  const { findings } = await host.auth.doctor()
  return {
    lines: lines.map(({ fields }) => fields),
    findings: findings.filter(({ check }) => check === 'seen-in-requests').map(({ what }) => what),
  }
}

const lies = [
  ['on another origin', { origin: 'https://www.app.example.test' }, /origin https:\/\/www\.app\.example\.test.*webauthnOrigins/],
  ['of another domain', { rpId: 'example.org' }, /webauthnRpId/],
  ['without user verification', { isUserVerified: false }, /did not verify its user/],
  ['for another challenge', { challenge: 'AAAA' }, /challenge is not the one/],
  ['in a frame of another site', { crossOrigin: true }, /frame of another site/],
] as const

test.each(lies)('a passkey %s is refused, and the log and doctor say why', async (_what, lie, reason) => {
  const host = await begin()
  const person = await signedIn(host)
  const { challenge_token, ...options } = await registrationOptions(host, person)
  const credential = newAuthenticator().create(options, lie)
  const registered = await post(host, '/passkeys/register', { credential, challenge_token }, bearerOf(person))
  expect([registered.status, registered.body.code, registered.body.details]).toEqual([422, 'PASSKEY_INVALID', {}])

  const owner = await passkeyOwner(host)
  const begun = (await post(host, '/passkeys/login/options', {})).body
  const assertion = owner.authenticator.get(begun, lie)
  const login = await post(host, '/passkeys/login', { credential: assertion, challenge_token: begun.challenge_token })
  expect([login.status, login.body.code, login.body.details]).toEqual([401, 'PASSKEY_REJECTED', {}])

  const { lines, findings } = await told(host)
  const why = expect.stringMatching(reason)
  expect(lines).toEqual([
    { ceremony: 'register', reason: why },
    { ceremony: 'login', reason: why },
  ])
  expect(findings).toEqual([why, why])
})

test('a passkey that changed its backup-eligible flag is refused, and the log and doctor say what the person must do', async () => {
  const host = await begin()
  const owner = await passkeyOwner(host)
  const begun = (await post(host, '/passkeys/login/options', {})).body
  const credential = owner.authenticator.get(begun, { isBackupEligible: false, isBackedUp: false })
  expect((await post(host, '/passkeys/login', { credential, challenge_token: begun.challenge_token })).status).toBe(401)
  const { lines, findings } = await told(host)
  for (const sentence of [JSON.stringify(lines), findings.join()]) expect(sentence).toMatch(/BE flag.*remove this passkey.*add it again/)
})

test('an expired challenge and an unknown passkey are told apart in the log only', async () => {
  const host = await begin()
  const owner = await passkeyOwner(host)
  const begun = (await post(host, '/passkeys/login/options', {})).body
  const known = owner.authenticator.get(begun)
  host.clock.advance(901)
  const late = await post(host, '/passkeys/login', { credential: known, challenge_token: begun.challenge_token })
  await host.knex('auth_passkeys').where({ id: owner.passkeyId }).delete()
  const again = (await post(host, '/passkeys/login/options', {})).body
  const gone = await post(host, '/passkeys/login', { credential: owner.authenticator.get(again), challenge_token: again.challenge_token })
  expect(late.body).toEqual(gone.body)
  expect((await told(host)).lines).toEqual([
    { ceremony: 'login', reason: expect.stringContaining('the challenge has expired') },
    { ceremony: 'login', reason: expect.stringContaining('no account has this passkey') },
  ])
})

test('an empty user handle counts as none', async () => {
  const host = await begin()
  const owner = await passkeyOwner(host)
  const attempt = async (userHandle: string | null) => {
    const begun = (await post(host, '/reauthenticate/passkey/options', {}, bearerOf(owner))).body
    const credential = owner.authenticator.get(begun, { userHandle })
    return (await post(host, '/reauthenticate', { credential, challenge_token: begun.challenge_token }, bearerOf(owner))).status
  }
  expect([await attempt(null), await attempt('')]).toEqual([200, 200])
  // A login has no account to compare with, so it needs the handle.
  const begun = (await post(host, '/passkeys/login/options', {})).body
  const credential = owner.authenticator.get(begun, { userHandle: '' })
  expect((await post(host, '/passkeys/login', { credential, challenge_token: begun.challenge_token })).status).toBe(401)
})

test('the sign-in page says where its script renews the options, and its challenge outlives a sleeping machine', async () => {
  const host = await start({ settings: { pagesEnabled: true, tokenDelivery: 'session', publicUrl: 'https://app.example.test' } })
  const owner = await passkeyOwner(host)
  const page = (await host.browser().get('/auth/login')).text
  const form = /<form[^>]*data-passkey="get"[\s\S]*?<\/form>/.exec(page)?.[0] ?? ''
  expect(form).toContain('data-renew="/auth/passkeys/login/options"')
  const options = JSON.parse((/data-options="([^"]*)"/.exec(form)?.[1] ?? '').replaceAll('&quot;', '"'))
  expect(options.timeout).toBe(900_000)
  const token = /name="challenge_token" value="([^"]*)"/.exec(form)?.[1] ?? ''
  const credential = JSON.stringify(owner.authenticator.get(options))
  host.clock.advance(3_600)
  const sent = await host
    .browser()
    .post('/auth/passkeys/login')
    .type('form')
    .set({ Origin: 'https://app.example.test', 'Sec-Fetch-Site': 'same-origin' })
    .send({ credential, challenge_token: token })
  expect(sent.status).toBe(303)
})

test('an id that the column does not take is stored by a hash that is no id', () => {
  const ids = [512, 525, 526, 1023].map((bytes) => randomBytes(bytes).toString('base64url'))
  expect(ids.map((id) => storedId(id) === id)).toEqual([true, true, false, false])
  for (const id of ids) expect(storedId(id).length).toBeLessThanOrEqual(700)
  expect(storedId(ids[3] ?? '')).toMatch(/^sha256:[\w-]{43}$/)
})

test('a registration tells no reason to the client', async () => {
  const host = await begin()
  const person = await signedIn(host)
  expect((await register(host, person, newAuthenticator({ origin: 'https://evil.example' }))).text).not.toContain('origin')
})
