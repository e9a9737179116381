import type { Request, RequestHandler, Response } from 'express'
import Joi from 'joi'
import { adminUserSchema } from '../../admin/change-user'
import { actingAdmin, idOf } from '../../admin/routes'
import type { AuthContext } from '../../context'
import {
  ConflictError,
  CsrfValidationFailedError,
  InvalidTokenError,
  NotFoundError,
  ReauthenticationRequiredError,
  ServiceUnavailableError,
  TooManyRequestsError,
} from '../../core/errors'
import { type Answer, describeStep, done, instant, shape, string } from '../../http/description'
import { linkPage } from '../../http/html/link-page'
import { readJsonBody, text } from '../../http/input'
import { localeOf } from '../../http/locale'
import { type Route, step } from '../../http/routes'
import { refusingCrossSite } from '../../http/same-site'
import { sendEmpty, sendJson, setResult } from '../../http/send'
import { countAttempt, routeRateLimit } from '../../rate-limits/rate-limiter'
import { confirmIrreversible, type IrreversibleFields, irreversibleBody, irreversibleRefusals } from '../../second-factor/irreversible-code'
import { canBeLeaving } from '../../sessions/account-state'
import { clearEndedCookies } from '../../sessions/current-auth'
import { clearSessionCookies } from '../../sessions/log-out-request'
import { operation, publicOperation } from '../../sessions/operation'
import { codeDevice } from '../../sessions/reauthentication/confirmation-code'
import { refuseStale, requestSessionOf } from '../../sessions/reauthentication/fresh-session'
import type { RouteGuards } from '../../sessions/routes-by-delivery'
import { deletesAt } from '../../sessions/state-refusal'
import { deleteOwnAccount, deleteUser, isImmediate } from './delete-account'
import { exportAccount } from './export-account'
import { lookAtRestore, restoreAccount } from './restore-account'

/** No routes while `accountDeletion` is off. */
export function deletionRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (ctx.settings.accountDeletion === 'off') return []
  return [...deleteRoute(ctx, guards), ...exportRoute(ctx, guards), ...(canBeLeaving(ctx) ? restoreRoutes(ctx) : [])]
}

/** No route if the users table does not store administrators. */
export function deletionAdminRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (ctx.settings.accountDeletion === 'off' || !ctx.store.users.fields?.has('isAdmin')) return []
  return operation(ctx, guards, {
    method: 'DELETE',
    path: '/admin/users/:id',
    summary: 'Delete an account at once, with everything in it',
    answers: [done],
    refuses: [NotFoundError, ConflictError],
    hostRefuses: ctx.onDelete !== null,
    access: 'acting administrator',
    limit: 'admin_write',
    body: Joi.object<{ refresh_token?: string }>({ refresh_token: text(4096).optional() }),
    handle: async (req, res) => {
      await deleteUser(ctx, idOf(req), actingAdmin(req))
      sendEmpty(res)
    },
  })
}

function deleteRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  const { accountDeletion } = ctx.settings
  return operation(ctx, guards, {
    method: 'POST',
    path: '/account/delete',
    inEachDelivery: true,
    summary: accountDeletion === 'soft' ? 'Close the own account, and delete it later' : 'Delete the own account',
    answers: [...(accountDeletion === 'soft' ? [closed] : []), done],
    refuses: [ConflictError, TooManyRequestsError, ServiceUnavailableError, ...irreversibleRefusals(ctx)],
    hostRefuses: ctx.onDelete !== null,
    access: 'live session',
    limit: 'account_delete',
    checks: [freshForDeletion(ctx)],
    body: irreversibleBody<IrreversibleFields & { refresh_token?: string }>(ctx, { refresh_token: text(4096).optional() }),
    handle: async (req, res, { refresh_token: _, ...body }, delivery) => {
      const { user, session } = requestSessionOf(req)
      await confirmIrreversible(ctx, { userId: user.id, session, device: await codeDevice(ctx, req, body) }, body)
      const at = await deleteOwnAccount(ctx, { user, session, locale: localeOf(ctx, req) })
      await (delivery === 'bearer' ? clearEndedCookies(ctx, req, res) : clearSessionCookies(ctx, req, res))
      setResult(res, { deletesAt: at })
      if (at === null) return sendEmpty(res)
      sendJson(res, 202, { message: ctx.texts.say(localeOf(ctx, req), 'message.deletion_requested'), deletes_at: at.toISOString() })
    },
  })
}

