import type { AuthContext } from '../context'
import type { GuardSettings } from '../core/config/guard-settings'
import type { KeyList } from '../core/keys'
import type { TokenKeys } from './token-keys'

export type GuardContext = Pick<AuthContext, 'now' | 'logger' | 'notices' | 'texts'> & {
  /** The router's prefix. Undefined if the guards have no router. */
  readonly prefix?: string
  readonly settings: GuardSettings
  /** The keys that verify access tokens. */
  readonly tokenKeys: TokenKeys
  readonly isOwnCookie: (name: string, value: string) => boolean
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions' | 'identities'> | null
  /**
   * Returns the host's claims with `tokenDelivery: 'session'`, because no token contains the claims. If undefined, the host has no claims.
   */
  readonly accessTokenClaims?: AuthContext['accessTokenClaims']
  /** The router's providers by registration key. */
  readonly providers?: AuthContext['providers']
  /** Null if the guards do not know the secret. The guards then query the database also for a random cookie value. */
  readonly sessionTokenKeys: KeyList | null
  /** The keys of the device cookie and of CSRF tokens. Null if the guards do not know the secret. */
  readonly keys: Pick<AuthContext['keys'], 'device' | 'proof-cookie' | 'csrf' | 'csrf-binding'> | null
}
