import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { signedOutPage, signOutPage } from '../pages/sign-out-pages'
import { pageLines } from './page-lines'
import type { PageSite } from './page-site'
import { signInAddress } from './sign-in-address'
import { findSignedIn } from './signed-in'

/** Routes of the logout page with its button, and of the page after it. */
export function signOutRoutes(site: PageSite): Route[] {
  return [
    ...pageLines(site, {
      path: '/logout',
      summary: 'The sign-out page',
      sharesPath: true,
      isUnlimited: true, // a person must be able to sign out of a shared computer (contract 24.7)
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
    ...pageLines(site, {
      path: '/signed-out',
      summary: 'The page after signing out',
      show: ({ req, res, reader }) => {
        // The browser's cached pages of the account, which the back button would show.
        if (req.secure) res.setHeader('Clear-Site-Data', '"cache"')
        const body = signedOutPage(reader, signInAddress(site.ctx, reader))
        return { page: 'signedOut', title: reader.text('signed_out.title'), body }
      },
    }),
  ]
}
