import type { Response } from 'express'
import type { AuthContext } from '../context'
import { shape, string } from '../http/description'
import { sendJson, sendRedirect } from '../http/send'
import { withParameter } from '../http/with-parameter'
import { isApp } from '../session/destination'
import type { BoundAttempt } from './state-cookie'

export type TicketName = 'link_ticket' | 'reauthentication_ticket'

export const ticketSchemas = [
  shape('LinkTicket', { link_ticket: string }),
  shape('ReauthenticationTicket', { reauthentication_ticket: string }),
]

/**
 * Sends the ticket. The app that began gets it in the query, like a code. Otherwise it is in the fragment of the success redirect, which
 * reaches no server and no log. Without a success redirect it is in the body. It is never added to a `return_to`.
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
