import type supertest from 'supertest'
import { type LoadOperations, OPERATIONS } from '../../src/admin/operations/operations-key'
import { bearerOf, type LocalHost, type LocalMember, onLocal, password, post } from '../local/people'
import type { Database } from '../support/databases'
import { tokenOf } from '../support/mailbox'

export const dayMs = 86_400_000
export const soft = { accountDeletion: 'soft' } as const
export const immediate = { accountDeletion: 'immediate' } as const

/** Hosts whose people can delete their accounts; `soft` unless the settings say otherwise. */
export function onDeletion(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, ...more }: Parameters<typeof start>[0] = {}) => start({ ...more, settings: { ...soft, ...settings } }),
  }
}

export function askDeletion(host: LocalHost, person: Pick<LocalMember, 'token'>, body: object = {}): supertest.Test {
  return post(host, '/account/delete', body, bearerOf(person))
}

/** Closes the account, and returns the token of the mail. */
export async function leave(host: LocalHost, person: LocalMember, body: object = {}): Promise<string> {
  const { status, text } = await askDeletion(host, person, body)
  if (status !== 202) throw new Error(`/account/delete answered ${status}: ${text}`)
  return tokenOf(await host.mails.next({ kind: 'account_deletion', to: person.email }))
}

/** The token in the answer to a right login. */
export async function restoreTokenOf(host: LocalHost, { email }: Pick<LocalMember, 'email'>): Promise<string> {
  const { status, body } = await post(host, '/login', { email, password })
  if (status !== 403 || body.code !== 'DELETION_PENDING') throw new Error(`/login answered ${status} ${body.code}`)
  return body.details.restore_token
}

export const restore = (host: LocalHost, token: unknown) => post(host, '/account/restore', { token })
export const codeOf = ({ status, body }: { status: number; body?: { code?: unknown } }) => [status, body?.code]
export const isLeaving = [403, 'DELETION_PENDING'] as const

export async function isGone({ knex }: LocalHost, userId: string): Promise<boolean> {
  return (await knex('auth_users').where({ id: userId }).first()) === undefined
}

/** What happened to accounts, in order. */
export function tell(host: LocalHost): unknown[][] {
  const told: unknown[][] = []
  const names = ['login', 'activation', 'account.deactivated', 'undo.used', 'undo.conflict'] as const
  const own = ['account.deletion_requested', 'account.deletion_cancelled', 'account.deleted'] as const
  for (const name of [...names, ...own]) host.auth.events.on(name, (payload) => told.push([name, payload]))
  return told
}

/** As the command and the timer do it. */
export async function purge({ auth }: LocalHost): Promise<Record<string, number>> {
  const load = (auth as unknown as { [OPERATIONS]: LoadOperations })[OPERATIONS]
  return (await load()).purge()
}
