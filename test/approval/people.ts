import { createKnexStore } from '../../src'
import { type LocalHost, type LocalMember, onLocal, pending, post, userOf } from '../local/people'
import type { Database } from '../support/databases'

export const approving = { signupMode: 'approve' } as const

/** Hosts where an administrator approves each account. */
export function onApproval(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: ({ settings, ...more }: Parameters<typeof start>[0] = {}) => start({ ...more, settings: { ...approving, ...settings } }),
  }
}

/** Signed up, with a verified address, and on the list. */
export async function applicant(host: LocalHost, body: object = {}): Promise<{ email: string; userId: string }> {
  const { link, ...who } = await pending(host, body)
  const { status } = await post(host, '/activate', { token: link, password: 'a quiet harbour in winter' })
  if (status !== 403) throw new Error(`/activate answered ${status}`)
  return who
}

/** As if an account with every credential had never been approved. */
export async function putOnList(host: LocalHost, { userId }: Pick<LocalMember, 'userId'>): Promise<void> {
  const { sessions, users } = createKnexStore({ knex: host.knex })
  await users.update(userId, { isActive: false, activatedAt: host.clock.now(), approvalRequestedAt: host.clock.now(), lastLoginAt: null })
  await sessions.revokeForUser(userId, host.clock.now())
}

/** What a login would change. */
export async function rowsOf(host: LocalHost, { email, userId }: Pick<LocalMember, 'email' | 'userId'>) {
  const sessions = await host.knex('auth_sessions').where({ user_id: userId }).orderBy('id')
  const { isActive, lastLoginAt, approvalRequestedAt, activatedAt, hashedPassword } = await userOf(host, email)
  return { sessions, isActive, lastLoginAt, approvalRequestedAt, activatedAt, hashedPassword }
}

export const codeOf = ({ status, body }: { status: number; body?: { code?: unknown } }) => [status, body?.code]
export const isPending = [403, 'APPROVAL_PENDING'] as const
