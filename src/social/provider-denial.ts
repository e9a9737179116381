import type { Request } from 'express'
import type { AuthContext } from '../context'
import { OAuthProviderDeniedError } from '../errors'
import { adviceOn, errorCode } from '../providers/provider-said-no'
import { callbackAnswer } from './callback-answer'

/** The person's own no, and the answers to `prompt=none` (OpenID Connect Core section 3.1.2.6): nothing to mend. */
const ownNo = ['access_denied', 'login_required', 'interaction_required', 'consent_required', 'account_selection_required']

/** Apple's word for it. */
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
 * Returns the refusal of a callback that brings an `error`, and logs it where the operator can mend it; null: it brings none. Any `error` is
 * a denial, however often it comes; an empty one counts as omitted (RFC 6749 section 3.1).
 *
 * @param isOurs whether its `state` is one of this browser: anybody can make such a request up
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
    // What is no error code comes from no provider, and neither does what stands beside it.
    const description = error === 'other' ? null : oneLine(answer.values('error_description')[0] ?? '')
    const advice = adviceOn(error, null)
    ctx.logger.warn({ provider, error, description, isOurs, advice }, 'doorward: a provider sent a person back with an error')
  }
  return new OAuthProviderDeniedError({ details: knownErrors.includes(given) ? { error: given } : {} })
}

/** Control characters and direction overrides: harmless on a wire, not in a log. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, ' ').slice(0, 200)
}
