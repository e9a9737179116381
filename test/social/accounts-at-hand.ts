import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { createKnexStore } from '../../src'
import type { IdentityRecord, UserRecord } from '../../src/store/auth-store'

export const someTime = new Date('2026-01-02T03:04:05.678Z')

/** A local account that was there before the login under test. */
export function userRecord(changes: Partial<UserRecord> = {}): UserRecord {
  return {
    id: randomUUID(),
    isActive: true,
    createdAt: someTime,
    updatedAt: someTime,
    email: `${randomUUID()}@example.test`,
    hashedPassword: 'test$old',
    isAdmin: false,
    lastLoginAt: null,
    name: 'There Before',
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: someTime,
    activatedAt: someTime,
    passwordSetAt: someTime,
    ...changes,
  }
}

export async function addUser(knex: Knex, changes: Partial<UserRecord> = {}): Promise<UserRecord> {
  const { id: _made, ...user } = userRecord(changes)
  return createKnexStore({ knex }).users.insert(user)
}

export async function addIdentity(knex: Knex, userId: string, changes: Partial<IdentityRecord> = {}): Promise<IdentityRecord> {
  const unlinked = { provider: 'corp', subject: randomUUID(), email: null, emailVerified: null, name: null, picture: null }
  return createKnexStore({ knex }).identities.insert({ ...unlinked, userId, createdAt: someTime, lastLoginAt: someTime, ...changes })
}

export async function userById(knex: Knex, id: string): Promise<UserRecord> {
  const user = await createKnexStore({ knex }).users.find(id)
  if (!user) throw new Error(`no user ${id}`)
  return user
}

export function userByEmail(knex: Knex, email: string): Promise<UserRecord | null> {
  return createKnexStore({ knex }).users.findByEmail(email)
}

/** Rows of every table of ours, counted: what a refused login must not change. */
export async function rowCounts(knex: Knex): Promise<Record<string, number>> {
  const tables = ['auth_users', 'auth_identities', 'auth_user_tokens', 'auth_recovery_codes', 'auth_sessions']
  const counts = await Promise.all(tables.map(async (table) => [table, Number((await knex(table).count({ n: '*' }))[0]?.['n'])] as const))
  return Object.fromEntries(counts)
}
