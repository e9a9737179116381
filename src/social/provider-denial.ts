import type { Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderDeniedError } from '../core/errors'
import { adviceOn, errorCode } from '../providers/provider-said-no'
import { callbackAnswer } from './callback-answer'

/**
 * Refusals by the person, and the errors of `prompt=none` (OpenID Connect Core section 3.1.2.6). For these codes, the operator has nothing
 * to fix.
 */
const ownNo = ['access_denied', 'login_required', 'interaction_required', 'consent_required', 'account_selection_required']

/** Apple's code for `access_denied`. */
const appleNo = 'user_cancelled_authorize'

/** The error codes of RFC 6749 section 4.1.2.1 and OpenID Connect Core section 3.1.2.6. */
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
 * Returns the error for a callback that has an `error`. If the operator can fix the cause, the function logs a warning. Null: the callback
 * has no `error`. An `error` that was sent twice also counts as a denial. An empty `error` counts as omitted (RFC 6749 section 3.1).
 *
 * @param isOurs true: the `state` belongs to this browser. Otherwise anybody may have sent the request
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
    // A text that is not an error code does not come from a provider. So its description is not logged.
    const description = error === 'other' ? null : oneLine(answer.values('error_description')[0] ?? '')
    const advice = adviceOn(error, null)
    ctx.logger.warn({ provider, error, description, isOurs, advice }, 'doorward: a provider sent a person back with an error')
  }
  return new OAuthProviderDeniedError({ details: knownErrors.includes(given) ? { error: given } : {} })
}

/** Replaces control characters and direction overrides, because they can do harm in a log. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, ' ').slice(0, 200)
}
