import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { AccountInactiveError, OAuthProviderNotConfiguredError, OAuthStateMismatchError, UnauthorizedError } from '../errors'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { type Description, shape, string } from '../http/description'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendJson, sendRedirect } from '../http/send'
import { passwordText } from '../http/validate'
import type { OAuthUser } from '../providers/provider-client'
import { accountDigest, isAccountDigest } from '../session/account-digest'
import { refuseSupersededToken } from '../session/superseded-token'
import { findActiveUser } from '../step-up/find-active-user'
import { reauthenticate } from '../step-up/reauthenticate'
import { beginAttempt } from './attempts'
import { identityBody, identitySchema } from './identity-body'
import { linkIdentity, requireActive } from './link-identity'
import type { RedirectFlow } from './redirect-flow'
import { linkRefusals, tokenRefusals } from './refusals'
import { registeredProvider } from './registered-provider'
import type { LinkAttempt } from './state-cookie'
import { linkWithToken } from './token-in-hand'
import { accessTokenText } from './token-routes'

interface LinkBody {
  access_token?: string
  /** With `reauthenticate`. */
  password?: string
}

const describesLink: Description = {
  summary: 'Link a provider to the account: by a redirect, or at once with an access token',
  answers: [
    {
      status: 200,
      description: 'Without a token: where to send the browser. With one: the identity, which was linked already.',
      schema: { oneOf: [shape('AuthorizeUrl', { authorize_url: string }), identitySchema] },
    },
    { status: 201, description: 'The identity, linked.', schema: identitySchema },
  ],
  refuses: [UnauthorizedError, AccountInactiveError, ...linkRefusals, ...tokenRefusals, OAuthProviderNotConfiguredError],
}

export function linkRoutes(ctx: AuthContext, guards: Guards, flow: RedirectFlow): Route[] {
  return [
    withBody({
      method: 'POST',
      path: '/oauth/:provider/link',
      describes: describesLink,
      before: [routeBudget(ctx, 'oauth_link'), guards.requireAuth(), sameSiteWhenByCookie(ctx)],
      body: Joi.object<LinkBody>({ access_token: accessTokenText.optional(), password: passwordText().optional() }),
      handle: (req, res, body) => (body.access_token === undefined ? startLink(ctx, flow, req, res, body) : linkToken(ctx, req, res, body)),
    }),
  ]
}

/** The browser is sent by the page that asked, not by us: a POST answered with a redirect to another site is no use to a script. */
async function startLink(ctx: AuthContext, flow: RedirectFlow, req: Request, res: Response, { password }: LinkBody): Promise<void> {
  const { key } = registeredProvider(ctx, req)
  const claims = getAuth(req)
  const user = await ctx.store.users.find(claims.sub)
  requireActive(user)
  await refuseSupersededToken(ctx, claims, user)
  await reauthenticate(ctx, user, password)
  const intent = { purpose: 'link', userId: user.id, digest: accountDigest(ctx.keys.state[0], user) } as const
  sendJson(res, 200, { authorize_url: await flow.authorizeUrl(beginAttempt(ctx, req, res, key, intent)) })
}

async function linkToken(ctx: AuthContext, req: Request, res: Response, { access_token: token = '', password }: LinkBody): Promise<void> {
  const { key } = registeredProvider(ctx, req)
  const claims = getAuth(req)
  if (ctx.settings.reauthenticate) await reauthenticate(ctx, await findActiveUser(ctx, claims.sub), password)
  const given = { provider: key, accessToken: token }
  const { identity, isNew } = await linkWithToken(ctx, claims.sub, given, {
    locale: localeOf(req, ctx.settings.defaultLocale),
    async check(ctx, user) {
      requireActive(user)
      await refuseSupersededToken(ctx, claims, user)
    },
  })
  sendJson(res, isNew ? 201 : 200, identityBody(identity))
}

/** The end of a link attempt: links to the account that began it, if that is still what it was. Nobody is logged in. */
export async function finishLink(ctx: AuthContext, req: Request, res: Response, attempt: LinkAttempt, profile: OAuthUser): Promise<void> {
  const { identity } = await linkIdentity(ctx, attempt.userId, profile, {
    locale: localeOf(req, ctx.settings.defaultLocale),
    check(_ctx, user) {
      if (!user || !isAccountDigest(ctx.keys.state, user, attempt.digest)) throw new OAuthStateMismatchError()
    },
  })
  const { oauthSuccessRedirect } = ctx.settings
  if (oauthSuccessRedirect === null) sendJson(res, 200, identityBody(identity))
  else sendRedirect(res, oauthSuccessRedirect)
}
