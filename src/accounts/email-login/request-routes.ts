import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { clientOf } from '../../core/client-key'
import { TooManyRequestsError } from '../../core/errors'
import { type Answer, shape, string, stringOrNull } from '../../http/description'
import { readTypedAddress, typedAddress } from '../../http/email-address'
import { localeOf } from '../../http/locale'
import { setResult } from '../../http/outcome'
import { readReturnTo } from '../../http/return-to'
import { type Route, withBody } from '../../http/routes'
import { sendJson } from '../../http/send'
import { text } from '../../http/validate'
import { presentedDevice, previousToken } from '../../sessions/devices/known-device'
import { takeLinkRequest } from '../../sessions/devices/link-limits'
import type { RouteSet } from '../../sessions/routes-by-delivery'
import { lookForNobody } from '../email-links/find-by-address'
import { hostGuard } from '../host-guard'
import { rememberRequest, requestOfBrowser, signRequestToken } from './asking-browser'
import { requestEmailLogin } from './request-email-login'

interface RequestBody {
  email: string
  return_to?: string
  previous_token?: string
}

const requested: Answer = {
  status: 202,
  description:
    'The response is equal for every address. Clients without cookies send `request_token` together with the code. Only in development, the response contains the link and the code.',
  schema: shape('RequestedEmailLogin', { message: string, request_token: string, login_url: stringOrNull, code: stringOrNull }),
}

const name = 'email_login_request'

export function requestRoute(ctx: AuthContext, { base, before }: RouteSet): Route {
  return withBody({
    method: 'POST',
    path: `${base}/email-login/request`,
    describes: { summary: 'Request a mail to log in', answers: [requested], refuses: [TooManyRequestsError] },
    before: [...before, ...hostGuard(ctx, 'email_login', name)],
    body: Joi.object<RequestBody>({ email: typedAddress, return_to: text(2048).optional(), ...previousToken }),
    handle: (req, res, body) => answer(ctx, req, res, body),
  })
}

/**
 * Sends the response before the account is looked up. So the response time and the cookie do not reveal whether the address has an account.
 * Exception: if responses contain links (`showsLinks`), the function first makes the link.
 */
async function answer(ctx: AuthContext, req: Request, res: Response, body: RequestBody): Promise<void> {
  const email = readTypedAddress(body.email)
  const returnTo = readReturnTo(ctx.settings, body.return_to === undefined ? [] : [body.return_to])
  const device = await takeLinkRequest(ctx, { name, email, client: clientOf(req), presented: presentedDevice(ctx, req, body) })
  const locale = localeOf(ctx, req)
  const id = randomUUID()
  const origin = { ip: req.ip, userAgent: req.headers['user-agent'] }
  const request = { id, email, returnTo, locale, device, earlierId: requestOfBrowser(ctx, req), ...origin }
  await lookForNobody(ctx)
  const presented = ctx.showsLinks ? await requestEmailLogin(ctx, request) : null
  if (!ctx.showsLinks) ctx.background.run(name, () => requestEmailLogin(ctx, request))
  rememberRequest(ctx, res, id)
  const requestToken = signRequestToken(ctx, id)
  const [loginUrl, code] = [presented?.url ?? null, presented?.code ?? null]
  setResult(res, { requestToken, loginUrl, code })
  sendJson(res, 202, { message: ctx.texts.say(locale, 'message.link_requested'), request_token: requestToken, login_url: loginUrl, code })
}
