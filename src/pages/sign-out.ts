import { card, type FormState, form, type Html, hidden, html, linkButton, problem } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { pageRouteSets } from './page-lines'
import type { PageSite } from './page-site'
import { findSignedIn, signInAddress } from './signed-in'

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
        // The back button would show the account pages from the browser's cache.
        if (req.secure) res.setHeader('Clear-Site-Data', '"cache"')
        const body = signedOutPage(reader, signInAddress(site.ctx, reader))
        return { page: 'signedOut', title: reader.text('signed_out.title'), body }
      },
    }),
  ]
}

/** Opening the page logs nobody out, because a program could follow a link to it. */
function signOutPage(reader: Reader, state: FormState, { email, returnTo }: { email: string | null; returnTo: string | null }): Html {
  const lead = email === null ? reader.text('sign_out.lead') : reader.text('sign_out.lead_person', { email })
  return card(
    html`<h1>${reader.text('sign_out.title')}</h1>
<p class="lead">${lead}</p>
`,
    problem(state),
    form({ action: reader.href('/logout'), fields: [hidden('return_to', returnTo)], button: reader.text('sign_out.button') }),
    html`<p class="below"><a href="${reader.href('/account')}">${reader.text('sign_out.stay')}</a></p>
`,
  )
}

function signedOutPage(reader: Reader, loginUrl: string): Html {
  return card(
    html`<h1>${reader.text('signed_out.title')}</h1>
<p class="lead">${reader.text('signed_out.lead')}</p>
`,
    linkButton(loginUrl, reader.text('signed_out.again')),
  )
}
