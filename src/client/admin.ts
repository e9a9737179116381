import type { AuthClient } from './client.js'
import type { AdminOperations } from './operations.js'
import { type Call, operationsOf } from './table.js'

/** As the table of the client. */
export const adminTable = `list GET/admin/users,get GET/admin/users/:id,update PATCH/admin/users/:id t,\
deactivate /admin/users/:id/deactivate t,activate /admin/users/:id/activate t,\
revokeSessions /admin/users/:id/revoke-sessions t,resetMfa /admin/users/:id/reset-mfa t,\
expirePassword /admin/users/:id/expire-password t`

/** Returns the operations on the accounts of other people. The router lets in only administrators. */
export function createAdminClient(auth: AuthClient): AdminOperations {
  const { call } = auth as unknown as { call?: Call }
  if (!call) throw new TypeError('createAdminClient() needs the client of createAuthClient().')
  const methods = operationsOf(adminTable).map(([, name, line = '']) => [name, (...args: unknown[]) => call(line, args)])
  return Object.fromEntries(methods)
}
