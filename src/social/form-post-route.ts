import type { Request, RequestHandler, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { MethodNotAllowedError, OAuthProviderNotConfiguredError, OAuthStateMismatchError, PayloadTooLargeError } from '../core/errors'
import { readForm } from '../http/input'
import type { Route } from '../http/routes'
import { sendSeeOther, withParameter } from '../http/send'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { longestAnswer, sealedQuery } from './callback-answer'
import { redirectUriOf, registeredProvider } from './client-share'
import { redirectErrors } from './error-redirect'
import { answersByForm, isPostState } from './state-cookie'

/** OAuth 2.0 Form Post Response Mode. `user` is Apple's field. */
const fields = Joi.object({
  state: Joi.string().required(),
  code: Joi.string().optional(),
  error: Joi.string().optional(),
  error_description: Joi.string().optional(),
  iss: Joi.string().optional(),
  user: Joi.string().optional(),
})

/**
 * The request is always cross-site, and the state protects it. Reads only the cookie with the state, and writes nothing. Redirects to the
 * GET callback, which gets the browser's Lax cookies and does the rest.
 */
export function formPostRoutes(ctx: AuthContext, navigationOnly: RequestHandler): Route[] {
  if (![...ctx.providers.values()].some(answersByForm)) return []
  const { oauthErrorRedirect } = ctx.settings
  return [
    {
      method: 'POST',
      path: '/oauth/:provider/callback',
      describes: {
        summary: 'Return from a provider that sends a form',
        form: fields,
        answers: [
          { status: 303, description: 'To the GET callback. The parameter `answer` contains the encrypted form.' },
          ...(oauthErrorRedirect === null ? [] : [{ status: 302 as const, description: 'To the error redirect, with `error=CODE`.' }]),
        ],
        refuses: [OAuthProviderNotConfiguredError, MethodNotAllowedError, OAuthStateMismatchError],
        ...(oauthErrorRedirect !== null && { refusals: 'redirect' }),
      },
      before: [navigationOnly, routeRateLimit(ctx, 'oauth_form_post')],
      handle: (req, res) => passOn(ctx, req, res),
      onError: redirectErrors(ctx),
    },
  ]
}

async function passOn(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const { key, client } = registeredProvider(ctx, req)
  if (!answersByForm(client)) {
    res.setHeader('Allow', 'GET')
    throw new MethodNotAllowedError()
  }
  const sent = fieldsOf(await readForm(req, res))
  const [state = null, ...others] = sent('state')
  if (others.length > 0 || !isPostState(ctx, req, key, state)) throw new OAuthStateMismatchError()
  const parameters = answerParameters(client, sent)
  if (parameters.toString().length > longestAnswer) throw new PayloadTooLargeError()
  sendSeeOther(res, withParameter(redirectUriOf(ctx, key, client), ...sealedQuery(ctx, key, parameters)))
}

/** A repeated field is a list. A host's own parser can make any value from `a[b]`. */
function fieldsOf(form: unknown): (name: string) => string[] {
  const read = new Map(Object.entries(Object(form)))
  return (name) => [read.get(name) ?? []].flat().filter((value) => typeof value === 'string')
}

/** Ignores an `id_token` in the form. */
function answerParameters(client: Provider, sent: (name: string) => string[]): URLSearchParams {
  const parameters = new URLSearchParams()
  for (const name of ['state', 'code', 'error', 'iss']) for (const value of sent(name)) parameters.append(name, value)
  for (const description of sent('error_description')) parameters.append('error_description', description.slice(0, 200))
  const [user] = sent('user')
  const name = user === undefined || isPassportProvider(client) ? null : (client.nameOfForm?.(user) ?? null)
  if (typeof name === 'string') parameters.set('name', name.slice(0, 200))
  return parameters
}
