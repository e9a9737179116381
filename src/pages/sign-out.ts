import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { pageRouteSets } from './page-lines'
import type { PageSite } from './page-site'
import { signInAddress } from './sign-in-address'
import { signedOutPage, signOutPage } from './sign-out-pages'
import { findSignedIn } from './signed-in'

/** Routes of the logout page with its button, and of the page after the logout. */
export function signOutRoutes(site: PageSite): Route[] {
  return [
    ...pageRouteSets(site, {
      path: '/logout',
      summary: 'The sign-out page',
      sharesPath: true,
      // A person must always be able to log out of a shared computer.
      isUnlimited: true,
      show: async ({ site, req, res, reader, returnTo }, state) => {
        const current = await findSignedIn(site, req, res)
        const body = signOutPage(reader, state, { email: current?.user.email ?? null, returnTo })
        return { page: 'signOut', title: reader.text('sign_out.title'), body }
      },
      post: async ({ ask, reader, returnTo }) => {
        await ask.logOut()
        return { to: returnTo === null ? reader.href('/signed-out') : locationOf(returnTo) }
      },
    }),
    ...pageRouteSets(site, {
      path: '/signed-out',
      summary: 'The page after signing out',
      show: ({ req, res, reader }) => {
        // Removes the account pages from the browser's cache, because the back button would show them.
        if (req.secure) res.setHeader('Clear-Site-Data', '"cache"')
        const body = signedOutPage(reader, signInAddress(site.ctx, reader))
        return { page: 'signedOut', title: reader.text('signed_out.title'), body }
      },
    }),
  ]
}
