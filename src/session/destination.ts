import type { Settings } from '../config/every-setting'
import { locationOf } from '../http/return-to'

/** Where a login that begins in a browser leads, instead of `oauthSuccessRedirect`. Checked at the start, and kept under a MAC since. */
export type Destination = PageDestination | AppDestination

export interface PageDestination {
  /** As `readReturnTo` returned it. */
  readonly returnTo: string
}

/** An app that keeps its own tokens. */
export interface AppDestination {
  /** One of `appRedirects`. */
  readonly redirectTo: string
  /** Of the app's secret, S256 (RFC 7636 section 4.2). Null: no login begins here, but a link or a reauthentication. */
  readonly codeChallenge: string | null
}

export function isApp(destination: Destination | null): destination is AppDestination {
  return destination !== null && 'redirectTo' in destination
}

/** Returns the `Location` after a success, for an app without its code. Null: the answer is JSON. */
export function successTarget({ oauthSuccessRedirect }: Settings, destination: Destination | null): string | null {
  if (destination === null) return oauthSuccessRedirect
  return isApp(destination) ? destination.redirectTo : locationOf(destination.returnTo)
}
