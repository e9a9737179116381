import type { Request, RequestHandler } from 'express'

/** How the app may keep people signed in: every value of the setting `tokenDelivery`. The first is the demo's own. */
export const deliveries = ['cookie', 'session', 'both', 'bearer'] as const
export type Delivery = (typeof deliveries)[number]

const cookieName = 'demo_delivery'

/** `?delivery=session` is a choice: it is where the links of the first page lead. */
export const rememberDelivery: RequestHandler = (request, response, next) => {
  const asked = askedFor(request)
  if (asked) response.cookie(cookieName, asked, { httpOnly: true, sameSite: 'lax' })
  next()
}

/** Passes each request on to the handler of the delivery that its browser chose. A real app has one. */
export function byDelivery(handlerOf: (delivery: Delivery) => RequestHandler): RequestHandler {
  const handlers = new Map(deliveries.map((delivery) => [delivery, handlerOf(delivery)]))
  return (request, response, next) => handlers.get(deliveryOf(request))?.(request, response, next)
}

export function deliveryOf(request: Request): Delivery {
  const pairs = (request.headers.cookie ?? '').split('; ')
  return askedFor(request) ?? deliveries.find((delivery) => pairs.includes(`${cookieName}=${delivery}`)) ?? deliveries[0]
}

function askedFor(request: Request): Delivery | null {
  return deliveries.find((delivery) => delivery === request.query.delivery) ?? null
}
