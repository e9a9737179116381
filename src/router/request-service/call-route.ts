import type { Request, RequestHandler, Response } from 'express'
import Joi from 'joi'
import { refuseExpiredToken } from '../../accounts/email-verification/signup-ownership'
import type { AuthContext } from '../../context'
import { UnauthorizedError } from '../../core/errors'
import { cookiesAfter } from '../../http/cookies'
import { text } from '../../http/input'
import { type Route, settled, step, withBody } from '../../http/routes'
import { refuseCrossSite } from '../../http/same-site'
import { awaitOutcome, outcomeOf } from '../../http/send'
import { readCredential } from '../../sessions/current-auth'
import { loginClient, sendLogin } from '../../sessions/delivery'
import { isAnyOurs, type LogoutTokens } from '../../sessions/log-out'
import {
  clearSessionCookies,
  type LogoutBody,
  type LogoutRules,
  logOutRequest,
  logoutAnswers,
  logoutFields,
  logoutSummary,
  sendLoggedOut,
  tokensOfCookies,
} from '../../sessions/log-out-request'
import type { OpenSessionOptions } from '../../sessions/open-session'

/** The input of a route. This input replaces the input of the host's request. */
interface Given {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: object
  readonly query?: object
}

/**
 * Runs one of our routes for the host's request. The order is: rate limits, cross-site rule, guards, handler. The route's cookies are sent
 * with the host's response. The route's body and status are not sent.
 * @returns the value that the handler noted (`setResult`), or undefined
 * @throws AppError the error that the route would have sent
 */
export function callRoute(
  { method, before = [], handle }: Pick<Route, 'method' | 'before' | 'handle'>,
  req: Request,
  res: Response,
  given: Given,
): Promise<unknown> {
  const cookies = res.getHeader('Set-Cookie')
  return new Promise<unknown>((resolve, reject) => {
    const steps: readonly RequestHandler[] = [...before, settled(handle)]
    const asked = requestWith(req, res, method, given)
    const answer = answerBeside(res, () => {
      const outcome = outcomeOf(answer)
      if (outcome instanceof Error) reject(outcome)
      else resolve(outcome)
    })
    awaitOutcome(answer)
    const go = (index: number, error?: unknown) => {
      if (error) reject(error)
      else steps[index]?.(asked, answer, (next?: unknown) => go(index + 1, next))
    }
    go(0)
  }).finally(() => {
    // A cache must not store a cookie, because the cache would give one person's session to another person.
    if (res.getHeader('Set-Cookie') !== cookies) res.setHeader('Cache-Control', 'no-store')
  })
}

/**
 * Returns a request with the host request's headers and client, but with another body. The route reads JSON, even if the host parsed a
 * form.
 */
function requestWith(req: Request, res: Response, method: string, { params = {}, body = {}, query }: Given): Request {
  const { 'transfer-encoding': _chunked, cookie: _old, ...others } = req.headers
  const cookie = cookiesAfter(req, res)
  const headers = { ...others, ...(cookie !== '' && { cookie }) }
  const length = String(Buffer.byteLength(JSON.stringify(body)))
  const changed = {
    method, // the route's method, so that the cross-site check treats a host's GET like the route's POST
    body,
    params,
    ...(query && { url: `/?${new URLSearchParams({ ...query })}` }),
    readableDidRead: true,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': length },
  }
  const asked: Request = Object.create(req)
  for (const [name, value] of Object.entries(changed)) Object.defineProperty(asked, name, { value, writable: true })
  return asked
}

/** Returns a response that passes only cookies on to the host's response. `done` is called when the response is complete. */
function answerBeside(res: Response, done: () => void): Response {
  const own: Record<PropertyKey, unknown> = {
    statusCode: 200,
    end: done,
    setHeader(name: string, value: string | string[]) {
      if (name.toLowerCase() === 'set-cookie') res.setHeader(name, value)
      return answer
    },
  }
  const answer: Response = new Proxy(res, {
    get(target, name) {
      if (name in own) return own[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set(_target, name, value) {
      own[name] = value
      return true
    },
  })
  return answer
}

/**
 * The logout of `auth.with(req, res)` and of the pages, at any path of the host. An access token in the header names the session by itself,
 * and cookies then do not count. If no token of the request is ours, the logout fails after it cleared the cookies, because nobody was
 * logged out.
 * @throws UnauthorizedError; TokenExpiredError for all sessions by an expired access token alone: refresh first
 */
export function logoutOfHost(ctx: AuthContext, rules: LogoutRules): Pick<Route, 'method' | 'before' | 'handle'> {
  return withBody({
    method: 'POST',
    path: '/logout',
    describes: { summary: logoutSummary, answers: logoutAnswers },
    before: [
      step((req) => {
        if (takesCookies(ctx, req)) refuseCrossSite(ctx, req)
      }),
    ],
    body: Joi.object<LogoutBody>({ ...logoutFields, refresh_token: text(4096).optional() }),
    handle: async (req, res, body) => {
      const isByCookies = takesCookies(ctx, req)
      const tokens = tokensOfHost(ctx, req, body, isByCookies)
      // An expired token ends its own session at most, and a logout everywhere must not end less than it was asked to.
      if (body.all_sessions && body.refresh_token === undefined && !isByCookies) await refuseExpiredToken(ctx, req)
      const ended = await logOutRequest(ctx, rules, [req, res], tokens, body)
      if (isByCookies) clearSessionCookies(ctx, req, res)
      if (!isAnyOurs(ctx, tokens)) throw new UnauthorizedError()
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}

/** The login of `auth.with(req, res).openSession`, which no request can reach. */
export function openSessionOfHost(ctx: AuthContext, userId: string, options: OpenSessionOptions): Pick<Route, 'method' | 'handle'> {
  const { tokenDelivery } = ctx.settings
  return {
    method: 'POST',
    handle: async (req, res) => {
      const { openSession } = await import('../../sessions/open-session.js') // loaded at the first call
      const result = await openSession(ctx, userId, options, loginClient(ctx, req))
      sendLogin(ctx, res, result, tokenDelivery === 'both' ? 'cookie' : tokenDelivery)
    },
  }
}

function tokensOfHost(ctx: AuthContext, req: Request, { refresh_token: given }: LogoutBody, isByCookies: boolean): LogoutTokens {
  const presented: LogoutTokens = isByCookies ? tokensOfCookies(ctx, req) : { accessToken: bearerOf(ctx, req) }
  return given === undefined ? presented : { ...presented, refreshToken: given }
}

/** Returns false in delivery `bearer`, and in `both` for a request with an access token in the header. */
function takesCookies(ctx: AuthContext, req: Request): boolean {
  const { tokenDelivery } = ctx.settings
  return tokenDelivery !== 'bearer' && !(tokenDelivery === 'both' && bearerOf(ctx, req) !== null)
}

/** Returns the access token in the header. Null without one. A malformed header still is a header, so it gives an invalid token. */
function bearerOf(ctx: AuthContext, req: Request): string | null {
  try {
    const credential = readCredential(ctx, req)
    return credential?.from === 'header' ? credential.token : null
  } catch {
    return ''
  }
}
