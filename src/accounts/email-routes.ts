import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { hasPasswords } from '../core/config/every-setting'
import {
  AccountInactiveError,
  EmailLinkForbiddenError,
  EmailTakenError,
  InvalidTokenError,
  MfaRequiredError,
  TokenExpiredError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../core/errors'
import { type Answer, shape, string } from '../http/description'
import { emailAddress, requireEmail } from '../http/email-address'
import { type FormNeeds, linkPage } from '../http/html/link-page'
import { passwordText, text, validate } from '../http/input'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import { countAttempt, limitsOfSubjects, routeRateLimit } from '../rate-limits/rate-limiter'
import { confirmIrreversible, type IrreversibleFields, irreversibleBody, irreversibleRefusals } from '../second-factor/irreversible-code'
import { clearEndedCookies, getAuth } from '../sessions/current-auth'
import { presentedDevice, previousToken } from '../sessions/devices/device-cookie'
import { countLinkRequest } from '../sessions/devices/login-limits'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { requestSessionOf, sessionOf } from '../sessions/reauthentication/fresh-session'
import { factorPresented } from '../sessions/reauthentication/irreversible-change'
import { type RouteGuards, routesByDelivery } from '../sessions/routes-by-delivery'
import { cookieOf, keepBrowser } from '../sessions/send-reissued-tokens'
import { type ChangeNeeds, confirmEmailChange, lookAtEmailChange, requireAsker, sendEmailChange, verifyEmailChange } from './email-change'
import {
  oldPassword,
  passwordField,
  passwordRefusals,
  type SignupOwnershipBody,
  signupOwnershipOf,
  signupOwnershipOfForm,
} from './email-verification/signup-ownership'
import { hostGuard } from './host-guard'
import { answerLinkRequest, linkRequestAnswer } from './link-request-routes'
import { codeRequestOf } from './mailed-codes/code-request'
import { type LinkOrCodeBody, linkOrCode, needsLinkOrCode, presentedBy, redeem, redeemingRoute, withCode } from './mailed-codes/redeem-code'
import { confirmEmail, lookAtVerification, sendEmailVerification } from './verify-email'

const messageAnswer: Answer = { status: 200, description: 'Done.', schema: shape('Message', { message: string }) }

const verifiedAnswer: Answer = {
  status: 200,
  description:
    'Done. The first verification of an address removes the password, if the request does not show that the same person signed up. Then `reset_token` sets a new password.',
  schema: {
    title: 'Verified',
    type: 'object',
    properties: { message: string, password_required: { const: true }, reset_token: string },
    required: ['message'],
  },
}

interface EmailChangeBody extends IrreversibleFields {
  new_email: string
  /** Ignored, because the route requires a fresh session. */
  current_password?: string
  /** Identifies the session, if the access token does not. */
  refresh_token?: string
}

function redeemBody(ctx: AuthContext) {
  return Joi.object<SignupOwnershipBody & LinkOrCodeBody>({
    ...linkOrCode(ctx),
    ...passwordField(ctx),
    refresh_token: text(4096).optional(),
  })
}

/** A change can need the account's password, so only apps with local accounts have its routes. A verification needs the link alone. */
export function emailRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const { localAccountsEnabled: isLocal, backendLinks, emailVerificationUrlTemplate } = ctx.settings
  const isVerified = isLocal || ctx.mailQueue !== null
  // Without local accounts, the host need not set a template. The link then leads to our page.
  const hasPage = backendLinks || (!isLocal && emailVerificationUrlTemplate === null)
  return [
    ...(isVerified ? verificationRoutes(ctx, guards) : []),
    ...(isLocal ? changeRoutes(ctx, guards) : []),
    ...(isVerified && hasPage ? verificationPage(ctx) : []),
    ...(isLocal && backendLinks ? changePage(ctx) : []),
  ]
}

function verificationRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  return [
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/email-verify/request',
      summary: 'Request a mail to verify the address',
      answers: [linkRequestAnswer(ctx, 'verify_url')],
      refuses: [AccountInactiveError, TooManyRequestsError],
      access: 'live session',
      before: hostGuard(ctx, 'link', 'email_verify_request'),
      body: Joi.object<{ previous_token?: string; refresh_token?: string }>({ ...previousToken, refresh_token: text(4096).optional() }),
      handle: (req, res, body) => requestVerification(ctx, req, res, body),
    }),
    redeemingRoute(ctx, {
      method: 'POST',
      path: '/email-verify/confirm',
      describes: {
        summary: withCode(ctx, 'Verify the address with the mailed link'),
        answers: [hasPasswords(ctx.settings) ? verifiedAnswer : messageAnswer],
        refuses: [InvalidTokenError, ...passwordRefusals(ctx), TokenExpiredError, EmailLinkForbiddenError, TooManyRequestsError],
        ...needsLinkOrCode(ctx),
      },
      before: [routeRateLimit(ctx, 'email_verify_confirm')],
      body: redeemBody(ctx),
      handle: async (ctx, req, res, body) => {
        const locale = localeOf(ctx, req)
        const presented = presentedBy(ctx, req, 'EMAIL_VERIFICATION', body)
        const evidence = await signupOwnershipOf(ctx, req, body)
        const verified = await redeem(ctx, presented, (proof) => confirmEmail(ctx, proof, { evidence, locale }))
        const { resetLink } = verified
        await clearEndedCookies(ctx, req, res)
        setResult(res, verified)
        const missing = resetLink ? { password_required: true, reset_token: resetLink.token } : {}
        sendJson(res, 200, { message: ctx.texts.say(locale, 'message.email_verified'), ...missing })
      },
    }),
  ]
}

function changeRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  return [
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/email-change/request',
      summary: 'Request a mail to a new address',
      answers: [linkRequestAnswer(ctx, 'confirm_url')],
      refuses: [UnauthorizedError, AccountInactiveError, MfaRequiredError, TooManyRequestsError, ...irreversibleRefusals(ctx)],
      access: 'fresh session',
      limit: 'email_change_request',
      checks: [factorPresented(ctx)],
      body: irreversibleBody<EmailChangeBody>(ctx, {
        new_email: emailAddress,
        ...(hasPasswords(ctx.settings) && { current_password: passwordText().optional() }),
        refresh_token: text(4096).optional(),
      }),
      handle: (req, res, body) => requestChange(ctx, req, res, body),
    }),
    ...routesByDelivery(ctx, ({ base, delivery, before }) => [
      redeemingRoute(ctx, {
        method: 'POST',
        path: `${base}/email-change/confirm`,
        describes: {
          summary: withCode(ctx, 'Change to the new address with the mailed link'),
          answers: [messageAnswer],
          refuses: [
            InvalidTokenError,
            UnauthorizedError,
            TokenExpiredError,
            EmailLinkForbiddenError,
            EmailTakenError,
            TooManyRequestsError,
          ],
          ...needsLinkOrCode(ctx),
        },
        // Without the cross-site rule: the link works from any page, but the cookies of another site's request do not count.
        before: [...(base === '' ? [] : before), routeRateLimit(ctx, 'email_change_confirm')],
        body: redeemBody(ctx),
        handle: async (ctx, req, res, body) => {
          const locale = localeOf(ctx, req)
          const presented = presentedBy(ctx, req, 'EMAIL_CHANGE', body)
          const change = { evidence: await signupOwnershipOf(ctx, req, body), cookie: cookieOf(ctx, req, delivery), locale }
          await requireAsker(ctx, presented, change.evidence)
          keepBrowser(ctx, req, res, await redeem(ctx, presented, (proof) => confirmEmailChange(ctx, proof, change)))
          sendJson(res, 200, { message: ctx.texts.say(locale, 'message.email_changed') })
        },
      }),
    ]),
  ]
}

