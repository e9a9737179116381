import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { TooManyRequestsError } from '../errors'
import { emailAddress, requireEmail } from '../http/email-address'
import { type Locale, localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { takeUnits } from '../limits/take-unit'
import { answerLinkRequest, linkRequestAnswer } from '../mailbox/answer-link-request'
import type { LinkToken } from '../mailbox/email-link'
import { ACTIVATION_WITHHELD } from '../mailbox/refuses-email-link'
import type { UserRecord } from '../store/auth-store'
import { clientKey } from '../throttle/client-key'
import { sendActivation } from './request-activation'
import { sendPasswordReset } from './request-password-reset'

/** What makes and mails the link; null: there is none to make. */
type SendLink = (ctx: AuthContext, user: UserRecord | null, locale: Locale) => Promise<LinkToken | typeof ACTIVATION_WITHHELD | null>

interface LinkRequest {
  /** Of the budget. */
  name: string
  path: string
  summary: string
  /** The field that holds the link where links are shown. */
  field: 'activation_url' | 'reset_url'
  send: SendLink
}

const requests: readonly LinkRequest[] = [
  {
    name: 'activation_request',
    path: '/activation/request',
    summary: 'Ask for another activation mail',
    field: 'activation_url',
    send: sendActivation,
  },
  {
    name: 'password_reset_request',
    path: '/password-reset/request',
    summary: 'Ask for a link to set a new password',
    field: 'reset_url',
    send: sendPasswordReset,
  },
]

export function linkRequestRoutes(ctx: AuthContext): Route[] {
  return requests.map((request) =>
    withBody({
      method: 'POST',
      path: request.path,
      describes: { summary: request.summary, answers: [linkRequestAnswer(request.field)], refuses: [TooManyRequestsError] },
      body: Joi.object<{ email: string }>({ email: emailAddress }),
      handle: (req, res, { email }) => answer(ctx, request, req, res, requireEmail(email)),
    }),
  )
}

/** Everybody pays for one look at the address; the rest goes on after the answer. */
async function answer(ctx: AuthContext, { name, field, send }: LinkRequest, req: Request, res: Response, email: string): Promise<void> {
  await takeUnits(ctx, ctx.budgets.links, { name, email, client: clientKey(req.ip) })
  const locale = localeOf(req, ctx.settings.defaultLocale)
  const user = await ctx.store.users.findByEmail(email)
  await answerLinkRequest(ctx, res, { name, field, locale }, async () => {
    const link = await send(ctx, user, locale)
    return link === ACTIVATION_WITHHELD ? null : link
  })
}