const immediateSeconds = 60

/** A code or a passkey in the body is a credential of this moment. */
function freshForDeletion(ctx: AuthContext): RequestHandler {
  const check = step(async (req, res) => {
    const { code, credential } = Object(await readJsonBody(req, res)) as Record<string, unknown> // not validated yet
    if (typeof code === 'string' || (ctx.settings.passkeysEnabled && typeof credential === 'object' && credential !== null)) return
    const found = requestSessionOf(req)
    await refuseStale(ctx, found, isImmediate(ctx, found.user) ? immediateSeconds : ctx.settings.freshSessionSeconds)
  })
  return describeStep(check, { refuses: [ReauthenticationRequiredError], needs: 'fresh_session' })
}

const closed: Answer = {
  status: 202,
  description: 'The account is closed, and deleted at `deletes_at`. An account whose address nobody has verified is deleted at once.',
  schema: shape('DeletionRequested', { message: string, deletes_at: instant }),
}

const exportLimit = { attempts: 5, windowSeconds: 3_600 }

function exportRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'GET',
    path: '/account/export',
    summary: 'Download what is known about the own account',
    answers: [exported(ctx)],
    refuses: [TooManyRequestsError, ServiceUnavailableError],
    access: 'fresh session',
    limit: 'account_export',
    before: [refusingCrossSite(refuseCrossSiteNavigation)],
    handle: async (req, res) => {
      const { id } = requestSessionOf(req).user
      await countAttempt(ctx, [{ name: 'account_export:account', subject: id, rateLimit: exportLimit }])
      await sendExport(ctx, res, id)
    },
  })
}

async function sendExport(ctx: AuthContext, res: Response, userId: string): Promise<void> {
  const account = await exportAccount(ctx, userId)
  setResult(res, account)
  res.setHeader('Content-Disposition', 'attachment; filename="account.json"')
  sendJson(res, 200, account)
}

/** Another site must not make the browser save a person's data. */
function refuseCrossSiteNavigation({ headers }: Request): void {
  if (headers['sec-fetch-site'] === 'cross-site') throw new CsrfValidationFailedError({ details: { reason: 'site' } })
}

const objects = { type: 'array', items: { type: 'object' } }

function exported(ctx: AuthContext): Answer {
  return {
    status: 200,
    description: 'A file. A feature that is off is empty or null.',
    schema: shape('AccountExport', {
      exported_at: instant,
      user: adminUserSchema(ctx),
      identities: objects,
      sessions: objects,
      passkeys: objects,
      second_factor: { type: ['object', 'null'] },
      api_keys: objects,
      invitations: objects,
      devices: objects,
      ...(ctx.auditLog && { events: objects }),
      ...(ctx.onExport && { host: { type: 'object' } }),
    }),
  }
}

function restoreRoutes(ctx: AuthContext): Route[] {
  return [
    publicOperation(ctx, {
      method: 'POST',
      path: '/account/restore',
      summary: 'Bring back an account that waits for its deletion',
      answers: [{ status: 200, description: 'The account is open again.', schema: shape('AccountRestored', { message: string }) }],
      refuses: [InvalidTokenError],
      limit: 'account_restore',
      body: Joi.object<{ token: string }>({ token: text(2048) }),
      handle: async (req, res, { token }) => {
        await restoreAccount(ctx, token)
        sendJson(res, 200, { message: ctx.texts.say(localeOf(ctx, req), 'message.account_restored') })
      },
    }),
    ...linkPage(ctx, {
      path: '/account/restore/:token',
      summary: 'Bring back an account that waits for its deletion',
      before: [routeRateLimit(ctx, 'account_restore')],
      form: 'account_restore',
      done: 'account_restored',
      look: async (token, { locale }) => {
        const at = deletesAt(ctx, await lookAtRestore(ctx, token))
        const date = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(at)
        return { items: [ctx.texts.say(locale, 'deletion.deletes_at', { date })] }
      },
      redeem: async ({ token }) => {
        await restoreAccount(ctx, token)
        return null
      },
    }),
  ]
}
