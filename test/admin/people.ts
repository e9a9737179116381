import type supertest from 'supertest'
import { bearerOf, type LocalHost, type LocalMember, signedIn } from '../local/people'

/** The fields of the default users table. */
export const addUserFields: ReadonlySet<string> = new Set([
  ...['id', 'isActive', 'createdAt', 'updatedAt', 'email', 'hashedPassword', 'isAdmin', 'lastLoginAt', 'name', 'totpSecret'],
  ...['totpEnabledAt', 'totpLastStep', 'emailVerifiedAt', 'activatedAt', 'passwordSetAt'],
])

export type Person = Pick<LocalMember, 'token' | 'userId'>

export function adminOn(host: LocalHost): Promise<LocalMember> {
  return signedIn(host, { isAdmin: true, name: 'An Administrator' })
}

export function read(host: LocalHost, person: Person, path: string): supertest.Test {
  return host.browser().get(`${host.prefix}/admin/users${path}`).set(bearerOf(person))
}

export function patch(host: LocalHost, person: Person, id: string, body: object): supertest.Test {
  return host.browser().patch(`${host.prefix}/admin/users/${id}`).set(bearerOf(person)).send(body)
}

export const actions = ['deactivate', 'activate', 'revoke-sessions', 'reset-mfa'] as const

export function act(host: LocalHost, person: Person, id: string, action: (typeof actions)[number]): supertest.Test {
  return host.browser().post(`${host.prefix}/admin/users/${id}/${action}`).set(bearerOf(person))
}
