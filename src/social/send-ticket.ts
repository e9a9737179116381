import type { Response } from 'express'
import type { AuthContext } from '../context'
import { shape, string } from '../http/description'
import { sendJson, sendRedirect } from '../http/send'
import { withParameter } from '../http/with-parameter'
import { isApp } from '../sessions/destination'
import type { BoundAttempt } from './state-cookie'

export type TicketName = 'link_ticket' | 'reauthentication_ticket'

export const ticketSchemas = [
  shape('LinkTicket', { link_ticket: string }),
  shape('ReauthenticationTicket', { reauthentication_ticket: string }),
]

/**
 * Sends the ticket. If an app began the attempt, the app gets the ticket in the query. Otherwise the ticket is in the fragment of the
 * success redirect, because a fragment reaches no server and no log. Without a success redirect, the ticket is in the body. The function
 * never adds a ticket to a `return_to`.
 */
export function sendTicket(
  { settings }: AuthContext,
  res: Response,
  name: TicketName,
  ticket: string,
  { destination }: BoundAttempt,
): void {
  const { oauthSuccessRedirect: target } = settings
  if (isApp(destination)) sendRedirect(res, withParameter(destination.redirectTo, 'ticket', ticket))
  else if (target === null) sendJson(res, 200, { [name]: ticket })
  else sendRedirect(res, `${target}${target.includes('#') ? '&' : '#'}${name}=${ticket}`)
}
