import type { AuthMethod } from '../core/amr'
import type { Destination } from './destination'
import type { HostClaims } from './host-claims'

/** How a person logged in. */
export interface Login {
  readonly amr: readonly AuthMethod[]
  /** The name of the provider that verified the person, as in the option `providers`. Null: the login used no provider. */
  readonly provider: string | null
  /** `sid` of that provider's id_token. Absent: the provider sent none. */
  readonly providerSid?: string | undefined
  /**
   * True if every credential of this login is young (`youngCredentialSeconds`). Young credentials can log in, but the session is not fresh
   * until the person shows an older credential. A password and a mailed link are never young.
   */
  readonly isYoung?: boolean
  /** The host's claims of the access token. Absent: doorward did not call the host's hook (`claims-of-login.ts`). */
  readonly claims?: HostClaims
  /**
   * Where the browser goes after the login. A second-factor challenge keeps this destination. Null or absent: the request names no
   * destination.
   */
  readonly destination?: Destination | null
  /**
   * False: the browser deletes the cookies of the session when it closes (`remember: false`). A second-factor challenge keeps this choice.
   * Default true.
   */
  readonly isPersistent?: boolean
  /** True if the login set a new password and revoked every earlier session. Then the device cookie of this browser no longer counts. */
  readonly isReset?: true
}
