import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { NotFoundError, ValidationError } from '../errors'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { type Route, withBody } from '../http/routes'
import { sendEmpty, sendJson } from '../http/send'
import { text } from '../http/validate'
import { activateUser } from './activate-user'
import { adminUserBody } from './admin-user'
import { deactivate } from './deactivate'
import { findUser } from './find-user'
import { listByEntries, type UserListEntries } from './list-users'
import type { ActingAdmin } from './lock-target'
import { resetMfa } from './reset-mfa'
import { revokeSessions } from './revoke-sessions'
import { updateUser } from './update-user'

/**
 * Other people's accounts, for administrators as the database has them at that moment; with `mfaEnabled`, in a session that
 * showed its second factor (contract section 13, Admin). Nothing here where the users table cannot say who is one.
 */
export function adminRoutes(ctx: AuthContext, guards: Guards): Route[] {
  if (!ctx.store.users.fields?.has('isAdmin')) return []
  const admin = [guards.requireAdmin(), ...(ctx.settings.mfaEnabled ? [guards.requireMfa()] : [])]
  const acting = [...admin, sameSiteWhenByCookie(ctx)]
  return [
    { method: 'GET', path: '/admin/users', before: admin, handle: (req, res) => list(ctx, req, res) },
    { method: 'GET', path: '/admin/users/:id', before: admin, handle: (req, res) => show(ctx, req, res) },
    withBody({
      method: 'PATCH',
      path: '/admin/users/:id',
      before: acting,
      body: Joi.object<{ name?: string | null; is_admin?: boolean }>({
        name: text(120).allow(null, '').optional(),
        is_admin: Joi.boolean().optional(),
      }),
      handle: async (req, res, { name, is_admin: isAdmin }) => {
        sendJson(res, 200, adminUserBody(await updateUser(ctx, idOf(req), { name, isAdmin }, actingAdmin(req))))
      },
    }),
    ...Object.entries(actions).map(([name, act]) =>
      withBody({
        method: 'POST',
        path: `/admin/users/:id/${name}`,
        before: acting,
        body: Joi.object({}),
        handle: async (req, res) => {
          await act(ctx, idOf(req), actingAdmin(req))
          sendEmpty(res)
        },
      }),
    ),
  ]
}

const actions: Readonly<Record<string, (ctx: AuthContext, userId: string, acting: ActingAdmin) => Promise<unknown>>> = {
  deactivate,
  activate: activateUser,
  'revoke-sessions': revokeSessions,
  'reset-mfa': resetMfa,
}

async function list(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const { items, nextCursor } = await listByEntries(ctx, readQuery(req))
  sendJson(res, 200, { items: items.map(adminUserBody), next_cursor: nextCursor })
}

async function show(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const user = await findUser(ctx, idOf(req))
  if (!user) throw new NotFoundError()
  sendJson(res, 200, adminUserBody(user))
}

/** From the URL itself: `req.query` is for the host's parser to say, which may make arrays and objects of it. */
function readQuery({ url }: Request): UserListEntries {
  const start = url.indexOf('?')
  const pairs = start === -1 ? [] : [...new URLSearchParams(url.slice(start))]
  const [cursor, limit] = [once(pairs, 'cursor'), once(pairs, 'limit')]
  return {
    entries: pairs.filter(([key]) => key !== 'cursor' && key !== 'limit'),
    cursor,
    limit: limit === undefined ? 50 : /^\d{1,3}$/.test(limit) ? Number(limit) : Number.NaN,
  }
}

/** @throws ValidationError when it came twice */
function once(pairs: readonly (readonly [string, string])[], name: string): string | undefined {
  const [value, ...others] = pairs.flatMap(([key, value]) => (key === name ? [value] : []))
  if (others.length === 0) return value
  throw new ValidationError({ details: { errors: [{ path: name, rule: 'any.unique' }] } })
}

function idOf(req: Request): string {
  return String(req.params['id'])
}

function actingAdmin(req: Request): ActingAdmin {
  return { by: getAuth(req).sub }
}
