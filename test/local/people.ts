import { createHash } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type supertest from 'supertest'
import { ConfigurationError, createKnexStore } from '../../src'
import type { AnyLoginResult } from '../../src/sessions/login'
import type { UserRecord, UserTokenPurpose } from '../../src/store/auth-store'
import { loginAs, openSessionAs } from '../../src/testing'
import { addUser } from '../social/accounts-at-hand'
import { onDatabase } from '../social/redirect-steps'
import type { Mounted, MountOptions } from '../support/app'
import type { Database } from '../support/databases'
import { linkTemplates, type Mailbox, mailbox, tokenOf } from '../support/mailbox'

export const password = 'a quiet harbour in winter'
export const otherPassword = 'nine green bicycles uphill'

let people = 0

/** Of somebody no other test has met. */
export function newAddress(): string {
  people += 1
  return `local-${people}-${process.pid}@example.test`
}

export interface LocalHost extends Mounted {
  mails: Mailbox
}

export type LocalOptions = Omit<MountOptions, 'knex'> & {
  /** `presented`: no mailer, so that links stand in the bodies. Default `mailed`. */
  links?: 'mailed' | 'shown'
}

/** One database for a file's tests, which look at people of their own; every host has its own counters and mailbox. */
export function onLocal(database: Database) {
  const { start, opened } = onDatabase(database, { memory: true })
  return {
    opened,
    async start({ links = 'mailed', settings, options, ...rest }: LocalOptions = {}): Promise<LocalHost> {
      const mails = mailbox()
      const mailer = links === 'mailed' ? { mailer: mails } : {}
      const host = await start({ ...rest, settings: { ...linkTemplates, ...settings }, options: { ...mailer, ...options } })
      return Object.assign(host, { mails })
    },
  }
}

export function post(host: Mounted, path: string, body?: object, headers: Record<string, string> = {}): supertest.Test {
  const request = host.browser().post(`${host.prefix}${path}`).set(headers)
  return body === undefined ? request : request.send(body)
}

export function bearerOf({ token }: { token: string }): Record<string, string> {
  return { Authorization: `Bearer ${token}` }
}

export interface LocalMember {
  email: string
  userId: string
  token: string
  refreshToken: string
}

/** An active account with `password`, signed in by it. */
export async function signedIn(host: Mounted, changes: Partial<UserRecord> = {}): Promise<LocalMember> {
  const { email, id } = await addUser(host.knex, {
    email: newAddress(),
    hashedPassword: await host.hasher.hash(password),
    ...changes,
  })
  const login: AnyLoginResult = await host.auth.service.logIn({ email, password })
  if (login.kind !== 'session') throw new Error('no second factor was enrolled')
  return { email, userId: id, ...credentialsOf(login) }
}

/** A session of the delivery, without its password or factor. */
export async function openAs(host: Mounted, userId: string): Promise<Pick<LocalMember, 'token' | 'refreshToken'>> {
  try {
    return credentialsOf(await loginAs(host.auth, { id: userId }))
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error // delivery `session` has no tokens
    const { cookies } = await openSessionAs(host.auth, { id: userId })
    return { token: decodeURIComponent(cookies.cookie.split('=')[1] ?? ''), refreshToken: '' }
  }
}

/** In delivery `session` the cookie's value stands in the place of the access token, and there is no refresh token. */
export function credentialsOf(session: { accessToken: string; refreshToken: string } | { sessionToken: string }) {
  return 'sessionToken' in session
    ? { token: session.sessionToken, refreshToken: '' }
    : { token: session.accessToken, refreshToken: session.refreshToken }
}

/** Signed up through the route, not activated; with the token of the mailed link. */
export async function pending(host: LocalHost, body: object = {}): Promise<{ email: string; userId: string; link: string }> {
  const email = newAddress()
  const { status, text } = await post(host, '/signup', { email, password, ...body })
  if (status !== 201) throw new Error(`signup answered ${status}: ${text}`)
  const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
  return { email, userId: (await userOf(host, email)).id, link }
}

/** The token of a reset link, mailed. */
export async function resetLink(host: LocalHost, email: string): Promise<string> {
  await post(host, '/password-reset/request', { email })
  return tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
}

export async function userOf({ knex }: Pick<Mounted, 'knex'>, email: string): Promise<UserRecord> {
  const user = await createKnexStore({ knex }).users.findByEmail(email)
  if (!user) throw new Error('no such user')
  return user
}

export interface TokenRow {
  token_hash: string
  purpose: UserTokenPurpose
  isUsed: boolean
}

/** Every one-shot token of a user, as the table has it. */
export async function tokenRows({ knex }: Pick<Mounted, 'knex'>, userId: string): Promise<TokenRow[]> {
  const rows = await knex('auth_user_tokens').where({ user_id: userId }).orderBy('purpose').select('token_hash', 'purpose', 'used_at')
  return rows.map(({ token_hash, purpose, used_at }) => ({ token_hash, purpose, isUsed: used_at !== null }))
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export function amrOf(accessToken: string): unknown {
  return (jwt.decode(accessToken) as jwt.JwtPayload)['amr'] // issued just now
}

/** Whether the session this refresh token stands for is alive; spends it. */
export async function isAlive(host: Mounted, refreshToken: string): Promise<boolean> {
  return (await post(host, '/refresh', { refresh_token: refreshToken })).status === 200
}

/** Whatever was started before has had its time: somebody else's mail, asked for afterwards, has come, and the database rests. */
export async function settled(host: LocalHost): Promise<void> {
  const { email } = await addUser(host.knex, { email: newAddress() })
  await post(host, '/password-reset/request', { email })
  await host.mails.next({ kind: 'password_reset', to: email })
  const { pool } = host.knex.client as { pool: { numUsed(): number; numPendingAcquires(): number } }
  for (let quiet = 0; quiet < 6; ) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    quiet = pool.numUsed() + pool.numPendingAcquires() === 0 ? quiet + 1 : 0
  }
}

/** Kinds of the mails that went to an address. */
export function mailsTo(host: LocalHost, email: string): string[] {
  return host.mails.mails.filter(({ to }) => to === email).map(({ kind }) => kind)
}
