import type { Request, RequestHandler, Response } from 'express'
import { signupOwnershipOf } from '../accounts/email-verification/signup-ownership'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import {
  AccountInactiveError,
  CsrfValidationFailedError,
  LastLoginMethodError,
  OAuthAccountNotLinkedError,
  OAuthCodeMissingError,
  OAuthError,
  OAuthProviderNotConfiguredError,
  OAuthProviderUnavailableError,
  UnauthorizedError,
  ValidationError,
} from '../core/errors'
import { loginByScript, otherHost } from '../core/setup-warnings'
import { done } from '../http/description'
import { text } from '../http/input'
import { askedLocale, localeOf } from '../http/locale'
import { wantsPage } from '../http/return-to'
import type { Route } from '../http/routes'
import { refuseEmbedding, refusingCrossSite } from '../http/same-site'
import { sendEmpty, sendJson, sendRedirect, setResult } from '../http/send'
import { forgetUsedInvitation, invitationOfQuery, invitationQuery } from '../invitations/carried'
import { leadToTasks } from '../login-tasks/lead-to-tasks'
import { verifiesSignIn } from '../providers/id-token'
import { normalizeProfile } from '../providers/normalize-profile'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { confirmIrreversible, type IrreversibleFields, irreversibleBody, irreversibleRefusals } from '../second-factor/irreversible-code'
import { clearEndedCookies, getAuth } from '../sessions/current-auth'
import { loginClient, sendLogin, setLoginCookies } from '../sessions/delivery'
import { isApp, successTarget } from '../sessions/destination'
import { type LoginAttempt, newLoginAttempt } from '../sessions/devices/login-limits'
import { sendChallenge } from '../sessions/devices/send-challenge'
import type { AppCode, LoginChallenge } from '../sessions/login'
import { operation } from '../sessions/operation'
import { codeDevice } from '../sessions/reauthentication/confirmation-code'
import { sessionOf } from '../sessions/reauthentication/fresh-session'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import { exchangeRoutes } from './app-redirect/exchange-code'
import { beginAttempt, browserOf, consumeAttempt, isOfThisBrowser, markBrowser } from './attempts'
import { type CallbackAnswer, callbackAnswer } from './callback-answer'
import { type ClientShare, createClientShare, redirectUriOf, registeredProvider } from './client-share'
import { describesCallback } from './describes-callback'
import { goOn, loadedAgain, redirectErrors, redirectThrottled } from './error-redirect'
import { formPostRoutes } from './form-post-route'
import { handOverTokens } from './hand-over-tokens'
import { identityBody, identitySchema, listIdentities, unlinkIdentity } from './identities'
import { finishLink, linkRoutes } from './link-routes'
import { logInWithIdentity } from './log-in-with-identity'
import { tellingFailures, withProviderErrors } from './provider-errors'
import { destinationOfQuery, destinationQuery, loginHintQuery, readLoginHint } from './read-destination'
import { finishReauthentication, reauthenticationRoute } from './reauthentication'
import { createRedirectFlow, type RedirectFlow } from './redirect-flow'
import { sendToApp } from './send-to-app'
import { tokenRoutes } from './token-in-hand'

export function socialRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  const flow = createRedirectFlow(ctx)
  const share = createClientShare()
  return [
    loginRoute(ctx, flow, share),
    callbackRoute(ctx, flow, share),
    ...formPostRoutes(ctx, navigationOnly(ctx)),
    ...identitiesRoute(ctx, guards),
    ...unlinkRoute(ctx, guards),
    ...tokenRoutes(ctx),
    ...exchangeRoutes(ctx),
    ...linkRoutes(ctx, guards, flow),
    ...reauthenticationRoute(ctx, guards, flow),
  ]
}

