import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { sameSite } from '../http/same-site'
import type { Delivery } from './delivery'

/** How a set of lines answers, and where it is mounted. */
export interface DeliveryLine {
  /** `bearer`: tokens in the body. `cookie`: tokens in cookies, with null body fields. `session`: a session in its cookie. */
  readonly delivery: Exclude<Delivery, 'both'>
  /** Before each path. */
  readonly base: '' | '/cookie'
  /** What such a line checks before anything else: no other site may set or use our cookies. */
  readonly before: readonly RequestHandler[]
}

/** `both` has two sets of lines: one answers in the body, one in cookies below `/cookie`. Every other delivery has one. */
export function perDelivery(ctx: AuthContext, lines: (line: DeliveryLine) => Route[]): Route[] {
  const inBody: DeliveryLine = { delivery: 'bearer', base: '', before: [] }
  const ownSite = [sameSite(ctx)]
  const { tokenDelivery } = ctx.settings
  if (tokenDelivery === 'bearer') return lines(inBody)
  if (tokenDelivery === 'both') return [...lines(inBody), ...lines({ delivery: 'cookie', base: '/cookie', before: ownSite })]
  return lines({ delivery: tokenDelivery, base: '', before: ownSite })
}
