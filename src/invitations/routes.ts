import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { ConflictError, InvitationRequiredError, NotFoundError, TooManyRequestsError, ValidationError } from '../core/errors'
import { type Answer, done, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import { emailAddress } from '../http/email-address'
import { text } from '../http/input'
import { localeOf, queryValues } from '../http/locale'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { getAuth } from '../sessions/current-auth'
import { operation } from '../sessions/operation'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import { forgetUsedInvitation } from './carried'
import {
  createInvitation,
  type Invitation,
  listInvitations,
  mostDays,
  mostUses,
  resendInvitation,
  revokeInvitation,
} from './manage-invitations'
import { invitationPages } from './page'
import { redeemInvitation } from './redeem-invitation'

/** The administrator's routes need a users table that stores administrators. */
export function invitationRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (!ctx.settings.invitationsEnabled) return []
  // `/invitations/redeem` comes first, because `:token` would match it.
  return [...redeemRoute(ctx, guards), ...invitationPages(ctx)]
}

export function invitationAdminRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (!ctx.settings.invitationsEnabled || !ctx.store.users.fields?.has('isAdmin')) return []
  return [...createRoute(ctx, guards), ...listRoute(ctx, guards), ...revokeRoute(ctx, guards), ...resendRoute(ctx, guards)]
}

function redeemRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/invitations/redeem',
    inEachDelivery: true,
    summary: 'Use an invitation with the account that is logged in',
    answers: [done],
    refuses: [InvitationRequiredError],
    hostRefuses: ctx.onInvitationAccepted !== null,
    access: 'live session',
    limit: 'invitation_redeem',
    body: Joi.object<{ token: string; refresh_token?: string }>({ token: text(128), refresh_token: text(4096).optional() }),
    handle: async (req, res, { token }) => {
      const { sub: userId } = getAuth(req)
      await redeemInvitation(ctx, userId, token)
      await forgetUsedInvitation(ctx, req, res, userId)
      sendEmpty(res)
    },
  })
}

interface CreateBody {
  email?: string | null
  data?: unknown
  uses?: number
  expires_in_days?: number
  send?: boolean
  refresh_token?: string
}

function createRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/admin/invitations',
    summary: 'Create an invitation, and mail it if it has an address',
    answers: [{ status: 201, description: 'The invitation. `token` and `url` are null if it was mailed.', schema: createdSchema }],
    refuses: [TooManyRequestsError],
    access: 'acting administrator',
    limit: 'admin_write',
    body: Joi.object<CreateBody>({
      email: emailAddress.allow(null).optional(),
      data: Joi.any().optional(),
      uses: Joi.number().integer().min(1).max(mostUses).optional(),
      expires_in_days: Joi.number().integer().min(1).max(mostDays).optional(),
      send: Joi.boolean().optional(),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, { expires_in_days: expiresInDays, refresh_token: _, ...input }) => {
      const creation = { by: getAuth(req).sub, isLimited: true }
      const created = await createInvitation(ctx, { ...input, expiresInDays, locale: localeOf(ctx, req) }, creation)
      setResult(res, created)
      const { token, url, ...invitation } = created
      sendJson(res, 201, { ...invitationBody(invitation), token, url })
    },
  })
}

function listRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'GET',
    path: '/admin/invitations',
    summary: 'List the invitations, newest first',
    answers: [listAnswer],
    refuses: [ValidationError],
    query: [
      { name: 'cursor', description: 'The `next_cursor` of the previous page.', schema: string },
      {
        name: 'limit',
        description: 'The maximum number of invitations on a page.',
        schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
      },
    ],
    access: 'administrator',
    limit: 'admin_list',
    handle: async (req, res) => {
      const limit = once(req, 'limit')
      const number = limit === undefined ? 50 : /^\d{1,3}$/.test(limit) ? Number(limit) : Number.NaN
      const list = await listInvitations(ctx, { cursor: once(req, 'cursor'), limit: number })
      setResult(res, list)
      sendJson(res, 200, { items: list.items.map(invitationBody), next_cursor: list.nextCursor })
    },
  })
}

function once(req: Request, name: string): string | undefined {
  const [value, ...others] = queryValues(req, name)
  if (others.length > 0) throw new ValidationError({ details: { errors: [{ path: name, rule: 'any.unique' }] } })
  return value
}

function revokeRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'DELETE',
    path: '/admin/invitations/:id',
    summary: 'Revoke an invitation. Accounts that have used it stay',
    answers: [done],
    refuses: [NotFoundError],
    access: 'acting administrator',
    limit: 'admin_write',
    body: Joi.object<{ refresh_token?: string }>({ refresh_token: text(4096).optional() }),
    handle: async (req, res) => {
      await revokeInvitation(ctx, idOf(req), getAuth(req).sub)
      sendEmpty(res)
    },
  })
}

function resendRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/admin/invitations/:id/resend',
    summary: 'Mail an invitation again, with a new token. The old token ends',
    answers: [
      { status: 202, description: 'The mail follows, unless the address has had too many.', schema: shape('ResentInvitation', {}) },
    ],
    refuses: [NotFoundError, ConflictError, TooManyRequestsError],
    access: 'acting administrator',
    limit: 'admin_write',
    body: Joi.object<{ refresh_token?: string }>({ refresh_token: text(4096).optional() }),
    handle: async (req, res) => {
      await resendInvitation(ctx, idOf(req), { by: getAuth(req).sub, locale: localeOf(ctx, req) })
      sendJson(res, 202, {})
    },
  })
}

function idOf(req: Request): string {
  return String(req.params['id'])
}

const fields: Readonly<Record<string, JsonSchema>> = {
  id: string,
  email: stringOrNull,
  data: {},
  uses_left: { type: 'integer' },
  expires_at: instant,
  created_by: stringOrNull,
  created_at: instant,
  revoked_at: instantOrNull,
}

const createdSchema = shape('CreatedInvitation', { ...fields, token: stringOrNull, url: stringOrNull })

const listAnswer: Answer = {
  status: 200,
  description: 'A page of invitations, without their tokens. On the last page `next_cursor` is null.',
  schema: shape('InvitationList', { items: { type: 'array', items: shape('Invitation', fields) }, next_cursor: stringOrNull }),
}

function invitationBody({ id, email, data, usesLeft, expiresAt, createdBy, createdAt, revokedAt }: Invitation): object {
  return {
    id,
    email,
    data,
    uses_left: usesLeft,
    expires_at: expiresAt,
    created_by: createdBy,
    created_at: createdAt,
    revoked_at: revokedAt,
  }
}
