import type supertest from 'supertest'
import { dialectOf } from '../../src/store/knex/dialect-of'
import { type VirtualAuthenticator, type VirtualAuthenticatorOptions, virtualAuthenticator } from '../../src/testing'
import { bearerOf, type LocalHost, type LocalMember, type LocalOptions, onLocal, openAs, post, signedIn } from '../local/people'
import { type EnrolledMember, enrolled, mfaSettings } from '../mfa/people'
import { baseUrl } from '../support/app'
import type { Database } from '../support/databases'

export const passkeySettings = { passkeysEnabled: true, webauthnRpName: 'Example' }
export const withFactors = { ...passkeySettings, ...mfaSettings }
export const dayMs = 86_400_000

/** `onLocal`, with passkeys on. */
export function onPasskeys(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: (options: LocalOptions = {}): Promise<LocalHost> => start({ ...options, settings: { ...passkeySettings, ...options.settings } }),
  }
}

/** An authenticator on a page of the tests' host. */
export function newAuthenticator(options: Partial<VirtualAuthenticatorOptions> = {}): VirtualAuthenticator {
  return virtualAuthenticator({ origin: baseUrl, ...options })
}

export type SignedIn = Pick<LocalMember, 'token'>

/** Begins and finishes a registration. */
export async function register(
  host: LocalHost,
  person: SignedIn,
  authenticator: VirtualAuthenticator,
  body: object = {},
): Promise<supertest.Response> {
  const options = await registrationOptions(host, person)
  return post(
    host,
    '/passkeys/register',
    { credential: authenticator.create(options), challenge_token: options.challenge_token, ...body },
    bearerOf(person),
  )
}

export async function registrationOptions(host: LocalHost, person: SignedIn) {
  const { status, body, text } = await post(host, '/passkeys/register/options', {}, bearerOf(person))
  if (status !== 200) throw new Error(`/passkeys/register/options answered ${status}: ${text}`)
  return body
}

export interface PasskeyOwner extends LocalMember {
  authenticator: VirtualAuthenticator
  passkeyId: string
}

/** Signed in, with a passkey of the day before yesterday (`isYoung`: of now) and a proven address. */
export async function passkeyOwner(
  host: LocalHost,
  {
    isYoung = false,
    changes = {},
    ...options
  }: Partial<VirtualAuthenticatorOptions> & { isYoung?: boolean; changes?: Parameters<typeof signedIn>[1] } = {},
): Promise<PasskeyOwner> {
  const person = await signedIn(host, changes)
  const authenticator = newAuthenticator(options)
  const session = await openAs(host, person.userId)
  const begun = await host.auth.service.passkeyRegistrationOptions({ userId: person.userId })
  const passkey = await host.auth.service.registerPasskey({
    userId: person.userId,
    credential: authenticator.create(begun.options),
    challenge: begun.challenge,
  })
  if (!isYoung) await age(host, passkey.id)
  return { ...person, ...session, authenticator, passkeyId: passkey.id }
}

/** As if the passkey had been added two days ago, or so many. */
export async function age(host: LocalHost, passkeyId: string, days = 2): Promise<void> {
  const at = new Date(host.clock.now().getTime() - days * dayMs)
  await host
    .knex('auth_passkeys')
    .where({ id: passkeyId })
    .update({ created_at: dialectOf(host.knex).instantToColumn(at) })
}

export async function loginOptions(host: LocalHost) {
  return (await post(host, '/passkeys/login/options')).body
}

/** The whole login, by JSON. */
export async function logIn(host: LocalHost, authenticator: VirtualAuthenticator, path = '/passkeys/login'): Promise<supertest.Response> {
  const options = await loginOptions(host)
  return post(host, path, { credential: authenticator.get(options), challenge_token: options.challenge_token })
}

export const rejected = [401, 'PASSKEY_REJECTED'] as const
export const codeOf = ({ status, body }: supertest.Response): unknown[] => [status, body?.code]

/** Every row that a passkey can change. */
export async function rowsOf({ knex }: Pick<LocalHost, 'knex'>, userId: string): Promise<unknown> {
  const [passkeys, tokens, sessions, users] = await Promise.all([
    knex('auth_passkeys').where({ user_id: userId }).orderBy('id'),
    knex('auth_user_tokens').where({ user_id: userId }).orderBy('id'),
    knex('auth_sessions').where({ user_id: userId }).orderBy('id'),
    knex('auth_users').where({ id: userId }),
  ])
  return { passkeys, tokens, sessions, users }
}

/** As `passkeyOwner`, and with a second factor of yesterday. */
export async function ownerWithFactor(
  host: LocalHost,
  options: Partial<VirtualAuthenticatorOptions> = {},
): Promise<PasskeyOwner & EnrolledMember> {
  const [person, authenticator] = [await enrolled(host), newAuthenticator(options)]
  const passkeyId = await addPasskey(host, person, authenticator)
  return { ...person, authenticator, passkeyId }
}

/** One of the day before yesterday. */
async function addPasskey(host: LocalHost, { userId }: Pick<LocalMember, 'userId'>, authenticator: VirtualAuthenticator): Promise<string> {
  const begun = await host.auth.service.passkeyRegistrationOptions({ userId })
  const { id } = await host.auth.service.registerPasskey({
    userId,
    credential: authenticator.create(begun.options),
    challenge: begun.challenge,
  })
  await age(host, id)
  return id
}

/** What an authenticator answers to the options of a route: the body's two fields. */
export async function presented(
  host: LocalHost,
  authenticator: VirtualAuthenticator,
  { path, body = {}, headers = {}, lies = {} }: Shown,
): Promise<{ credential: object; challenge_token: string }> {
  const options = await post(host, path, body, headers)
  if (options.status !== 200) throw new Error(`${path} answered ${options.status}: ${options.text}`)
  return { credential: authenticator.get(options.body, lies), challenge_token: options.body.challenge_token }
}

interface Shown {
  path: string
  body?: object
  headers?: Record<string, string>
  lies?: Parameters<VirtualAuthenticator['get']>[1]
}
