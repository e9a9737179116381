import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { ConflictError, InvalidFilterValueError, NotFoundError, UnknownFilterKeyError, ValidationError } from '../core/errors'
import { type Answer, type Description, done, shape, string, stringOrNull } from '../http/description'
import { text } from '../http/input'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson } from '../http/send'
import { expirePassword } from '../login-tasks/expire-password'
import { clearEndedCookies, getAuth } from '../sessions/current-auth'
import { operation } from '../sessions/operation'
import { sessionOf } from '../sessions/reauthentication/fresh-session'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import {
  type ActingAdmin,
  activateUser,
  adminUserBody,
  adminUserSchema,
  approve,
  approves,
  deactivate,
  decline,
  findUser,
  type MfaReset,
  resetMfa,
  revokeSessions,
  updateUser,
} from './change-user'
import { filterableFields, filterKeys, listByEntries, type UserListEntries } from './list-users'

/**
 * The database decides at each request whether the person is an administrator. With `mfaEnabled`, the session must have used the second
 * factor. Reading needs a live session, and writing a fresh one. No routes if the users table does not store administrators.
 */
export function adminRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (!ctx.store.users.fields?.has('isAdmin')) return []
  return [
    ...operation(ctx, guards, {
      method: 'GET',
      path: '/admin/users',
      ...describesList(ctx),
      access: 'administrator',
      limit: 'admin_list',
      handle: (req, res) => list(ctx, req, res),
    }),
    ...operation(ctx, guards, {
      method: 'GET',
      path: '/admin/users/:id',
      summary: 'Get one account',
      answers: [oneUser(ctx)],
      refuses: [NotFoundError],
      access: 'administrator',
      limit: 'admin_show',
      handle: (req, res) => show(ctx, req, res),
    }),
    ...operation(ctx, guards, {
      method: 'PATCH',
      path: '/admin/users/:id',
      summary: 'Change the name of an account, or whether it is an administrator',
      answers: [oneUser(ctx)],
      refuses: [NotFoundError, ConflictError],
      access: 'acting administrator',
      limit: 'admin_write',
      body: Joi.object<{ name?: string | null; is_admin?: boolean; refresh_token?: string }>({
        name: text(120).allow(null, '').optional(),
        is_admin: Joi.boolean().optional(),
        refresh_token: text(4096).optional(),
      }),
      handle: async (req, res, { name, is_admin: isAdmin }) => {
        sendJson(res, 200, adminUserBody(ctx, await updateUser(ctx, idOf(req), { name, isAdmin }, actingAdmin(req))))
      },
    }),
    ...Object.entries(actionsOf(ctx)).flatMap(([name, { summary, act, fields = {} }]) =>
      operation(ctx, guards, {
        method: 'POST',
        path: `/admin/users/:id/${name}`,
        summary,
        answers: [done],
        refuses: [NotFoundError, ConflictError],
        access: 'acting administrator',
        limit: 'admin_write',
        body: Joi.object<ActionOptions & { refresh_token?: string }>({ ...fields, refresh_token: text(4096).optional() }),
        handle: async (req, res, { refresh_token: _, ...options }) => {
          await act(ctx, idOf(req), actingAdmin(req), options)
          await clearEndedCookies(ctx, req, res)
          sendEmpty(res)
        },
      }),
    ),
  ]
}

interface Action {
  readonly summary: string
  act(ctx: AuthContext, userId: string, acting: ActingAdmin, options: ActionOptions): Promise<unknown>
  readonly fields?: Joi.PartialSchemaMap<ActionOptions>
}

interface ActionOptions extends MfaReset {
  keep_sessions?: boolean
}

function actionsOf(ctx: AuthContext): Readonly<Record<string, Action>> {
  const { store, loginTasks } = ctx
  const passkeys = store.passkeys ? { fields: { passkeys: Joi.boolean().optional() } } : {}
  return {
    deactivate: { summary: 'Deactivate an account, and revoke its sessions and mailed links, except undo links', act: deactivate },
    activate: { summary: 'Activate an account', act: activateUser },
    ...(approves(ctx) && {
      approve: { summary: 'Approve an account that waits', act: approve },
      decline: { summary: 'Decline an account that waits: it stays deactivated', act: decline },
    }),
    'revoke-sessions': { summary: 'Revoke all sessions of an account', act: revokeSessions },
    'reset-mfa': { summary: 'Remove the second factor of an account', act: resetMfa, ...passkeys },
    ...(loginTasks?.newPassword && { 'expire-password': passwordExpiry }),
  }
}

const passwordExpiry: Action = {
  summary: 'Expire the password of an account: the next login must set a new one. Revokes its sessions, unless `keep_sessions`',
  act: (ctx, userId, acting, { keep_sessions: keepSessions }) => expirePassword(ctx, userId, acting, { keepSessions }),
  fields: { keep_sessions: Joi.boolean().optional() },
}

function oneUser(ctx: AuthContext): Answer {
  return { status: 200, description: 'The account.', schema: adminUserSchema(ctx) }
}

function describesList(ctx: AuthContext): Description {
  return {
    summary: 'List the accounts, oldest first',
    answers: [
      {
        status: 200,
        description: 'A page of accounts. On the last page `next_cursor` is null.',
        schema: shape('AdminUserList', { items: { type: 'array', items: adminUserSchema(ctx) }, next_cursor: stringOrNull }),
      },
    ],
    refuses: [UnknownFilterKeyError, InvalidFilterValueError],
    query: [
      { name: 'cursor', description: 'The `next_cursor` of the previous page.', schema: string },
      {
        name: 'limit',
        description: 'The maximum number of accounts on a page.',
        schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
      },
      {
        name: 'filters',
        description: 'Any number of `field=value` or `field__operator=value`. Commas separate the values of a list.',
        schema: { type: 'object', propertyNames: { enum: filterKeys(filterableFields(ctx)) }, additionalProperties: string },
      },
    ],
  }
}

async function list(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const { items, nextCursor } = await listByEntries(ctx, readQuery(req))
  sendJson(res, 200, { items: items.map((user) => adminUserBody(ctx, user)), next_cursor: nextCursor })
}

async function show(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const user = await findUser(ctx, idOf(req))
  if (!user) throw new NotFoundError()
  sendJson(res, 200, adminUserBody(ctx, user))
}

/** From the URL, because the parser of `req.query` is the host's, and can turn values into arrays and objects. */
function readQuery({ url }: Request): UserListEntries {
  const start = url.indexOf('?')
  const pairs = start === -1 ? [] : [...new URLSearchParams(url.slice(start))]
  const [cursor, limit] = [once(pairs, 'cursor'), once(pairs, 'limit')]
  return {
    entries: pairs.filter(([key]) => !notFilters.has(key)),
    cursor,
    limit: limit === undefined ? 50 : /^\d{1,3}$/.test(limit) ? Number(limit) : Number.NaN,
  }
}

/** `lang` is the language of errors, as on every route. */
const notFilters: ReadonlySet<string> = new Set(['cursor', 'limit', 'lang'])

/** Undefined: missing. @throws ValidationError for a repeated parameter */
function once(pairs: readonly (readonly [string, string])[], name: string): string | undefined {
  const [value, ...others] = pairs.flatMap(([key, value]) => (key === name ? [value] : []))
  if (others.length === 0) return value
  throw new ValidationError({ details: { errors: [{ path: name, rule: 'any.unique' }] } })
}

export function idOf(req: Request): string {
  return String(req.params['id'])
}

export function actingAdmin(req: Request): ActingAdmin {
  return { by: getAuth(req).sub, session: sessionOf(req) }
}
