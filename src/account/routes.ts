import type { AuthContext } from '../context'
import { getUser } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import type { PublicUser } from '../guards/public-user'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'

/** The signed-in person's own account. */
export function accountRoutes(_ctx: AuthContext, guards: Guards): Route[] {
  return [{ method: 'GET', path: '/me', before: [guards.requireUser()], handle: (req, res) => sendJson(res, 200, userBody(getUser(req))) }]
}

function userBody(user: PublicUser): object {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    is_active: user.isActive,
    is_admin: user.isAdmin,
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    mfa_enabled: user.mfaEnabled,
  }
}
