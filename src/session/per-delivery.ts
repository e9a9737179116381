import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import type { Route } from '../http/routes'
import { sameSite } from '../http/same-site'

/** How a set of lines answers, and where it is mounted. */
export interface DeliveryLine {
  /** `bearer`: in the body. `cookie`: in cookies, with null body fields. */
  readonly delivery: 'bearer' | 'cookie'
  /** Before each path. */
  readonly base: '' | '/cookie'
  /** What such a line checks before anything else: no other site may set or use our cookies. */
  readonly before: readonly RequestHandler[]
}

/** `bearer` and `cookie` have one set of lines; `both` answers in the body, and in cookies below `/cookie`. */
export function perDelivery(ctx: AuthContext, lines: (line: DeliveryLine) => Route[]): Route[] {
  const inBody: DeliveryLine = { delivery: 'bearer', base: '', before: [] }
  const inCookies = (base: DeliveryLine['base']): DeliveryLine => ({
    delivery: 'cookie',
    base,
    before: [sameSite(ctx)],
  })
  const { tokenDelivery } = ctx.settings
  if (tokenDelivery === 'cookie') return lines(inCookies(''))
  return tokenDelivery === 'both' ? [...lines(inBody), ...lines(inCookies('/cookie'))] : lines(inBody)
}
