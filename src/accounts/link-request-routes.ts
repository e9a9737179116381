import type { Request, Response } from 'express'
import Joi from 'joi'
import { type CaptchaField, captchaField, captchaRefusals } from '../captcha/require-captcha'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { hasPasswords } from '../core/config/every-setting'
import { TooManyRequestsError } from '../core/errors'
import { type Answer, string, stringOrNull } from '../http/description'
import { readTypedAddress, typedAddress } from '../http/email-address'
import { type Locale, localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import { type KnownDevice, presentedDevice, previousToken } from '../sessions/devices/device-cookie'
import { countLinkRequest } from '../sessions/devices/login-limits'
import { publicOperation } from '../sessions/operation'
import type { LinkCodePurpose, UserRecord } from '../store/auth-store'
import { ACTIVATION_WITHHELD, findByAddress, type LinkToken, lookForNobody } from './email-links/email-link'
import { withSignupMail } from './email-links/signup-mails'
import { hostGuard } from './host-guard'
import { type CodeRequest, codeRequestOf, keepCodeRequest, tokenMember } from './mailed-codes/code-request'
import { sendActivation, sendPasswordReset } from './request-link'

/** Null if no link was made. */
type SendLink = (
  ctx: AuthContext,
  user: UserRecord | null,
  locale: Locale,
  options: { device: KnownDevice | null; code: CodeRequest | null },
) => Promise<LinkToken | typeof ACTIVATION_WITHHELD | null>

interface LinkRequestBody extends CaptchaField {
  email: string
  previous_token?: string
}

interface LinkRequest {
  name: string
  purpose: LinkCodePurpose
  path: `/${string}`
  summary: string
  /** If responses contain links. */
  field: 'activation_url' | 'reset_url'
  send: SendLink
}

const activation: LinkRequest = {
  name: 'activation_request',
  purpose: 'ACTIVATION',
  path: '/activation/request',
  summary: 'Request another activation mail',
  field: 'activation_url',
  send: sendActivation,
}

const passwordReset: LinkRequest = {
  name: 'password_reset_request',
  purpose: 'PASSWORD_RESET',
  path: '/password-reset/request',
  summary: 'Request a mail to set a new password',
  field: 'reset_url',
  send: sendPasswordReset,
}

export function linkRequestRoutes(ctx: AuthContext): Route[] {
  const requests = [activation, ...(hasPasswords(ctx.settings) ? [passwordReset] : [])]
  return requests.map((request) =>
    publicOperation(ctx, {
      method: 'POST',
      path: request.path,
      summary: request.summary,
      answers: [linkRequestAnswer(ctx, request.field)],
      refuses: [TooManyRequestsError, ...captchaRefusals(ctx)],
      before: hostGuard(ctx, 'link', request.name),
      body: Joi.object<LinkRequestBody>({ email: typedAddress, ...previousToken, ...captchaField(ctx) }),
      handle: (req, res, body) => answer(ctx, request, req, res, body),
    }),
  )
}

/** Responds before the look-up, so that its time reveals nothing; looks for nobody first, to answer 503 if the database is down. */
async function answer(
  ctx: AuthContext,
  { name, purpose, field, send }: LinkRequest,
  req: Request,
  res: Response,
  body: LinkRequestBody,
): Promise<void> {
  const email = readTypedAddress(body.email)
  const presented = presentedDevice(ctx, req, body)
  const asked = { action: 'link', answer: body.captcha, email, presented, isBraked: purpose === 'ACTIVATION' } as const
  await withSignupMail(ctx, req, asked, async (ctx) => {
    const device = await countLinkRequest(ctx, { name, email, client: clientOf(req), presented })
    const locale = localeOf(ctx, req)
    await lookForNobody(ctx)
    const code = codeRequestOf(ctx, req, purpose)
    await answerLinkRequest(ctx, req, res, { name, field, locale, code }, async () => {
      const link = await send(ctx, await findByAddress(ctx, email), locale, { device, code })
      return link === ACTIVATION_WITHHELD ? null : link
    })
  })
}

export function linkRequestAnswer(ctx: AuthContext, field: string): Answer {
  const ofCode = tokenMember(ctx)
  return {
    status: 202,
    description: 'The response is equal for every address. Only in development, the response contains the link.',
    schema: {
      type: 'object',
      properties: { message: string, [field]: stringOrNull, ...ofCode },
      required: ['message', field, ...Object.keys(ofCode)],
    },
  }
}

/** One response for a known, unknown, taken, active, pending, deactivated or rejected address. Only `showsLinks` makes the link first. */
export async function answerLinkRequest(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { name, field, locale, code }: { name: string; field: string; locale: Locale; code: CodeRequest | null },
  makeLink: () => Promise<LinkToken | null>,
): Promise<void> {
  const member = await keepCodeRequest(ctx, req, res, code)
  const link = ctx.showsLinks ? await makeLink() : null
  if (!ctx.showsLinks) ctx.background.run(name, makeLink)
  setResult(res, { url: link?.url ?? null, ...(member.request_token !== undefined && { requestToken: member.request_token }) })
  sendJson(res, 202, { message: ctx.texts.say(locale, 'message.link_requested'), [field]: link?.url ?? null, ...member })
}
