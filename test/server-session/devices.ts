import supertest from 'supertest'
import { createKnexStore } from '../../src'
import type { UserRecord } from '../../src/store/auth-store'
import { newAddress, password, sha256 } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { cookieAttributes, cookiePair, type HttpResponse } from '../social/redirect-steps'
import type { Mounted } from '../support/app'

/** A browser that is signed in: it knows its cookie, and no test helper keeps one behind its back. */
export interface Device {
  userId: string
  email: string
  /** `name=value` */
  cookie: string
  token: string
}

type Headers = Record<string, string>

/** `Cookie` is exactly what is given. */
export function ask(host: Mounted, method: 'get' | 'post' | 'delete', path: string, headers: Headers = {}, body?: object): supertest.Test {
  const request = supertest(host.app)[method](`${host.prefix}${path}`).set(headers)
  return body === undefined ? request : request.send(body)
}

export function by(device: Pick<Device, 'cookie'>): Headers {
  return { Cookie: device.cookie }
}

/** An active account with `password`. */
export async function member(host: Mounted, changes: Partial<UserRecord> = {}): Promise<{ userId: string; email: string }> {
  const { id, email } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password), ...changes })
  return { userId: id, email }
}

export function logIn(host: Mounted, { email }: { email: string }, headers: Headers = {}, path = '/session/login'): supertest.Test {
  return ask(host, 'post', path, headers, { email, password })
}

/** Somebody signs in on another device, or with nobody given, somebody new. */
export async function device(
  host: Mounted,
  person?: { email: string; userId: string },
  headers: Headers = {},
  path = '/session/login',
): Promise<Device> {
  const someone = person ?? (await member(host))
  const response = await logIn(host, someone, headers, path)
  if (response.status !== 200) throw new Error(`login answered ${response.status}: ${response.text}`)
  return { ...someone, ...sessionCookie(response) }
}

export function sessionCookie(response: HttpResponse, name = 'auth_session'): { cookie: string; token: string } {
  const cookie = cookiePair(response, name)
  if (cookie === null) throw new Error('the answer sets no session cookie')
  return { cookie, token: cookie.slice(name.length + 1) }
}

export async function isIn(host: Mounted, someone: Pick<Device, 'cookie'>): Promise<boolean> {
  const { status, body, headers } = await ask(host, 'get', '/session/me', by(someone))
  if (status === 200) return true
  if (status !== 401 || body.code !== 'UNAUTHORIZED' || 'set-cookie' in headers) throw new Error(`me answered ${status}`)
  return false
}

/** Rows of a user's living server-side sessions, as the table has them. */
export async function rowsOf(host: Mounted, userId: string) {
  const rows = await createKnexStore({ knex: host.knex }).sessions.listForUser(userId, host.clock.now())
  return rows.filter(({ kind }) => kind === 'session')
}

export async function idOf(host: Mounted, { userId, token }: Device): Promise<string> {
  const row = (await rowsOf(host, userId)).find(({ tokenHash }) => tokenHash === sha256(token))
  if (!row) throw new Error('no such session')
  return row.id
}

export const attributesOf = (response: HttpResponse) => cookieAttributes(response, 'auth_session')
