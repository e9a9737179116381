import { type Html, hidden, html, type Part } from '../http/html/document'
import { formOf } from '../http/html/form-of'
import type { Reader } from '../http/html/reader'
import { isSafeMethod } from '../http/same-site'
import { leaveNotice } from '../sessions/cookies'
import type { SessionOfRequest } from '../sessions/reauthentication/fresh-session'
import { type PublicUser, toPublicUser } from '../store/user-records'
import { FormFault } from './form-fault'
import { Elsewhere } from './page-lines'
import type { Fields, Visit } from './page-site'
import { findSignedIn, isOurSignIn, signInAddress } from './signed-in'

export interface AccountVisit extends Visit {
  /** Without private fields. */
  readonly person: PublicUser
  readonly session: SessionOfRequest
  /** A hidden field with a digest of the person for whom the form was made. */
  readonly formOf: Part
}

/** @param back the page to return to after the login, if the request sent a form @throws Elsewhere if nobody is logged in */
export async function enterAs(visit: Visit, back: string): Promise<AccountVisit> {
  const session = await findSignedIn(visit.site, visit.req, visit.res)
  if (session === null) throw toSignIn(visit, back)
  const person = toPublicUser(session.user)
  return { ...visit, session, person, formOf: hidden('form_of', formOf(person)) }
}

/** The values of a sent form are lost, and a notice on our login page says so. */
export function toSignIn({ ctx, req, res, reader }: Visit, back: string): Elsewhere {
  if (isSafeMethod(req.method)) return new Elsewhere({ to: signInAddress(ctx, reader, req.originalUrl), status: 302 })
  if (isOurSignIn(ctx)) leaveNotice(ctx, res, 'not_saved')
  return new Elsewhere({ to: signInAddress(ctx, reader, back) })
}

/** In a shared browser, a form of another person could run in the current person's session. @throws FormFault */
export function requireOwnForm({ person }: { readonly person: Pick<PublicUser, 'id'> }, { form_of: given = '' }: Fields): void {
  if (given !== formOf(person)) throw new FormFault({ form: 'problem.other_person' }, { keepsValues: false })
}

/** With a mark on the open page. */
export function accountNavigation(reader: Reader, pages: readonly { path: string; label: string }[], open: string): Html {
  const links = pages.map(({ path, label }) => html`<li><a href="${reader.href(path)}"${currentIn(path, open)}>${label}</a></li>`)
  return html`<nav class="pages" aria-label="${reader.text('nav.label')}"><ul>${links}</ul></nav>
`
}

/** Marks the open page and the pages above it. `/account` is marked only if its own page is open. */
function currentIn(path: string, open: string): Part {
  if (path === open) return html` aria-current="page"`
  return path !== '/account' && open.startsWith(`${path}/`) ? html` aria-current="true"` : null
}
