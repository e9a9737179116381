import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { hasPasswords } from '../core/config/has-passwords'
import { TooManyRequestsError } from '../core/errors'
import { readTypedAddress, typedAddress } from '../http/email-address'
import { type Locale, localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { type KnownDevice, presentedDevice, previousToken } from '../sessions/devices/known-device'
import { takeLinkRequest } from '../sessions/devices/link-limits'
import type { UserRecord } from '../store/auth-store'
import { answerLinkRequest, linkRequestAnswer } from './email-links/answer-link-request'
import type { LinkToken } from './email-links/email-link'
import { findByAddress, lookForNobody } from './email-links/find-by-address'
import { ACTIVATION_WITHHELD } from './email-links/refuses-email-link'
import { hostGuard } from './host-guard'
import { sendActivation } from './request-activation'
import { sendPasswordReset } from './request-password-reset'

/** Makes and mails the link. Returns null if the function made no link. */
type SendLink = (
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  options: { device: KnownDevice | null },
) => Promise<LinkToken | typeof ACTIVATION_WITHHELD | null>

interface LinkRequestBody {
  email: string
  previous_token?: string
}

interface LinkRequest {
  /** The name of the rate limit. */
  name: string
  path: string
  summary: string
  /** The body field that contains the link, if responses contain links. */
  field: 'activation_url' | 'reset_url'
  send: SendLink
}

const activation: LinkRequest = {
  name: 'activation_request',
  path: '/activation/request',
  summary: 'Request another activation mail',
  field: 'activation_url',
  send: sendActivation,
}

const passwordReset: LinkRequest = {
  name: 'password_reset_request',
  path: '/password-reset/request',
  summary: 'Request a mail to set a new password',
  field: 'reset_url',
  send: sendPasswordReset,
}

export function linkRequestRoutes(ctx: AuthContext): Route[] {
  const requests = [activation, ...(hasPasswords(ctx.settings) ? [passwordReset] : [])]
  return requests.map((request) =>
    withBody({
      method: 'POST',
      path: request.path,
      describes: { summary: request.summary, answers: [linkRequestAnswer(request.field)], refuses: [TooManyRequestsError] },
      before: hostGuard(ctx, 'link', request.name),
      body: Joi.object<LinkRequestBody>({ email: typedAddress, ...previousToken }),
      handle: (req, res, body) => answer(ctx, request, req, res, body),
    }),
  )
}

/**
 * Handles a request for a mailed link. Unless responses contain links, the function looks up the requested address after the response. So
 * the response time does not depend on whether the address has an account. Before the response, the function looks up an address that no
 * account has. So if the database is down, the response is 503 for every address.
 */
async function answer(
  ctx: AuthContext,
  { name, field, send }: LinkRequest,
  req: Request,
  res: Response,
  body: LinkRequestBody,
): Promise<void> {
  const email = readTypedAddress(body.email)
  const device = await takeLinkRequest(ctx, { name, email, client: clientOf(req), presented: presentedDevice(ctx, req, body) })
  const locale = localeOf(ctx, req)
  await lookForNobody(ctx)
  await answerLinkRequest(ctx, res, { name, field, locale }, async () => {
    const link = await send(ctx, await findByAddress(ctx, email), locale, { device })
    return link === ACTIVATION_WITHHELD ? null : link
  })
}
