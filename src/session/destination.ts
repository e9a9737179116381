import type { Settings } from '../config/every-setting'
import { locationOf } from '../http/return-to'

/**
 * The destination of a login that starts in a browser, instead of `oauthSuccessRedirect`. It is validated at the start, and then kept under a
 * MAC.
 */
export type Destination = PageDestination | AppDestination

export interface PageDestination {
  /** The result of `readReturnTo`. */
  readonly returnTo: string
}

/** An app that keeps its own tokens. */
export interface AppDestination {
  /** One of `appRedirects`. */
  readonly redirectTo: string
  /** S256 of the app's secret (RFC 7636 section 4.2). Null: this is not a login, but a link or a reauthentication. */
  readonly codeChallenge: string | null
}

export function isApp(destination: Destination | null): destination is AppDestination {
  return destination !== null && 'redirectTo' in destination
}

/** Returns the `Location` after a success, for an app without its code. Null: the response is JSON. */
export function successTarget({ oauthSuccessRedirect }: Settings, destination: Destination | null): string | null {
  if (destination === null) return oauthSuccessRedirect
  return isApp(destination) ? destination.redirectTo : locationOf(destination.returnTo)
}
