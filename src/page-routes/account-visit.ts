import { createHash } from 'node:crypto'
import { isSafeMethod } from '../http/safe-method'
import { hidden, type Part } from '../pages/elements'
import { leaveNotice } from '../session/notice-cookie'
import type { SessionOfRequest } from '../step-up/fresh-session'
import { type PublicUser, toPublicUser } from '../store/public-user'
import { FormFault } from './form-fault'
import { Elsewhere } from './page-lines'
import type { Fields, Visit } from './page-site'
import { isOurSignIn, signInAddress } from './sign-in-address'
import { findSignedIn } from './signed-in'

/** A person who is logged in opens a page of the account area, or sends its form. */
export interface AccountVisit extends Visit {
  /** The person, as pages show them. */
  readonly person: PublicUser
  /** The row, the session and its age. */
  readonly session: SessionOfRequest
  /** A hidden field of every form of the page. It names the person that the form was made for. */
  readonly formOf: Part
}

/**
 * Returns the visit of the person who is logged in.
 * @param back the page to return to after the login, if a form was sent
 * @throws Elsewhere if nobody is logged in
 */
export async function enterAs(visit: Visit, back: string): Promise<AccountVisit> {
  const session = await findSignedIn(visit.site, visit.req, visit.res)
  if (session === null) throw toSignIn(visit, back)
  const person = toPublicUser(session.user)
  return { ...visit, session, person, formOf: hidden('form_of', digestOf(person)) }
}

/** Redirects to the login page. A form that was sent without a login is lost, and a notice on our login page says so. */
export function toSignIn({ ctx, req, res, reader }: Visit, back: string): Elsewhere {
  if (isSafeMethod(req.method)) return new Elsewhere({ to: signInAddress(ctx, reader, req.originalUrl), status: 302 })
  if (isOurSignIn(ctx)) leaveNotice(ctx, res, 'not_saved')
  return new Elsewhere({ to: signInAddress(ctx, reader, back) })
}

/**
 * Rejects the form of another person's page: in a shared browser, it could be sent in the current person's session.
 * @throws FormFault
 */
export function requireOwnForm({ person }: AccountVisit, { form_of: given = '' }: Fields): void {
  if (given !== digestOf(person)) throw new FormFault({ form: 'problem.other_person' }, { keepsValues: false })
}

function digestOf({ id }: PublicUser): string {
  return createHash('sha256').update(`doorward form of ${id}`).digest('base64url')
}
