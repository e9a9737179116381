import Joi from 'joi'
import { announceChange } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
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
import { text } from '../http/input'
import { type Locale, localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { keptRefreshToken } from '../second-factor/accept-code'
import {
  confirmIrreversible,
  type IrreversibleFields,
  irreversibleBody,
  irreversibleRefusals,
  passkeyFields,
} from '../second-factor/irreversible-code'
import { clearEndedCookies, getAuth } from '../sessions/current-auth'
import { announceEnded, endSessionsOpenedBy, forgetMethod } from '../sessions/log-out'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { holdSession, sessionOf } from '../sessions/reauthentication/fresh-session'
import { factorPresented, type Irreversibility, passkeyDigest, verifiedAddress } from '../sessions/reauthentication/irreversible-change'
import { hasOtherLoginMethod } from '../sessions/reauthentication/methods'
import { type RouteGuards, routesByDelivery } from '../sessions/routes-by-delivery'
import { refuseSupersededToken } from '../sessions/superseded-token'
import type { SessionRecord } from '../store/auth-store'
import { distrust } from '../trusted-devices/distrust'
import { creationOptionsSchema, optionsBody } from './passkey-challenge'
import { passkeyLoginRoutes, sessionPasskeyLoginRoute } from './passkey-login'
import { type PublicPasskey, passkeyBody, passkeyRegistrationOptions, passkeySchema, registerPasskey, toPublicPasskey } from './register'
import { signalRoute } from './signal'
import { passkeyStepRoute } from './step-route'
import { passkeyToolsOf } from './verify-passkey'

/** Oldest first. */
export async function listPasskeys(ctx: AuthContext, userId: string): Promise<PublicPasskey[]> {
  return (await passkeyToolsOf(ctx).passkeys.listForUser(userId)).map(toPublicPasskey)
}

/** @throws NotFoundError unless the passkey belongs to this account */
export async function renamePasskey(ctx: AuthContext, userId: string, id: string, name: string): Promise<PublicPasskey> {
  const { passkeys } = passkeyToolsOf(ctx)
  if (!(await passkeys.rename(id, userId, name))) throw new NotFoundError()
  const renamed = (await passkeys.listForUser(userId)).find((passkey) => passkey.id === id)
  if (!renamed) throw new NotFoundError()
  return toPublicPasskey(renamed)
}

interface PasskeyRemoval {
  /** If the session ends meanwhile, the call fails. */
  session?: Pick<SessionRecord, 'id' | 'userId'> | null
  isFinal?: Irreversibility
  /** Language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/**
 * Locks the user's row first, like every login: after the commit, no login with the passkey can succeed. Revokes all other sessions that a
 * passkey opened, because the rows do not say which. With the last passkey, this session loses the method.
 * @throws NotFoundError unless the passkey is this account's, UnauthorizedError, InvalidTokenError; LastLoginMethodError
 * (`oauthKeepLastLoginMethod`)
 */
export async function removePasskey(
  ctx: AuthContext,
  userId: string,
  id: string,
  { session, isFinal, locale }: PasskeyRemoval = {},
): Promise<void> {
  const ended = await announceChange(ctx, userId, { topic: 'passkey_removed', locale }, (leaveUndoPoint) =>
    transaction(ctx, async (ctx) => {
      const { passkeys } = passkeyToolsOf(ctx)
      const user = await ctx.store.users.lock(userId)
      if (!user?.isActive) throw new UnauthorizedError()
      const held = await holdSession(ctx, session)
      const all = await passkeys.listForUser(userId)
      const passkey = all.find((one) => one.id === id)
      if (!passkey) throw new NotFoundError()
      const isLast = ctx.settings.oauthKeepLastLoginMethod && !(await hasOtherLoginMethod(ctx, user, 'passkey'))
      if (isLast) throw new LastLoginMethodError()
      await leaveUndoPoint(ctx, { user, passkey: passkeyDigest(passkey), isFinal })
      await passkeys.deleteForUser(userId, id)
      ctx.events.emit('passkey.removed', { userId, passkeyId: id })
      if (held && all.length === 1) await forgetMethod(ctx, held, 'passkey')
      await distrust(ctx, userId, { reason: 'account_changed' }) // the rows do not say which passkey trusted a browser
      return endSessionsOpenedBy(ctx, userId, { amr: 'passkey' }, held)
    }),
  )
  announceEnded(ctx, userId, ended)
}

/** Logins, and a person's own passkeys. None if passkeys are off. */
export function passkeyRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  if (!ctx.webauthn) return []
  return [
    ...routesByDelivery(ctx, (line) => passkeyLoginRoutes(ctx, line)),
    ...sessionPasskeyLoginRoute(ctx),
    ...registrationRoutes(ctx, guards),
    ...signalRoute(ctx, guards), // before `/passkeys/:id`, which also matches its path
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
  return [
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/passkeys/register/options',
      summary: 'Get the options to create a passkey',
      answers: [{ status: 200, description: 'The options for `navigator.credentials.create()`.', schema: creationOptionsSchema }],
      refuses: [UnauthorizedError, AccountInactiveError, PasskeyLimitError, ...irreversibleRefusals(ctx)],
      access: 'fresh session',
      limit: 'passkey_register',
      checks: [verifiedAddress(ctx), factorPresented(ctx)],
      body: irreversibleBody<IrreversibleFields & { refresh_token?: string }>(ctx, { refresh_token: keptRefreshToken }),
      handle: async (req, res, body) => {
        const [{ sub: userId }, session] = [getAuth(req), sessionOf(req)]
        const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
        const begun = await passkeyRegistrationOptions(ctx, { userId, session, isFinal })
        setResult(res, begun)
        sendJson(res, 200, optionsBody(begun))
      },
    }),
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/passkeys/register',
      summary: 'Register the passkey that the browser created',
      answers: [{ status: 201, description: 'The passkey. The owner gets a mail.', schema: passkeySchema }],
      refuses: [UnauthorizedError, PasskeyInvalidError, PasskeyTakenError, PasskeyLimitError],
      access: 'live session',
      limit: 'passkey_register',
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
  return [
    ...operation(ctx, guards, {
      method: 'GET',
      path: '/passkeys',
      summary: 'List the passkeys of the account',
      answers: [{ status: 200, description: 'The passkeys, oldest first.', schema: { type: 'array', items: passkeySchema } }],
      refuses: [TooManyRequestsError],
      access: 'live session',
      limit: 'passkeys',
      handle: async (req, res) => {
        const passkeys = await listPasskeys(ctx, getAuth(req).sub)
        setResult(res, passkeys)
        sendJson(res, 200, passkeys.map(passkeyBody))
      },
    }),
    ...operation(ctx, guards, {
      method: 'PATCH',
      path: '/passkeys/:id',
      summary: 'Rename a passkey',
      answers: [{ status: 200, description: 'The passkey.', schema: passkeySchema }],
      refuses: [NotFoundError],
      access: 'live session',
      limit: 'passkeys',
      body: Joi.object<{ name: string; refresh_token?: string }>({ name: passkeyName, refresh_token: keptRefreshToken }),
      handle: async (req, res, { name }) => {
        const passkey = await renamePasskey(ctx, getAuth(req).sub, String(req.params['id']), name)
        setResult(res, passkey)
        sendJson(res, 200, passkeyBody(passkey))
      },
    }),
    ...operation(ctx, guards, {
      method: 'DELETE',
      path: '/passkeys/:id',
      summary: 'Remove a passkey from the account, and revoke the other sessions that a passkey opened',
      answers: [done],
      refuses: [UnauthorizedError, NotFoundError, LastLoginMethodError, ...irreversibleRefusals(ctx)],
      access: 'fresh session',
      limit: 'passkeys',
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