function loginRoute(ctx: AuthContext, flow: RedirectFlow, share: ClientShare): Route {
  return {
    method: 'GET',
    path: '/oauth/:provider/login',
    describes: {
      summary: 'Begin a login: send the browser to the provider',
      query: [...destinationQuery(ctx.settings), ...loginHintQuery(ctx), ...invitationQuery(ctx)],
      answers: [
        {
          status: 302,
          description:
            'To the provider. Sets a cookie that identifies this login. If the request exceeds the rate limit: to `oauthErrorRedirect`, if set.',
        },
      ],
      refuses: [OAuthProviderNotConfiguredError, ValidationError, OAuthError, OAuthProviderUnavailableError],
    },
    refusesHead: true,
    before: [navigationOnly(ctx), routeRateLimit(ctx, 'oauth_login')],
    handle: async (req, res) => {
      const { key, client } = registeredProvider(ctx, req)
      const notice = otherHost(req, redirectUriOf(ctx, key, client))
      if (notice) ctx.notices.tell(notice)
      const destination = destinationOfQuery(ctx, req)
      const loginHint = readLoginHint(client, req)
      const browser = browserOf(ctx, req)
      const invitation = invitationOfQuery(ctx, req)
      const attempt = beginAttempt(ctx, req, res, key, { purpose: 'login', browser, destination, invitation })
      markBrowser(ctx, res, browser)
      // `authorizeUrl` can call the provider (a pushed authorization request), so the start is limited too.
      sendRedirect(res, await share.run(key, clientOf(req), () => flow.authorizeUrl(attempt, { loginHint })))
    },
    onError: redirectThrottled(ctx),
  }
}

function callbackRoute(ctx: AuthContext, flow: RedirectFlow, share: ClientShare): Route {
  return {
    method: 'GET',
    path: '/oauth/:provider/callback',
    describes: describesCallback(ctx),
    delivers: 'login',
    refusesHead: true,
    before: [routeRateLimit(ctx, 'oauth_callback')],
    handle: (req, res) => {
      const [provider, client] = [String(req.params['provider']), clientOf(req)]
      const attempt = newLoginAttempt(client)
      return share.run(provider, client, () => tellingFailures(ctx, provider, attempt, () => callback(ctx, flow, req, res, attempt)))
    },
    onError: redirectErrors(ctx),
  }
}

function identitiesRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'GET',
    path: '/oauth/accounts',
    summary: 'List the linked identities of the account',
    answers: [{ status: 200, description: 'The identities, oldest first.', schema: { type: 'array', items: identitySchema } }],
    access: 'signed in',
    handle: async (req, res) => {
      const identities = await listIdentities(ctx, getAuth(req).sub)
      setResult(res, identities)
      sendJson(res, 200, identities.map(identityBody))
    },
  })
}

function unlinkRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'POST',
    path: '/oauth/accounts/unlink',
    summary: 'Unlink a provider from the account, and revoke the other sessions that it opened',
    answers: [done],
    refuses: [UnauthorizedError, AccountInactiveError, OAuthAccountNotLinkedError, LastLoginMethodError, ...irreversibleRefusals(ctx)],
    access: 'fresh session',
    limit: 'oauth_unlink',
    body: irreversibleBody<IrreversibleFields & { provider: string; refresh_token?: string }>(ctx, {
      provider: text(64),
      refresh_token: text(4096).optional(),
    }),
    handle: async (req, res, body) => {
      const locale = localeOf(ctx, req)
      const [{ sub: userId }, session] = [getAuth(req), sessionOf(req)]
      const isFinal = await confirmIrreversible(ctx, { userId, session, device: await codeDevice(ctx, req, body) }, body)
      await unlinkIdentity(ctx, userId, body.provider, { locale, session, isFinal })
      await clearEndedCookies(ctx, req, res)
      sendEmpty(res)
    },
  })
}

/** An image or a script of another site could begin logins and use up the person's rate limit. Runs before the rate limit. */
function navigationOnly({ settings, notices }: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    refuseEmbedding(settings, req)
    const mode = req.headers['sec-fetch-mode']
    if (mode === undefined || mode === 'navigate') return
    // An image or a script element of another site has the mode `no-cors`.
    if (mode !== 'no-cors') notices.tell(loginByScript)
    throw new CsrfValidationFailedError({ details: { reason: 'site' } })
  })
}

