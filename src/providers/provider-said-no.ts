import { withOwnMessage } from '../core/logger'

/**
 * Why a provider refused a request, for logs. Contains the provider's error code, advice for the operator, and whether the provider refuses
 * this application.
 */
export class ProviderSaidNo extends Error {
  override readonly name = 'ProviderSaidNo'
  /** The provider's `error` (RFC 6749 section 5.2). `other`: the value is not an error code. Null: the response has no `error`. */
  readonly code: string | null
  /** True: our id, our secret, the way we send them, or our redirect URI is wrong. Only the operator can correct such an error. */
  readonly refusesClient: boolean
  /** True: our id or secret was sent by `client_secret_basic` with characters that had to be encoded. */
  readonly isEncoded: boolean

  /**
   * @param status of the response; null: unknown
   * @param isCredentialStatus true: the status alone says that our credentials were refused
   */
  constructor(
    error: unknown,
    { status, isCredentialStatus, isEncoded = false }: { status: number | null; isCredentialStatus: boolean; isEncoded?: boolean },
  ) {
    const code = errorCode(error)
    const refusesClient = isCredentialStatus || clientErrors.includes(error)
    super(refusesClient ? 'The provider refused this application.' : `The provider refused: ${adviceOn(code, status)}`)
    this.code = code
    this.refusesClient = refusesClient
    this.isEncoded = isEncoded
    withOwnMessage(this)
  }
}

const clientErrors: readonly unknown[] = ['invalid_client', 'unauthorized_client', 'redirect_uri_mismatch', 'incorrect_client_credentials']

/** Returns a provider's `error` in a form that is safe to log. Null: the response has no `error`. */
export function errorCode(error: unknown): string | null {
  if (error === undefined || error === null) return null
  return typeof error === 'string' && /^[A-Za-z0-9_.:-]{1,64}$/.test(error) ? error : 'other'
}

const advice: Readonly<Record<string, string>> = {
  invalid_grant:
    'invalid_grant: the code was used or has expired, or the redirect URI or PKCE verifier does not belong to the login. If every login fails like this, check redirectUri and pkce',
  invalid_request: 'invalid_request: check clientAuthentication, pkce and redirectUri, and the description of the error',
  invalid_request_uri: 'invalid_request_uri: the pushed request has expired; begin the login anew',
  invalid_scope: 'invalid_scope: check scopes of this client, here and at the provider',
  insufficient_scope: 'insufficient_scope: add the scope that the endpoint asks for to scopes',
  invalid_token: 'invalid_token: the endpoint refuses this access token; check that userinfoUrl belongs to this provider',
  unauthorized_client: 'unauthorized_client: allow the authorization code grant for this client at the provider',
  unsupported_grant_type: 'unsupported_grant_type: allow the authorization code grant for this client at the provider',
  unsupported_response_type: 'unsupported_response_type: allow response type code for this client at the provider',
  bad_verification_code: 'bad_verification_code: the code was used or has expired',
  invalid_dpop_proof: 'invalid_dpop_proof: doorward does not support DPoP; register this client without DPoP at the provider',
  use_dpop_nonce: 'use_dpop_nonce: doorward does not support DPoP; register this client without DPoP at the provider',
  server_error: 'server_error: the provider fails; look at its own log, and try again',
  temporarily_unavailable: 'temporarily_unavailable: the provider fails; try again',
}

/** Returns what an operator can do about a provider's `error`, or about a response without an `error`. */
export function adviceOn(code: string | null, status: number | null): string {
  if (code !== null) return (Object.hasOwn(advice, code) && advice[code]) || `${code}: look it up in the documentation of the provider`
  if (status === null || status >= 500) return 'it gave no reason; look at its own log, and try again'
  if (status >= 400) return 'it gave no reason; check the address of the endpoint, and what this client may do there'
  if (status >= 300) return 'doorward does not follow a redirect; use the address that the redirect leads to'
  return 'the answer is not a JSON object as the standard requires; check the address of the endpoint'
}
