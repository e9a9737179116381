import { OAuthError } from '../core/errors'
import { isPassportProvider, type Provider } from '../providers/passport-provider'
import type { CallbackAnswer } from './callback-answer'

/**
 * Rejects a response with an issuer of another provider (a mix-up attack, RFC 9207 section 2.4). If the provider always sends an issuer,
 * also rejects a response without an issuer. If the function rejects the callback, doorward sends the code to no provider.
 * @throws OAuthError
 */
export function checkIssuerParameter(client: Provider, answer: CallbackAnswer): void {
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
