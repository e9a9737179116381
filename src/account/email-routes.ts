import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  EmailLinkForbiddenError,
  EmailTakenError,
  InvalidTokenError,
  type LocalizedText,
  MfaRequiredError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../errors'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { type Answer, shape, string } from '../http/description'
import { emailAddress, requireEmail } from '../http/email-address'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendJson } from '../http/send'
import { passwordText, text } from '../http/validate'
import { takeUnits } from '../limits/take-unit'
import { answerLinkRequest, linkRequestAnswer } from '../mailbox/answer-link-request'
import { linkPage } from '../pages/link-page'
import { findActiveUser } from '../step-up/find-active-user'
import { clientKey } from '../throttle/client-key'
import { confirmEmailChange, findEmailChange, proveEmailChange, sendEmailChange } from './change-email'
import { confirmEmail, findVerification, sendEmailVerification } from './verify-email'

const done: Record<'verified' | 'changed', LocalizedText> = {
  verified: { 'en-US': 'The email address is confirmed.', 'pt-BR': 'O e-mail está confirmado.' },
  changed: { 'en-US': 'The email address was changed.', 'pt-BR': 'O e-mail foi alterado.' },
}

const messageAnswer: Answer = { status: 200, description: 'Done.', schema: shape('Message', { message: string }) }

interface EmailChangeBody {
  new_email: string
  current_password: string
}

/** The signed-in person's address: proven, and changed. The confirmations need no session: the link is enough. */
export function emailRoutes(ctx: AuthContext, guards: Guards): Route[] {
  const signedIn = [guards.requireAuth(), sameSiteWhenByCookie(ctx)]
  const tokenBody = Joi.object<{ token: string }>({ token: text(512) })
  return [
    withBody({
      method: 'POST',
      path: '/email-verify/request',
      describes: {
        summary: 'Ask for a mail that proves the address',
        answers: [linkRequestAnswer('verify_url')],
        refuses: [AccountInactiveError, TooManyRequestsError],
      },
      before: signedIn,
      body: Joi.object({}),
      handle: (req, res) => requestVerification(ctx, req, res),
    }),
    withBody({
      method: 'POST',
      path: '/email-verify/confirm',
      describes: {
        summary: 'Prove the address by the mailed link',
        answers: [messageAnswer],
        refuses: [InvalidTokenError, EmailLinkForbiddenError],
      },
      before: [routeBudget(ctx, 'email_verify_confirm')],
      body: tokenBody,
      handle: async (req, res, { token }) => {
        await confirmEmail(ctx, token)
        sendJson(res, 200, { message: done.verified[localeOf(req, ctx.settings.defaultLocale)] })
      },
    }),
    withBody({
      method: 'POST',
      path: '/email-change/request',
      describes: {
        summary: 'Ask for a mail to a new address',
        answers: [linkRequestAnswer('confirm_url')],
        refuses: [UnauthorizedError, AccountInactiveError, MfaRequiredError, TooManyRequestsError],
      },
      before: signedIn,
      body: Joi.object<EmailChangeBody>({ new_email: emailAddress, current_password: passwordText() }),
      handle: (req, res, body) => requestChange(ctx, req, res, body),
    }),
    withBody({
      method: 'POST',
      path: '/email-change/confirm',
      describes: {
        summary: 'Take the new address by the mailed link',
        answers: [messageAnswer],
        refuses: [InvalidTokenError, EmailLinkForbiddenError, EmailTakenError],
      },
      before: [routeBudget(ctx, 'email_change_confirm')],
      body: tokenBody,
      handle: async (req, res, { token }) => {
        const locale = localeOf(req, ctx.settings.defaultLocale)
        await confirmEmailChange(ctx, token, locale)
        sendJson(res, 200, { message: done.changed[locale] })
      },
    }),
    ...(ctx.settings.backendLinks ? emailPages(ctx) : []),
  ]
}

async function requestVerification(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const user = await findActiveUser(ctx, getAuth(req).sub)
  const name = 'email_verify_request'
  await takeUnits(ctx, ctx.budgets.links, { name, email: user.email, client: clientKey(req.ip) })
  const locale = localeOf(req, ctx.settings.defaultLocale)
  await answerLinkRequest(ctx, res, { name, field: 'verify_url', locale }, () => sendEmailVerification(ctx, user, locale))
}

async function requestChange(ctx: AuthContext, req: Request, res: Response, body: EmailChangeBody): Promise<void> {
  const name = 'email_change_request'
  await takeUnits(ctx, ctx.budgets.links, { name, email: requireEmail(body.new_email), client: clientKey(req.ip) })
  const { sub: userId, amr } = getAuth(req)
  const change = { userId, amr, newEmail: body.new_email, currentPassword: body.current_password }
  const proven = await proveEmailChange(ctx, change)
  const locale = localeOf(req, ctx.settings.defaultLocale)
  await answerLinkRequest(ctx, res, { name, field: 'confirm_url', locale }, () => sendEmailChange(ctx, proven, locale))
}

function emailPages(ctx: AuthContext): Route[] {
  return [
    ...linkPage(ctx, {
      path: '/email-verify/:token',
      summary: 'Prove the address',
      before: [routeBudget(ctx, 'email_verify_confirm')],
      form: 'email_verify',
      done: 'email_verified',
      look: async (token) => void (await findVerification(ctx, token)),
      redeem: (token) => confirmEmail(ctx, token),
    }),
    ...linkPage(ctx, {
      path: '/email-change/:token',
      summary: 'Take the new address',
      refuses: [EmailTakenError],
      before: [routeBudget(ctx, 'email_change_confirm')],
      form: 'email_change',
      done: 'email_changed',
      look: async (token) => void (await findEmailChange(ctx, token)),
      redeem: (token, _fields, locale) => confirmEmailChange(ctx, token, locale),
    }),
  ]
}
