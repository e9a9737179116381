import type { Request } from 'express'
import type { AuthContext } from '../context'
import { openText, sealText } from '../core/encryption'
import { OAuthProviderDeniedError } from '../core/errors'
import { onlyQueryValue, queryParameter, queryValues } from '../http/locale'
import { adviceOn, errorCode } from '../providers/provider-refusal'
import { answersByForm } from './state-cookie'

/** RFC 6749 section 4.1.2. */
export interface CallbackAnswer {
  values(name: string): string[]
  /** Null if the parameter is absent, repeated, empty or too long. */
  value(name: string, maxLength: number): string | null
  /** The provider responds by POST, so a `state` in the query is ignored. */
  readonly mustBePosted: boolean
}

const sealedSeconds = 60
/** Low, for the URL of the GET callback: proxies often limit a first line to 8 KiB, and encryption makes a text a third longer. */
export const longestAnswer = 4_500
const parameter = 'answer'

/**
 * With a provider that responds by POST, only sealed data counts. Without sealed data, reads only the `error` parameters, because some of them
 * send a refusal in the query.
 */
export function callbackAnswer(ctx: AuthContext, req: Request, provider: string): CallbackAnswer {
  if (!answersByForm(ctx.providers.get(provider))) return answerOf((name) => queryValues(req, name), false)
  const sealed = queryParameter(req, parameter, longestAnswer * 2)
  if (sealed === null) return answerOf((name) => (name.startsWith('error') ? queryValues(req, name) : []), true)
  const parameters = openAnswer(ctx, provider, sealed)
  return answerOf((name) => parameters.getAll(name), true)
}

function answerOf(values: (name: string) => string[], mustBePosted: boolean): CallbackAnswer {
  return { values, value: (name, maxLength) => onlyQueryValue(values(name), maxLength), mustBePosted }
}

/**
 * The encrypted response, for this provider and 60 seconds. Its `state` works once, and only with the cookies of the browser that began.
 */
export function sealedQuery(ctx: AuthContext, provider: string, parameters: URLSearchParams): [name: string, value: string] {
  const text = JSON.stringify([epochSeconds(ctx) + sealedSeconds, parameters.toString()])
  return [parameter, sealText(keysOf(ctx), purposeOf(provider), text)]
}

/** No parameters if the text is not ours, is of another provider, or is too old. */
function openAnswer(ctx: AuthContext, provider: string, sealed: string): URLSearchParams {
  const text = openText(keysOf(ctx), purposeOf(provider), sealed)
  const [end, parameters] = text === null ? [0, ''] : (JSON.parse(text) as [number, string]) // as `sealedQuery` wrote it
  return new URLSearchParams(end > epochSeconds(ctx) ? parameters : '')
}

function purposeOf(provider: string): string {
  return `form answer of ${provider}`
}

function keysOf({ keys }: AuthContext): Buffer[] {
  return keys['form-answer'].map((key) => key.export())
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}

/** Refusals by the person, and errors of `prompt=none` (OpenID Connect Core section 3.1.2.6): the operator has nothing to fix. */
const ownNo = ['access_denied', 'login_required', 'interaction_required', 'consent_required', 'account_selection_required']

/** For `access_denied`, by Apple. */
const appleNo = 'user_cancelled_authorize'

/** RFC 6749 section 4.1.2.1 and OpenID Connect Core section 3.1.2.6. */
const knownErrors = [
  ...ownNo,
  'invalid_request',
  'unauthorized_client',
  'unsupported_response_type',
  'invalid_scope',
  'server_error',
  'temporarily_unavailable',
  'invalid_request_uri',
  'invalid_request_object',
  'request_not_supported',
  'request_uri_not_supported',
  'registration_not_supported',
]

/**
 * Warns if the operator can fix the cause. A repeated `error` is a denial too. An empty one counts as omitted (RFC 6749 section 3.1).
 * @param isOurs the `state` belongs to this browser; otherwise anybody may have sent the request
 */
export function deniedBy(
  ctx: AuthContext,
  req: Request,
  { provider, isOurs }: { provider: string; isOurs: boolean },
): OAuthProviderDeniedError | null {
  const answer = callbackAnswer(ctx, req, provider)
  const [sent] = answer.values('error').filter((error) => error !== '')
  if (sent === undefined) return null
  const given = sent === appleNo ? 'access_denied' : sent
  if (!ownNo.includes(given)) {
    const error = errorCode(given)
    // A text that is no error code does not come from a provider, so its description is not logged.
    const description = error === 'other' ? null : oneLine(answer.values('error_description')[0] ?? '')
    const advice = adviceOn(error, null)
    ctx.logger.warn({ provider, error, description, isOurs, advice }, 'doorward: a provider sent a person back with an error')
  }
  return new OAuthProviderDeniedError({ details: knownErrors.includes(given) ? { error: given } : {} })
}

/** Control characters and direction overrides can do harm in a log. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, ' ').slice(0, 200)
}
