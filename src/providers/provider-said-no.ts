import { withOwnMessage } from '../logger'

/** Why a provider's answer was refused, for logs: what it calls the error, and whether it refuses this application. */
export class ProviderSaidNo extends Error {
  override readonly name = 'ProviderSaidNo'
  /** The provider's `error` (RFC 6749 section 5.2); `other` for what is no error code; null where it has none. */
  readonly code: string | null
  /** Our id, our secret, the way we send them, or our redirect URI is wrong: for the operator to mend, and not for the visitor. */
  readonly refusesClient: boolean

  /** @param isCredentialStatus the status alone says that our credentials were refused */
  constructor(error: unknown, { isCredentialStatus }: { isCredentialStatus: boolean }) {
    const refusesClient = isCredentialStatus || clientErrors.includes(error)
    super(refusesClient ? 'The provider refused this application.' : 'The provider refused, or gave an unusable answer.')
    this.code = errorCode(error)
    this.refusesClient = refusesClient
    withOwnMessage(this)
  }
}

const clientErrors: readonly unknown[] = ['invalid_client', 'unauthorized_client', 'redirect_uri_mismatch', 'incorrect_client_credentials']

function errorCode(error: unknown): string | null {
  if (error === undefined || error === null) return null
  return typeof error === 'string' && /^[A-Za-z0-9_.:-]{1,64}$/.test(error) ? error : 'other'
}