async function requestVerification(ctx: AuthContext, req: Request, res: Response, body: { previous_token?: string }): Promise<void> {
  const { user, session } = requestSessionOf(req)
  const name = 'email_verify_request'
  const client = clientOf(req)
  const device = await countLinkRequest(ctx, { name, email: user.email, client, presented: presentedDevice(ctx, req, body) })
  const locale = localeOf(ctx, req)
  const code = codeRequestOf(ctx, req, 'EMAIL_VERIFICATION')
  await answerLinkRequest(ctx, req, res, { name, field: 'verify_url', locale, code }, () =>
    sendEmailVerification(ctx, user, locale, { device, session, code }),
  )
}

async function requestChange(ctx: AuthContext, req: Request, res: Response, body: EmailChangeBody): Promise<void> {
  const name = 'email_change_request'
  await countAttempt(ctx, limitsOfSubjects(ctx.rateLimits.links, { name, email: requireEmail(body.new_email), client: clientOf(req) }))
  const [{ sub: userId, amr }, session] = [getAuth(req), sessionOf(req)]
  const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
  const change = { userId, amr, newEmail: body.new_email, session, isFinal }
  const proven = await verifyEmailChange(ctx, change)
  const locale = localeOf(ctx, req)
  const code = codeRequestOf(ctx, req, 'EMAIL_CHANGE', { userId, sessionId: session?.id ?? null })
  await answerLinkRequest(ctx, req, res, { name, field: 'confirm_url', locale, code }, () => sendEmailChange(ctx, proven, locale, code))
}

function verificationPage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/email-verify/:token',
    summary: 'Verify the address',
    before: [routeRateLimit(ctx, 'email_verify_confirm')],
    form: 'email_verify',
    done: 'email_verified',
    look: async (token, { req }) => ({
      password: (await lookAtVerification(ctx, token, await signupOwnershipOf(ctx, req))) ? { canSkip: true } : null,
    }),
    redeem: async ({ token, fields, locale, req, res }) => {
      const evidence = await signupOwnershipOfForm(ctx, req, fields, (evidence) => lookAtVerification(ctx, token, evidence))
      const { resetLink } = await confirmEmail(ctx, token, { evidence, locale })
      await clearEndedCookies(ctx, req, res)
      return resetLink && { resetToken: resetLink.token }
    },
  })
}

const shownNeeds: Readonly<Record<ChangeNeeds, FormNeeds>> = {
  nothing: {},
  password: { password: { canSkip: false } },
  'sign in': { problem: 'link.sign_in_first' },
  // Another login would open another session, so the page does not lead to the login page.
  'asking session': { problem: 'link.asking_session_first', hasLoginLink: false },
}

function changePage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/email-change/:token',
    summary: 'Change to the new address',
    refuses: [EmailTakenError],
    before: [routeRateLimit(ctx, 'email_change_confirm')],
    form: 'email_change',
    done: 'email_changed',
    look: async (token, { req }) => {
      const { newEmail, needs } = await lookAtEmailChange(ctx, token, await signupOwnershipOf(ctx, req))
      return { items: [newEmail], ...shownNeeds[needs] }
    },
    redeem: async ({ token, fields, locale, req, res }) => {
      const { password } = validate(oldPassword, fields)
      const evidence = await signupOwnershipOf(ctx, req, { password })
      const isSignedIn = Boolean(evidence.token) || evidence.requestSession != null
      const { tokenDelivery } = ctx.settings
      const cookie = cookieOf(ctx, req, tokenDelivery === 'both' ? 'cookie' : tokenDelivery)
      const staying = await confirmEmailChange(ctx, token, { evidence, cookie, locale })
      keepBrowser(ctx, req, res, staying)
      return { page: 'email_changed', items: [staying.user.email], hasLoginLink: !isSignedIn }
    },
  })
}
