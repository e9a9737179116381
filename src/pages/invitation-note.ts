import { form, html, type Part } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import { readInvitation } from '../invitations/carried'
import { findByToken } from '../invitations/invitation'
import type { Visit } from './page-site'

export interface InvitationView {
  /** False: the mode requires an invitation, and this browser has none. */
  readonly isThere: boolean
  /** Null: any address. */
  readonly email: string | null
}

/** Null: invitations play no part. A cookie whose invitation is over counts, so that the person can put it aside. */
export async function invitationOfPage({ ctx, req }: Visit): Promise<InvitationView | null> {
  const { invitationsEnabled, signupMode } = ctx.settings
  const token = invitationsEnabled ? readInvitation(ctx, req) : null
  if (token === null) return signupMode === 'invite' ? { isThere: false, email: null } : null
  return { isThere: true, email: (await findByToken(ctx, token))?.email ?? null }
}

/** For the sign-up page. */
export function invitationNote(reader: Reader, invitation: InvitationView | null): Part {
  if (invitation === null) return null
  if (invitation.isThere) return putAside(reader)
  return html`<p class="note">${reader.text('invitation.needed')}</p>
`
}

/**
 * For the pages after a way in that also signs up. Its invitation may be over, and then no mail comes, or the provider's login was refused.
 * Null: this browser has no invitation.
 */
export function putAsideNote({ ctx, req, reader }: Visit): Part {
  return ctx.settings.invitationsEnabled && readInvitation(ctx, req) !== null ? putAside(reader) : null
}

function putAside(reader: Reader): Part {
  const leave = form({ action: reader.href('/invitations/leave'), fields: [], button: reader.text('invitation.leave'), look: 'plain' })
  return html`<p class="note">${reader.text('invitation.note')}</p>
${leave}`
}
