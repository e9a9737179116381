import type { Settings } from '../core/config/every-setting'
import { locationOf } from '../http/return-to'

/**
 * Where a browser goes after a login, instead of `oauthSuccessRedirect`. The server validates the destination at the start, and then
 * protects it with a MAC.
 */
export type Destination = PageDestination | AppDestination

export interface PageDestination {
  /** The result of `readReturnTo`. */
  readonly returnTo: string
}

/** An app that keeps its own tokens. */
export interface AppDestination {
  /** The URL to which the browser is redirected: one of `appRedirects`. */
  readonly redirectTo: string
  /**
   * The S256 code challenge of the app's PKCE verifier (RFC 7636 section 4.2). Null: the browser comes back from linking a provider or from
   * a reauthentication, not from a login.
   */
  readonly codeChallenge: string | null
}

export function isApp(destination: Destination | null): destination is AppDestination {
  return destination !== null && 'redirectTo' in destination
}

/** Returns the `Location` after a success. For an app, the URL does not yet have the code. Null: the response is JSON. */
export function successTarget({ oauthSuccessRedirect }: Settings, destination: Destination | null): string | null {
  if (destination === null) return oauthSuccessRedirect
  return isApp(destination) ? destination.redirectTo : locationOf(destination.returnTo)
}
