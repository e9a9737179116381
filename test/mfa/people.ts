import type supertest from 'supertest'
import { createKnexStore } from '../../src'
import { bearerOf, type LocalHost, type LocalMember, type LocalOptions, onLocal, openAs, password, post, signedIn } from '../local/people'
import type { Database } from '../support/databases'
import { authenticator } from './authenticator'

export const mfaSettings = {
  mfaEnabled: true,
  mfaIssuer: 'Example',
  mfaSecretKey: Buffer.from('a key of exactly thirty-two byte').toString('base64'),
}

/** `onLocal`, with the second factor on. */
export function onMfa(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: (options: LocalOptions = {}): Promise<LocalHost> => start({ ...options, settings: { ...mfaSettings, ...options.settings } }),
  }
}

export interface EnrolledMember extends LocalMember {
  app: ReturnType<typeof authenticator>
  secret: string
  recoveryCodes: string[]
}

type Changes = Parameters<typeof signedIn>[1]

/** An active account with `password` and a factor of yesterday (`isYoung`: of now), in a fresh session that showed it. The next fresh code is `app.nextCode()`. */
export async function enrolled(host: LocalHost, changes: Changes = {}, { isYoung = false } = {}): Promise<EnrolledMember> {
  const member = await signedIn(host, changes)
  const { secret, recoveryCodes } = await host.auth.service.enrollTotp(member.userId)
  const app = authenticator(secret, host.clock)
  const confirmed = await host.auth.service.confirmTotp({ userId: member.userId, amr: ['pwd'], code: app.code() })
  if (confirmed.kind !== 'session') throw new Error('confirming ends in a session')
  if (!isYoung) await ageFactor(host, member)
  return { ...member, app, secret, recoveryCodes, ...(await openAs(host, member.userId)) }
}

/** As if the factor had been confirmed a day ago: it proves something. */
export async function ageFactor(host: LocalHost, { email }: Pick<LocalMember, 'email'>): Promise<void> {
  const { users } = createKnexStore({ knex: host.knex })
  const user = await users.findByEmail(email)
  if (!user?.totpEnabledAt) throw new Error('no factor is active')
  await users.update(user.id, { totpEnabledAt: new Date(user.totpEnabledAt.getTime() - 86_400_000) })
}

/** The first step: the challenge of a login by password. */
export async function challengeOf(host: LocalHost, { email }: Pick<LocalMember, 'email'>): Promise<string> {
  const login = await host.auth.service.logIn({ email, password })
  if (login.kind !== 'challenge') throw new Error('a login of an enrolled account is a challenge')
  return login.mfaToken
}

export function verify(host: LocalHost, mfaToken: unknown, code: unknown): supertest.Test {
  return post(host, '/mfa/verify', { mfa_token: mfaToken, code })
}

/** Signed in anew with a code nobody has used: an access token of after everything that was before. */
export async function signedInAgain(host: LocalHost, person: EnrolledMember): Promise<EnrolledMember> {
  const { status, body, text } = await verify(host, await challengeOf(host, person), person.app.nextCode())
  if (status !== 200) throw new Error(`verify answered ${status}: ${text}`)
  return { ...person, token: body.access_token, refreshToken: body.refresh_token }
}

/** A body's code, or the status where there is none. */
export const outcome = ({ status, body }: supertest.Response): unknown => body?.code ?? status

export const wrongCode = [401, 'invalid MFA code', 'MFA_CODE_INVALID'] as const
export const refusal = ({ status, body }: supertest.Response): unknown[] => [status, body.detail, body.code]

/** What the routes that take a code are asked with, by a signed-in person. */
export function guess(host: LocalHost, path: CodeRoute, person: Pick<LocalMember, 'token'>, code: unknown): supertest.Test {
  return post(host, path, { ...extras[path], code }, bearerOf(person))
}

export type CodeRoute = keyof typeof extras

const extras = {
  '/mfa/disable': { password },
  '/mfa/recovery-codes': {},
  '/password-change/mfa': { new_password: 'nine green bicycles uphill' },
} as const

export const codeRoutes = Object.keys(extras) as CodeRoute[]
