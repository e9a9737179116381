import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { InvalidTokenError } from '../../core/errors'
import { type Answer, flag, shape, string } from '../../http/description'
import { linkPage } from '../../http/html/link-page'
import { text } from '../../http/input'
import { localeOf } from '../../http/locale'
import type { Route } from '../../http/routes'
import { sendJson } from '../../http/send'
import { routeRateLimit } from '../../rate-limits/rate-limiter'
import { clearEndedCookies } from '../../sessions/current-auth'
import { publicOperation } from '../../sessions/operation'
import { canUndo } from './announce-change'
import { previewUndo, type UndoResult, undoChanges } from './undo-changes'

/** No routes if notices have no undo links. */
export function undoRoutes(ctx: AuthContext): Route[] {
  if (!canUndo(ctx)) return []
  return [
    publicOperation(ctx, {
      method: 'POST',
      path: '/security/undo',
      summary: 'Undo changes to an account with the link from a mail',
      answers: [undoAnswer],
      refuses: [InvalidTokenError],
      limit: 'security_undo',
      body: Joi.object<{ token: string }>({ token: text(512) }),
      handle: (req, res, { token }) => undo(ctx, req, res, token),
    }),
    ...linkPage(ctx, {
      path: '/security/undo/:token',
      summary: 'Undo changes to an account',
      before: [routeRateLimit(ctx, 'security_undo')],
      form: 'undo',
      done: 'undone',
      look: async (token, { locale }) => ({ items: await previewUndo(ctx, token, locale) }),
      redeem: async ({ token, locale, req, res }) => {
        const result = await undoChanges(ctx, { token, locale })
        await clearEndedCookies(ctx, req, res)
        return pageOf(result)
      },
    }),
  ]
}

const undoAnswer: Answer = {
  status: 200,
  description: 'Done. If another account has the old address now, `address_restored` is false and this account is deactivated.',
  schema: shape('Undone', { message: string, address_restored: flag }),
}

async function undo(ctx: AuthContext, req: Request, res: Response, token: string): Promise<void> {
  const locale = localeOf(ctx, req)
  const result = await undoChanges(ctx, { token, locale })
  await clearEndedCookies(ctx, req, res)
  sendJson(res, 200, {
    message: ctx.texts.say(locale, result.isOpen ? 'message.undone' : 'message.undone_closed'),
    address_restored: result.addressRestored,
  })
}

function pageOf({ isOpen, left }: UndoResult) {
  return isOpen ? { page: 'undone' as const, items: left } : { page: 'undone_without_address' as const }
}