async function callback(ctx: AuthContext, flow: RedirectFlow, req: Request, res: Response, login: LoginAttempt): Promise<void> {
  const { key, client } = registeredProvider(ctx, req)
  if (loadedAgain(ctx, req, res, key)) return
  const attempt = await consumeAttempt(ctx, req, res, key)
  const answer = callbackAnswer(ctx, req, key)
  const code = answer.value('code', 4096)
  if (code === null) throw new OAuthCodeMissingError()
  await withProviderErrors(ctx, [key, 'callback'], async () => {
    if (!isPassportProvider(client)) await client.prepare?.() // the discovery document says whether the provider always sends `iss`
    checkIssuerParameter(client, answer)
  })
  const tokens = await withProviderErrors(ctx, [key, 'callback'], () => flow.exchange(attempt, code))
  // Inside this call, so that an unusable profile counts as the provider's failure.
  const profile = await withProviderErrors(ctx, [key, 'callback'], async () => {
    const user = normalizeProfile(key, await client.fetchUser(tokens))
    // The POST route sealed this name. In a plain query, anybody could choose one.
    const name = answer.mustBePosted ? answer.value('name', 200) : null
    return user.name === null && name !== null ? normalizeProfile(key, { ...user, name }) : user
  })
  if (attempt.purpose === 'link') return finishLink(ctx, req, res, attempt, { profile, tokens })
  if (attempt.purpose === 'reauthenticate') {
    const isProven = await withProviderErrors(ctx, [key, 'callback'], async () => verifiesSignIn(client, tokens, attempt.startedAt))
    return finishReauthentication(ctx, req, res, attempt, { identity: profile, isProven })
  }
  const locale = askedLocale(ctx, req) ?? attempt.locale ?? localeOf(ctx, req)
  const { destination } = attempt
  const invitation = attempt.purpose === 'login' ? attempt.invitation : null
  const options = { locale, evidence: () => signupOwnershipOf(ctx, req), attempt: login, destination, invitation }
  if (isApp(destination)) {
    const result = await logInWithIdentity(ctx, profile, { gets: destination, origin: {} }, options)
    await handOverTokens(ctx, result.userId, key, tokens)
    await clearEndedCookies(ctx, req, res)
    await forgetUsedInvitation(ctx, req, res, result.userId)
    return sendToApp(ctx, req, res, destination, result as AppCode | LoginChallenge) // the client gets a code
  }
  // An attempt that another browser began logs in here too, but the device cookie then proves nothing.
  const browser = loginClient(ctx, req, { namesSession: isOfThisBrowser(ctx, req, attempt) })
  const result = await logInWithIdentity(ctx, profile, browser, options)
  await handOverTokens(ctx, result.userId, key, tokens)
  await clearEndedCookies(ctx, req, res)
  await forgetUsedInvitation(ctx, req, res, result.userId)
  const target = successTarget(ctx.settings, destination)
  if (target !== null && result.kind === 'challenge' && wantsPage(req)) return sendChallenge(ctx, req, res, { ...result, target })
  if (target !== null && result.kind === 'tasks' && wantsPage(req)) return leadToTasks(ctx, req, res, result)
  if (target === null || result.kind !== 'session') return sendLogin(ctx, res, result, ctx.settings.tokenDelivery)
  setLoginCookies(ctx, res, result)
  goOn(ctx, req, res, target, destination)
}

/** Against a mix-up attack (RFC 9207 section 2.4): a refused callback sends the code to no provider. Rejects a missing issuer too, if the provider always sends it. */
function checkIssuerParameter(client: Provider, answer: CallbackAnswer): void {
  if (isPassportProvider(client)) return // a strategy has no issuer
  const given = answer.values('iss').filter((value) => value !== '') // an empty value counts as omitted (RFC 6749 section 3.1)
  if (given.length === 0 && client.requiresIssuerParameter === true)
    throw mixUp('the callback names no issuer, and the provider says that it always does')
  if (given.length > 0 && client.issuer !== undefined && (given.length > 1 || given[0] !== client.issuer))
    throw mixUp('the callback names another issuer')
}

function mixUp(reason: string): OAuthError {
  return new OAuthError({ details: { status: null, body: null }, cause: new Error(reason) })
}
