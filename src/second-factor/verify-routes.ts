import type { ErrorRequestHandler, Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  MfaCodeInvalidError,
  MfaThrottledError,
  MfaTokenInvalidError,
  PasskeyRejectedError,
  TooManyRequestsError,
  UnsupportedMediaTypeError,
} from '../core/errors'
import { readRefusal, setRefusalHeaders } from '../http/error-envelope'
import { withFixedResponseTime } from '../http/fixed-response-time'
import { sendPage } from '../http/html/send-page'
import { isTrustChecked } from '../http/html/trust-checkbox'
import { isForm, readForm, text, validate } from '../http/input'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { refuseCrossSite, refusingCrossSite } from '../http/same-site'
import { sendRedirect, withParameter } from '../http/send'
import { leadToTasks } from '../login-tasks/lead-to-tasks'
import { stateRefusals } from '../sessions/account-state'
import { destinationOfChallenge } from '../sessions/challenge'
import { loginClient, setLoginCookies } from '../sessions/delivery'
import { type AppDestination, isApp, successTarget } from '../sessions/destination'
import { presentedDevice, previousToken } from '../sessions/devices/device-cookie'
import { sendChallenge } from '../sessions/devices/send-challenge'
import type { AnyLoginResult, LoginClient } from '../sessions/login'
import { type LoginOperation, loginRoute, sessionLoginRoute } from '../sessions/login-route'
import type { RouteSet } from '../sessions/routes-by-delivery'
import { factorCode } from './accept-code'
import { codeOrPasskey, type IrreversibleFields, type PasskeyFields } from './irreversible-code'
import { type ChallengeVerification, verifyMfa } from './verify-challenge'

interface VerificationBody extends IrreversibleFields, PasskeyFields {
  mfa_token: string
  previous_token?: string
  trust_device?: boolean
}

const challengeVerification = (ctx: AuthContext, takesTrust: boolean): LoginOperation<VerificationBody> => ({
  path: '/mfa/verify',
  describes: describesVerify(ctx),
  body: codeOrPasskey<VerificationBody>(ctx, { mfa_token: text(4096), ...previousToken, ...(takesTrust && trustField(ctx)) }),
  hidesAccount: true,
  run: (ctx, req, { mfa_token: mfaToken, code, credential, challenge_token: challenge, trust_device: trustDevice, ...body }, client) => {
    const given = { mfaToken, code, credential, challenge, trustDevice, locale: localeOf(ctx, req) }
    return verifyMfa(ctx, given, client, presentedDevice(ctx, req, body))
  },
})

/** Only where the response can set the cookie of a trusted browser. */
function trustField({ settings }: AuthContext): Joi.SchemaMap {
  return settings.trustedDeviceDays > 0 ? { trust_device: Joi.boolean().optional().default(false) } : {}
}

function describesVerify(ctx: AuthContext) {
  const { settings } = ctx
  const refuses = [MfaTokenInvalidError, MfaCodeInvalidError, MfaThrottledError, ...stateRefusals(ctx)]
  return settings.passkeysEnabled
    ? {
        summary: 'Finish a login with a code of the second factor, a recovery code, or a passkey',
        refuses: [...refuses, PasskeyRejectedError],
      }
    : { summary: 'Finish a login with a code of the second factor, or a recovery code', refuses }
}

/** One route is for JSON, and one for our page's form. */
export function verifyRoutes(ctx: AuthContext, set: RouteSet): Route[] {
  return [...challengeForm(ctx, set), loginRoute(ctx, set, challengeVerification(ctx, set.delivery !== 'bearer'))]
}

export function sessionVerifyRoutes(ctx: AuthContext): Route[] {
  return sessionLoginRoute(ctx, challengeVerification(ctx, true))
}

const fields = Joi.object<{ mfa_token: string; code: string; trust_device: string }>({
  mfa_token: text(4096),
  code: factorCode,
  trust_device: Joi.string().allow('').optional().default(''),
})

/** After a provider's callback and a login by email. An app as the destination gets a code, and no cookie. */
function challengeForm(ctx: AuthContext, { base, delivery }: RouteSet): Route[] {
  const { oauthEnabled, tokenDelivery, appRedirects, emailLogin, backendLinks } = ctx.settings
  const leadsToApps = tokenDelivery === 'bearer' && appRedirects.length > 0
  const isByMail = backendLinks && (emailLogin === 'link' || emailLogin === 'both')
  if (!(oauthEnabled || isByMail) || !(delivery !== 'bearer' || leadsToApps)) return []
  return [
    withFixedResponseTime(ctx, {
      method: 'POST',
      path: `${base}/mfa/verify`,
      describes: {
        summary: 'Finish a login with the form of the second-factor page',
        answers: [],
        refuses: [MfaThrottledError],
        isPage: true,
      },
      when: isForm,
      before: [refusingCrossSite((req) => refuseCrossSite(ctx, req))],
      handle: (ctx, req, res) => finish(ctx, req, res),
      onError: formErrors(ctx),
    }),
  ]
}

async function finish(ctx: AuthContext, req: Request, res: Response): Promise<(() => void) | undefined> {
  const { mfa_token: mfaToken, code, trust_device: checked } = validate(fields, await readForm(req, res))
  const destination = destinationOfChallenge(ctx, mfaToken)
  const target = successTarget(ctx.settings, destination)
  if (target === null) throw new UnsupportedMediaTypeError() // this login began in a script, which sends JSON
  const app = isApp(destination) ? destination : null
  try {
    if (app) sendRedirect(res, withParameter(target, 'code', await codeAfter(ctx, req, { mfaToken, code }, app)))
    else {
      const trustDevice = isTrustChecked(checked)
      const result = await verify(ctx, req, { mfaToken, code, trustDevice }, loginClient(ctx, req))
      if (result.kind === 'tasks') leadToTasks(ctx, req, res, result)
      else {
        setLoginCookies(ctx, res, result)
        sendRedirect(res, target)
      }
    }
    return undefined
  } catch (error) {
    if (error instanceof MfaCodeInvalidError) return () => sendChallenge(ctx, req, res, { mfaToken, target, isWrong: true })
    if (app && error instanceof MfaTokenInvalidError) return () => sendRedirect(res, withParameter(target, 'error', error.code))
    throw error
  }
}

async function codeAfter(ctx: AuthContext, req: Request, given: ChallengeVerification, app: AppDestination): Promise<string> {
  const result = await verify(ctx, req, given, { gets: app, origin: {} })
  if (!('code' in result)) throw new MfaTokenInvalidError() // cannot happen: a login with a second factor gives the app its code
  return result.code
}

function verify(ctx: AuthContext, req: Request, given: ChallengeVerification, client: LoginClient): Promise<AnyLoginResult> {
  return verifyMfa(ctx, { ...given, locale: localeOf(ctx, req) }, client, presentedDevice(ctx, req))
}

function formErrors(ctx: AuthContext): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    if (res.headersSent || thrown instanceof UnsupportedMediaTypeError) return next(thrown)
    const error = readRefusal(ctx.logger, req, thrown)
    if (error.status !== 401) setRefusalHeaders(res, error)
    if (error instanceof MfaTokenInvalidError) sendPage(ctx, req, res, 400, 'challenge_over')
    else sendPage(ctx, req, res, error.status, error instanceof TooManyRequestsError ? 'too_many' : 'trouble')
  }
}
