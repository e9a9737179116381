import type { Request } from 'express'
import type { Settings } from '../core/config/every-setting'
import { isReturnTo, type ReturnToSettings } from './return-to'
import { withParameter } from './with-parameter'

/**
 * Returns the `Location` of the sign-in page, with `returnTo` as a parameter. If the sign-in page is on the public origin, the parameter is
 * a path. Otherwise the parameter is an absolute URL. If `returnTo` is not a valid `return_to`, the `Location` does not contain it.
 */
export function signInLocation(settings: ReturnToSettings, page: string, returnTo: string | null): string {
  const back = returnTo === null ? null : seenFrom(settings, page, returnTo)
  return back !== null && isReturnTo(settings, back) ? withParameter(page, 'return_to', encodeURIComponent(back)) : page
}

function seenFrom({ publicUrl }: ReturnToSettings, page: string, returnTo: string): string | null {
  const isOnOurOrigin = page.startsWith('/') || new URL(page).origin === publicUrl
  if (isOnOurOrigin || !returnTo.startsWith('/')) return returnTo
  return publicUrl === '' ? null : `${publicUrl}${returnTo}`
}

/** Returns true if a request is for the sign-in page itself. Without a public origin, the Host header determines our origin. */
export function isSignInPage({ publicUrl }: Pick<Settings, 'publicUrl'>, page: string, req: Request): boolean {
  const asked = req.originalUrl.split('?', 1)[0]
  if (page.startsWith('/')) return asked === page.split(/[?#]/, 1)[0]
  const { origin, host, pathname } = new URL(page)
  return asked === pathname && (publicUrl === '' ? host === req.headers.host : origin === publicUrl)
}

/**
 * Returns the path of the route that renews the access cookie and then redirects back to a page. The path is relative to the prefix.
 * Returns null if `tokenDelivery` has no access cookie.
 */
export function continuePath({
  tokenDelivery,
  pagesEnabled = false,
}: Pick<Settings, 'tokenDelivery'> & Partial<Pick<Settings, 'pagesEnabled'>>): string | null {
  if (tokenDelivery === 'cookie' || (tokenDelivery === 'both' && pagesEnabled)) return '/continue'
  // Browsers send the refresh cookie only below `/cookie`.
  return tokenDelivery === 'both' ? '/cookie/continue' : null
}
