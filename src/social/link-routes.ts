import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  OAuthIdentityTakenError,
  OAuthProviderAlreadyLinkedError,
  OAuthProviderNotConfiguredError,
  OAuthStateMismatchError,
  UnauthorizedError,
} from '../core/errors'
import { type Description, shape, string } from '../http/description'
import { text } from '../http/input'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import type { OAuthTokens, OAuthUser } from '../providers/provider-client'
import { confirmIrreversible, type IrreversibleFields, irreversibleBody, irreversibleRefusals } from '../second-factor/irreversible-code'
import { isAccountDigest } from '../sessions/challenge'
import { getAuth } from '../sessions/current-auth'
import { isApp, successTarget } from '../sessions/destination'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { holdSession, sessionOf } from '../sessions/reauthentication/fresh-session'
import { verifiedAddress } from '../sessions/reauthentication/irreversible-change'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import { refuseSupersededToken } from '../sessions/superseded-token'
import { beginBoundAttempt, isInSameSession, ticketOwner } from './attempts'
import { registeredProvider } from './client-share'
import { linkRefusals, tokenRefusals } from './describes-callback'
import { goOn, redirectThrottled, throttledAnswers } from './error-redirect'
import { handOverTokens } from './hand-over-tokens'
import { identityBody, identitySchema } from './identities'
import { issueLinkTicket, linkIdentity, redeemLinkTicket, requireActive, requireTicketSession, sendTicket } from './link-identity'
import { type DestinationBody, destinationFields, destinationOfBody } from './read-destination'
import type { RedirectFlow } from './redirect-flow'
import type { BoundAttempt } from './state-cookie'
import { accessTokenText, linkWithToken } from './token-in-hand'

interface LinkBody extends DestinationBody, IrreversibleFields {
  access_token?: string
  /** Identifies the session, if the access token does not. */
  refresh_token?: string
}

const describesLink: Description = {
  summary: 'Link a provider to the account, by a redirect or with an access token of the provider',
  answers: [
    {
      status: 200,
      description: 'Without `access_token`: the URL to send the browser to. With `access_token`: the identity, if it was linked already.',
      schema: { oneOf: [shape('AuthorizeUrl', { authorize_url: string }), identitySchema] },
    },
    { status: 201, description: 'The linked identity.', schema: identitySchema },
  ],
  refuses: [UnauthorizedError, AccountInactiveError, ...linkRefusals, ...tokenRefusals, OAuthProviderNotConfiguredError],
}

export function linkRoutes(ctx: AuthContext, guards: RouteGuards, flow: RedirectFlow): Route[] {
  return [
    ...operation(ctx, guards, {
      method: 'POST',
      path: '/oauth/:provider/link',
      ...describesLink,
      answers: [...describesLink.answers, ...throttledAnswers(ctx)],
      refuses: [...(describesLink.refuses ?? []), ...irreversibleRefusals(ctx)],
      access: 'fresh session',
      limit: 'oauth_link',
      checks: [verifiedAddress(ctx)],
      body: irreversibleBody<LinkBody>(ctx, {
        access_token: accessTokenText.optional(),
        refresh_token: text(4096).optional(),
        ...destinationFields,
      }),
      handle: (req, res, body) => (body.access_token === undefined ? startLink(ctx, flow, req, res, body) : linkToken(ctx, req, res, body)),
      onError: redirectThrottled(ctx),
    }),
    ...redeemRoute(ctx, guards),
  ]
}

/** The page's own script opens this URL, because a script cannot follow a redirect to another site. */
async function startLink(ctx: AuthContext, flow: RedirectFlow, req: Request, res: Response, body: LinkBody): Promise<void> {
  const { key } = registeredProvider(ctx, req)
  const destination = destinationOfBody(ctx, body)
  const [claims, session] = [getAuth(req), sessionOf(req)]
  const user = await ctx.store.users.find(claims.sub)
  requireActive(user)
  refuseSupersededToken(ctx, { claims, session }, user)
  const isFinal = await confirmIrreversible(ctx, { userId: user.id, session, device: await codeDevice(ctx, req, body) }, body)
  const intent = { provider: key, purpose: 'link', user, session, isFinal, destination } as const
  const attempt = beginBoundAttempt(ctx, req, res, intent)
  const authorizeUrl = await flow.authorizeUrl(attempt)
  setResult(res, { authorizeUrl })
  sendJson(res, 200, { authorize_url: authorizeUrl })
}

async function linkToken(ctx: AuthContext, req: Request, res: Response, { access_token: token = '', ...body }: LinkBody): Promise<void> {
  const { key } = registeredProvider(ctx, req)
  const claims = getAuth(req)
  const session = sessionOf(req)
  const given = { provider: key, accessToken: token }
  const isFinal = await confirmIrreversible(ctx, { userId: claims.sub, session, device: await codeDevice(ctx, req, body) }, body)
  const { identity, isNew } = await linkWithToken(ctx, claims.sub, given, {
    locale: localeOf(ctx, req),
    isFinal,
    async check(ctx, user) {
      requireActive(user)
      refuseSupersededToken(ctx, { claims, session }, user)
      await holdSession(ctx, session)
    },
  })
  sendJson(res, isNew ? 201 : 200, identityBody(identity))
}

/**
 * Links only if this browser is signed in to the account and session that began. Otherwise, and for an app, sends a ticket. Logs nobody in.
 * @throws OAuthStateMismatchError if the account has changed since the start, or if another person is signed in
 */
export async function finishLink(
  ctx: AuthContext,
  req: Request,
  res: Response,
  attempt: BoundAttempt,
  { profile, tokens }: { profile: OAuthUser; tokens: OAuthTokens },
): Promise<void> {
  if (isApp(attempt.destination) || !(await isInSameSession(ctx, req, attempt)))
    return sendTicket(ctx, res, 'link_ticket', await issueLinkTicket(ctx, attempt, profile), attempt)
  const { identity } = await linkIdentity(ctx, attempt.userId, profile, {
    locale: localeOf(ctx, req),
    isFinal: attempt.isFinal,
    async check(ctx, user) {
      if (!user || !isAccountDigest(ctx.keys.state, user, attempt.digest)) throw new OAuthStateMismatchError()
      await requireTicketSession(ctx, attempt)
    },
  })
  await handOverTokens(ctx, attempt.userId, attempt.provider, tokens)
  const target = successTarget(ctx.settings, attempt.destination)
  if (target === null) sendJson(res, 200, identityBody(identity))
  else goOn(ctx, req, res, target, attempt.destination)
}

interface RedeemBody {
  ticket: string
  refresh_token?: string
}

/** For a callback whose browser was not signed in to the session that began the link, and for apps. */
function redeemRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/oauth/link/redeem',
    inEachDelivery: true,
    summary: 'Link an identity with the ticket from the callback',
    answers: [{ status: 200, description: 'The linked identity.', schema: identitySchema }],
    refuses: [OAuthStateMismatchError, OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError],
    access: 'live session',
    limit: 'oauth_link_redeem',
    body: Joi.object<RedeemBody>({ ticket: text(8192), refresh_token: text(4096).optional() }),
    handle: async (req, res, { ticket }) => {
      const locale = localeOf(ctx, req)
      const { identity } = await redeemLinkTicket(ctx, { owner: ticketOwner(ctx, req), ticket, locale })
      setResult(res, identity)
      sendJson(res, 200, identityBody(identity))
    },
  })
}
