import type { ClientConfig, User } from './operations.js'

export interface AuthClientOptions {
  /** The URL of the router. On a page, a path below the page's origin is enough. */
  readonly baseUrl: string
  /** The router's `tokenDelivery`. Without it, the client asks the router. */
  readonly delivery?: 'bearer' | 'cookie' | 'both' | 'session' | undefined
  /** Further origins that get the token or the CSRF header. Exact origins: https, or http of the loopback. Default `[]`. */
  readonly apiOrigins?: readonly string[]
  /** True if `cookieDomain` covers the page and the router. Then a missing cookie `auth_hint` means signed out. Default false. */
  readonly hint?: boolean
  /** Keeps the tokens of delivery `bearer`. Without it, a reload signs out. */
  readonly storage?: TokenStorage | undefined
  /** Asks the person to confirm the session. Resolves with true if the person did. */
  readonly onReauthenticate?: ((request: { readonly methods: readonly string[] }) => boolean | Promise<boolean>) | undefined
}

/** Such as `localStorage`, or the secure storage of a phone. */
export interface TokenStorage {
  get(key: string): string | null | undefined | Promise<string | null | undefined>
  set(key: string, value: string): unknown
  remove(key: string): unknown
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  /** Whose they are: the state learns it later, from whoami. */
  readonly user_id: string
}

/** The answer of `GET /whoami`. */
export interface WhoAmI {
  readonly user: User | null
  readonly fresh_until: string | null
  readonly csrf_token: string | null
  readonly can_refresh: boolean
  readonly delivery: ClientConfig['delivery']
}
