import type { Request, RequestHandler, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { MethodNotAllowedError, OAuthProviderNotConfiguredError, OAuthStateMismatchError, PayloadTooLargeError } from '../errors'
import { routeBudget } from '../guards/route-budget'
import { readForm } from '../http/json-body'
import type { Route } from '../http/routes'
import { sendSeeOther } from '../http/send'
import { withParameter } from '../http/with-parameter'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import { longestAnswer, sealedQuery } from './callback-answer'
import { redirectErrors } from './error-redirect'
import { answersByForm, isPostState } from './post-states'
import { redirectUriOf } from './redirect-flow'
import { registeredProvider } from './registered-provider'

/** OAuth 2.0 Form Post Response Mode. `user` is Apple's. */
const fields = Joi.object({
  state: Joi.string().required(),
  code: Joi.string(),
  error: Joi.string(),
  error_description: Joi.string(),
  iss: Joi.string(),
  user: Joi.string(),
})

/**
 * The way back from providers that answer by POST. The request is cross-site by its nature, and the state protects it: the cookie with the
 * state is the only one it is looked at, it logs nobody in and changes nothing. Its answer is a redirect to the GET callback, which the
 * browser sends with its Lax cookies, and where everything else happens.
 */
export function formPostRoutes(ctx: AuthContext, navigationOnly: RequestHandler): Route[] {
  if (![...ctx.providers.values()].some(answersByForm)) return []
  const { oauthErrorRedirect } = ctx.settings
  return [
    {
      method: 'POST',
      path: '/oauth/:provider/callback',
      describes: {
        summary: 'The way back from a provider that answers with a form',
        form: fields,
        answers: [
          { status: 303, description: 'To the GET callback, with the answer sealed in `answer`.' },
          ...(oauthErrorRedirect === null ? [] : [{ status: 302 as const, description: 'To the error redirect, with `error=CODE`.' }]),
        ],
        refuses: [OAuthProviderNotConfiguredError, MethodNotAllowedError, OAuthStateMismatchError],
        ...(oauthErrorRedirect !== null && { refusals: 'redirect' }),
      },
      before: [navigationOnly, routeBudget(ctx, 'oauth_form_post')],
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

/** A field that came twice is a list; a host's own parser may make anything of `a[b]`. */
function fieldsOf(form: unknown): (name: string) => string[] {
  const read = new Map(Object.entries(Object(form)))
  return (name) => [read.get(name) ?? []].flat().filter((value) => typeof value === 'string')
}

/** What the GET callback reads, and no other field: an `id_token` that comes this way is not looked at. */
function answerParameters(client: Provider, sent: (name: string) => string[]): URLSearchParams {
  const parameters = new URLSearchParams()
  for (const name of ['state', 'code', 'error', 'iss']) for (const value of sent(name)) parameters.append(name, value)
  for (const description of sent('error_description')) parameters.append('error_description', description.slice(0, 200))
  const [user] = sent('user')
  const name = user === undefined || isPassportProvider(client) ? null : (client.nameOfForm?.(user) ?? null)
  if (typeof name === 'string') parameters.set('name', name.slice(0, 200))
  return parameters
}
