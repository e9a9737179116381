import type { Settings } from '../core/config/every-setting'
import { locationOf } from '../http/return-to'

/** Instead of `oauthSuccessRedirect`. Validated at the start, then protected with a MAC. */
export type Destination = PageDestination | AppDestination

export interface PageDestination {
  /** From `readReturnTo`. */
  readonly returnTo: string
}

/** An app that keeps its own tokens. */
export interface AppDestination {
  /** One of `appRedirects`. */
  readonly redirectTo: string
  /** S256 (RFC 7636 section 4.2). Null: the browser comes back from a link or a reauthentication, not from a login. */
  readonly codeChallenge: string | null
}

export function isApp(destination: Destination | null): destination is AppDestination {
  return destination !== null && 'redirectTo' in destination
}

/** For an app, the URL does not yet have the code. Null: the response is JSON. */
export function successTarget({ oauthSuccessRedirect }: Settings, destination: Destination | null): string | null {
  if (destination === null) return oauthSuccessRedirect
  return isApp(destination) ? destination.redirectTo : locationOf(destination.returnTo)
}
