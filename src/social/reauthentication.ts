import type { Request, Response } from 'express'
import Joi from 'joi'
import { type AuthContext, transaction } from '../context'
import {
  AccountInactiveError,
  MfaFactorTooNewError,
  MfaRequiredError,
  OAuthAccountNotLinkedError,
  OAuthProviderNotConfiguredError,
  OAuthStateMismatchError,
  ReauthenticationRequiredError,
  UnauthorizedError,
} from '../core/errors'
import { shape, string } from '../http/description'
import { text } from '../http/input'
import type { Route } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import { canVerifySignIn } from '../providers/id-token'
import { claimsToGoOn } from '../sessions/ask-for-claims'
import { isAccountDigest } from '../sessions/challenge'
import { readRefreshCookie } from '../sessions/cookies'
import { isApp, successTarget } from '../sessions/destination'
import { operation } from '../sessions/operation'
import { reauthenticationRequired, requestSessionOf, requireNewToken } from '../sessions/reauthentication/fresh-session'
import { identityUsableAt, needsFactor } from '../sessions/reauthentication/methods'
import { issueConfirmationTicket, requireConfirming, type VerifiedIdentity } from '../sessions/reauthentication/provider-proof'
import { addMethods, keepServerSession, keepStateless, keepTokens } from '../sessions/reissue-tokens'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import { type ReissuedSession, sendReissuedTokens, setReissuedCookies } from '../sessions/send-reissued-tokens'
import type { SessionWithUser, UserRecord } from '../store/auth-store'
import { beginBoundAttempt, isInSameSession } from './attempts'
import { registeredProvider } from './client-share'
import { goOn } from './error-redirect'
import { listIdentities } from './identities'
import { requireTicketSession, sendTicket } from './link-identity'
import { type DestinationBody, destinationFields, destinationOfBody } from './read-destination'
import type { RedirectFlow } from './redirect-flow'
import type { BoundAttempt } from './state-cookie'

export function reauthenticationRoute(ctx: AuthContext, guards: RouteGuards, flow: RedirectFlow): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/oauth/:provider/reauthenticate',
    summary: 'Confirm the session at a linked provider: get the URL for the browser',
    answers: [{ status: 200, description: 'The URL to send the browser to.', schema: shape('AuthorizeUrl', { authorize_url: string }) }],
    refuses: [
      UnauthorizedError,
      AccountInactiveError,
      MfaRequiredError,
      MfaFactorTooNewError,
      ReauthenticationRequiredError,
      OAuthAccountNotLinkedError,
      OAuthProviderNotConfiguredError,
    ],
    access: 'live session',
    limit: 'oauth_reauthenticate',
    body: Joi.object<DestinationBody & { refresh_token?: string }>({ refresh_token: text(4096).optional(), ...destinationFields }),
    handle: async (req, res, body) => {
      const { key } = registeredProvider(ctx, req)
      const { user, session } = requestSessionOf(req)
      const destination = destinationOfBody(ctx, body)
      await requireMethod(ctx, user, key)
      const attempt = beginBoundAttempt(ctx, req, res, { provider: key, purpose: 'reauthenticate', user, session, destination })
      const authorizeUrl = await flow.authorizeUrl(attempt)
      setResult(res, { authorizeUrl })
      sendJson(res, 200, { authorize_url: authorizeUrl })
    },
  })
}

/** Before the browser goes to a provider whose response could not confirm the session. */
async function requireMethod(ctx: AuthContext, user: UserRecord, provider: string): Promise<void> {
  if (needsFactor(ctx, user)) throw new MfaRequiredError()
  const identity = (await listIdentities(ctx, user.id)).find((linked) => linked.provider === provider)
  if (!identity) throw new OAuthAccountNotLinkedError({ details: { provider } })
  const usable = identityUsableAt(ctx, user, identity.createdAt)
  if (usable) throw new MfaFactorTooNewError({ details: { usable_at: usable.toISOString() } })
  const client = ctx.providers.get(provider)
  if (!client || !canVerifySignIn(client)) throw await reauthenticationRequired(ctx, user)
}

/**
 * Confirms the session that began, if cookies sign this browser in to it. Otherwise, and for an app, sends a ticket, which that session can
 * redeem at `POST /reauthenticate`.
 * @param isProven the provider's response shows a new sign-in; else ReauthenticationRequiredError
 * @throws what `requireConfirming` throws
 */
export async function finishReauthentication(
  ctx: AuthContext,
  req: Request,
  res: Response,
  attempt: BoundAttempt,
  { identity, isProven }: { identity: VerifiedIdentity; isProven: boolean },
): Promise<void> {
  if (!isProven) throw await refusal(ctx, attempt)
  if (isApp(attempt.destination) || !(await isInSameSession(ctx, req, attempt)))
    return sendTicket(ctx, res, 'reauthentication_ticket', await issueConfirmationTicket(ctx, attempt, identity), attempt)
  const kept = await makeFresh(ctx, attempt, identity, readRefreshCookie(ctx, req))
  const target = successTarget(ctx.settings, attempt.destination)
  if (target === null) return sendReissuedTokens(ctx, req, res, kept, ctx.settings.tokenDelivery)
  setReissuedCookies(ctx, req, res, kept)
  goOn(ctx, req, res, target, attempt.destination)
}

async function refusal(ctx: AuthContext, { userId }: BoundAttempt): Promise<Error> {
  const user = await ctx.store.users.find(userId)
  return user ? reauthenticationRequired(ctx, user) : new OAuthStateMismatchError()
}

async function makeFresh(
  ctx: AuthContext,
  attempt: BoundAttempt,
  identity: VerifiedIdentity,
  refreshToken: string | null,
): Promise<ReissuedSession> {
  const asking = await findAsking(ctx, attempt)
  if (asking) await requireNewToken(ctx, { ...asking, refreshToken })
  const session = asking?.session ?? null
  const claims = await claimsToGoOn(ctx, { userId: attempt.userId, session, amr: addMethods(session, [], ['ext']) })
  return transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(attempt.userId)
    if (!user || !isAccountDigest(ctx.keys.state, user, attempt.digest)) throw new OAuthStateMismatchError()
    if (needsFactor(ctx, user)) throw new MfaRequiredError()
    await requireConfirming(ctx, user, identity)
    const session = await requireTicketSession(ctx, attempt)
    const now = ctx.now()
    const renewal = { amr: addMethods(session, [], ['ext']), authenticatedAt: now, tokenAuthenticatedAt: now, refreshToken, claims }
    if (!session) return keepStateless(ctx, user, renewal, null)
    return session.kind === 'session' ? keepServerSession(ctx, session, renewal) : keepTokens(ctx, user, session, renewal)
  })
}

/** As it was before the transaction. Null: no step before the transaction needs it. */
async function findAsking(ctx: AuthContext, { sessionId }: BoundAttempt): Promise<SessionWithUser | null> {
  const isNeeded = ctx.accessTokenClaims !== null || !ctx.settings.accessTokenSessionClaims
  return (isNeeded && sessionId !== null && (await ctx.store.sessions?.find({ id: sessionId }))) || null
}
