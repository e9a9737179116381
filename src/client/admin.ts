import type { AuthClient } from './client.js'
import type { AdminOperations } from './operations.js'
import { type Call, operationsOf } from './table.js'

/** As the table of the client. */
export const adminTable = {
  '': `list GET/admin/users,get GET/admin/users/:id,update PATCH/admin/users/:id t,\
deactivate /admin/users/:id/deactivate t,activate /admin/users/:id/activate t,\
approve /admin/users/:id/approve t,decline /admin/users/:id/decline t,\
revokeSessions /admin/users/:id/revoke-sessions t,resetMfa /admin/users/:id/reset-mfa t,\
expirePassword /admin/users/:id/expire-password t,\
delete DELETE/admin/users/:id t`,
  invitations: `list GET/admin/invitations,create /admin/invitations t,revoke DELETE/admin/invitations/:id t,\
resend /admin/invitations/:id/resend t`,
} as const

/** Returns the operations on the accounts of other people. The router lets in only administrators. */
export function createAdminClient(auth: AuthClient): AdminOperations {
  const { call } = auth as unknown as { call?: Call }
  if (!call) throw new TypeError('createAdminClient() needs the client of createAuthClient().')
  const methodsOf = (lines: string) =>
    Object.fromEntries(operationsOf(lines).map(([, name, line = '']) => [name, (...args: unknown[]) => call(line, args)]))
  const { '': own, ...groups } = adminTable
  const grouped = Object.entries(groups).map(([group, lines]) => [group, methodsOf(lines)])
  return { ...methodsOf(own), ...Object.fromEntries(grouped) }
}
