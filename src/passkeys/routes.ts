import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  LastLoginMethodError,
  NotFoundError,
  PasskeyInvalidError,
  PasskeyLimitError,
  PasskeyTakenError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../core/errors'
import { done } from '../http/description'
import { localeOf } from '../http/locale'
import { setResult } from '../http/outcome'
import { type Route, withBody } from '../http/routes'
import { sendEmpty, sendJson } from '../http/send'
import { text } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { codeBeforeFreshness } from '../second-factor/code-before-freshness'
import { keptRefreshToken } from '../second-factor/factor-code'
import {
  confirmIrreversible,
  type IrreversibleFields,
  irreversibleBody,
  irreversibleRefusals,
  passkeyFields,
} from '../second-factor/irreversible-code'
import { getAuth } from '../sessions/current-auth'
import { clearEndedCookies } from '../sessions/ended-cookies'
import { codeDevice } from '../sessions/reauthentication/code-device'
import { aliveSession, freshSession, sessionOf } from '../sessions/reauthentication/fresh-session'
import { factorPresented } from '../sessions/reauthentication/require-factor'
import { verifiedAddress } from '../sessions/reauthentication/require-proven-address'
import type { RouteGuards } from '../sessions/route-guards'
import { routesByDelivery } from '../sessions/routes-by-delivery'
import { sameSiteWhenByCookie } from '../sessions/same-site-by-cookie'
import { refuseSupersededToken } from '../sessions/superseded-token'
import { passkeyLoginRoutes, sessionPasskeyLoginRoute } from './login-routes'
import { listPasskeys, removePasskey, renamePasskey } from './manage'
import { creationOptionsSchema, optionsBody } from './options'
import { passkeyBody, passkeySchema } from './public-passkey'
import { passkeyRegistrationOptions, registerPasskey } from './register'
import { passkeyStepRoute } from './step-route'

/** Returns the routes of passkeys: for logins, and for a person's own passkeys. Returns no routes if passkeys are off. */
export function passkeyRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (!ctx.webauthn) return []
  return [
    ...routesByDelivery(ctx, (line) => passkeyLoginRoutes(ctx, line)),
    ...sessionPasskeyLoginRoute(ctx),
    ...registrationRoutes(ctx, guards),
    ...ownPasskeyRoutes(ctx, guards),
    ...(ctx.settings.mfaEnabled ? [passkeyStepRoute(ctx)] : []),
  ]
}

const passkeyName = text(64)
  .min(1)
  .pattern(/^\P{Cc}*$/u)

interface RegistrationBody {
  credential: object
  challenge_token: string
  name?: string
  refresh_token?: string
}

function registrationRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const before = [routeRateLimit(ctx, 'passkey_register'), guards.requireAuth(), sameSiteWhenByCookie(ctx), aliveSession(ctx)]
  return [
    withBody({
      method: 'POST',
      path: '/passkeys/register/options',
      describes: {
        summary: 'Get the options to create a passkey',
        answers: [{ status: 200, description: 'The options for `navigator.credentials.create()`.', schema: creationOptionsSchema }],
        refuses: [UnauthorizedError, AccountInactiveError, PasskeyLimitError, ...irreversibleRefusals(ctx)],
      },
      before: [...before, verifiedAddress(ctx), factorPresented(ctx), codeBeforeFreshness(ctx), freshSession(ctx)],
      body: irreversibleBody<IrreversibleFields & { refresh_token?: string }>(ctx, { refresh_token: keptRefreshToken }),
      handle: async (req, res, body) => {
        const [{ sub: userId }, session] = [getAuth(req), sessionOf(req)]
        const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
        const begun = await passkeyRegistrationOptions(ctx, { userId, session, isFinal })
        setResult(res, begun)
        sendJson(res, 200, optionsBody(begun))
      },
    }),
    withBody({
      method: 'POST',
      path: '/passkeys/register',
      describes: {
        summary: 'Register the passkey that the browser created',
        answers: [{ status: 201, description: 'The passkey. The owner gets a mail.', schema: passkeySchema }],
        refuses: [UnauthorizedError, PasskeyInvalidError, PasskeyTakenError, PasskeyLimitError],
      },
      before,
      body: Joi.object<RegistrationBody>({ ...passkeyFields, name: passkeyName.optional(), refresh_token: keptRefreshToken }),
      handle: async (req, res, { credential, challenge_token: challenge, name }) => {
        const [claims, session] = [getAuth(req), sessionOf(req)]
        const passkey = await registerPasskey(ctx, {
          userId: claims.sub,
          session,
          credential,
          challenge,
          name,
          check: (ctx, user) => refuseSupersededToken(ctx, { claims, session }, user),
          locale: localeOf(ctx, req),
        })
        setResult(res, passkey)
        sendJson(res, 201, passkeyBody(passkey))
      },
    }),
  ]
}

function ownPasskeyRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const signedIn = [routeRateLimit(ctx, 'passkeys'), guards.requireAuth()]
  const changing = [...signedIn, sameSiteWhenByCookie(ctx)]
  return [
    {
      method: 'GET',
      path: '/passkeys',
      describes: {
        summary: 'List the passkeys of the account',
        answers: [{ status: 200, description: 'The passkeys, oldest first.', schema: { type: 'array', items: passkeySchema } }],
        refuses: [TooManyRequestsError],
      },
      before: [...signedIn, aliveSession(ctx)],
      handle: async (req, res) => {
        const passkeys = await listPasskeys(ctx, getAuth(req).sub)
        setResult(res, passkeys)
        sendJson(res, 200, passkeys.map(passkeyBody))
      },
    },
    withBody({
      method: 'PATCH',
      path: '/passkeys/:id',
      describes: {
        summary: 'Rename a passkey',
        answers: [{ status: 200, description: 'The passkey.', schema: passkeySchema }],
        refuses: [NotFoundError],
      },
      before: [...changing, aliveSession(ctx)],
      body: Joi.object<{ name: string; refresh_token?: string }>({ name: passkeyName, refresh_token: keptRefreshToken }),
      handle: async (req, res, { name }) => {
        const passkey = await renamePasskey(ctx, getAuth(req).sub, String(req.params['id']), name)
        setResult(res, passkey)
        sendJson(res, 200, passkeyBody(passkey))
      },
    }),
    withBody({
      method: 'DELETE',
      path: '/passkeys/:id',
      describes: {
        summary: 'Remove a passkey from the account, and revoke the other sessions that a passkey opened',
        answers: [done],
        refuses: [UnauthorizedError, NotFoundError, LastLoginMethodError, ...irreversibleRefusals(ctx)],
      },
      before: [...changing, aliveSession(ctx), codeBeforeFreshness(ctx), freshSession(ctx)],
      body: irreversibleBody<IrreversibleFields & { refresh_token?: string }>(ctx, { refresh_token: keptRefreshToken }),
      handle: async (req, res, body) => {
        const [{ sub: userId }, session] = [getAuth(req), sessionOf(req)]
        const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
        const locale = localeOf(ctx, req)
        await removePasskey(ctx, userId, String(req.params['id']), { session, isFinal, locale })
        await clearEndedCookies(ctx, req, res)
        sendEmpty(res)
      },
    }),
  ]
}
