import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../context'
import type { Description } from '../http/description'
import { type Method, type Route, withBody } from '../http/routes'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import { codeBeforeFreshness } from '../second-factor/irreversible-code'
import { aliveSession, freshSession, freshSinceFactor } from './reauthentication/fresh-session'
import { type RouteGuards, type RouteSet, routesByDelivery, sameSiteWhenByCookie } from './routes-by-delivery'

/**
 * Who may call an operation, from the least to the most:
 *
 * - `anyone`
 * - `signed in`: who has an access token
 * - `active account`: and whose account is active
 * - `live session`: and whose session was not revoked. A cookie of another site's request does not count
 * - `fresh session`: and who authenticated lately (`freshSessionSeconds`). A missing or throttled code is told before that
 * - `administrator`: who reads, in a live session
 * - `acting administrator`: who writes, in a fresh session
 */
type Access = 'anyone' | 'signed in' | 'active account' | 'live session' | 'fresh session' | 'administrator' | 'acting administrator'

/** What the router, `auth.with` and the OpenAPI document know about one operation. Its rule is a function that `handle` calls. */
export interface Operation<Body = undefined> extends Omit<Description, 'answers'> {
  readonly method: Method
  /** Below the prefix. */
  readonly path: `/${string}`
  /** True: each delivery has the operation. With `both`, browsers have it below `/cookie` too. */
  readonly inEachDelivery?: true
  readonly answers: Description['answers'] | ((delivery: RouteSet['delivery']) => Description['answers'])
  readonly access: Access
  /** The requests of one client are counted under this name. */
  readonly limit?: string
  /** Checks that ask neither the session nor the account. */
  readonly before?: readonly RequestHandler[]
  /** Checks of the live session, before its age is checked. */
  readonly checks?: readonly RequestHandler[]
  /** The body always has a code or a passkey, so an account without a second factor is refused before the freshness is checked. */
  readonly isCodeRequired?: true
  readonly delivers?: 'login'
  readonly body?: Joi.ObjectSchema<Body>
  readonly handle: (req: Request, res: Response, body: Body, delivery: RouteSet['delivery']) => Promise<void> | void
  readonly onError?: ErrorRequestHandler | undefined
}

export function operation<Body = undefined>(ctx: AuthContext, guards: RouteGuards, told: Operation<Body>): Route[] {
  const steps = accessSteps(ctx, guards, told)
  const route = ({ base, delivery, before }: RouteSet) =>
    routeOf(ctx, told, { path: `${base}${told.path}`, delivery, first: before, steps })
  return told.inEachDelivery ? routesByDelivery(ctx, (set) => [route(set)]) : [route({ base: '', delivery: 'bearer', before: [] })]
}

/** Without `access`: anyone. */
export function publicOperation<Body = undefined>(ctx: AuthContext, told: Omit<Operation<Body>, 'access' | 'inEachDelivery'>): Route {
  const { path, before = [] } = told
  return routeOf(ctx, told, { path, delivery: 'bearer', first: [], steps: before })
}

interface Placed {
  readonly path: string
  readonly delivery: RouteSet['delivery']
  readonly first: readonly RequestHandler[]
  readonly steps: readonly RequestHandler[]
}

function routeOf<Body>(
  ctx: AuthContext,
  { method, limit, delivers, body, handle, onError, ...others }: Omit<Operation<Body>, 'access' | 'path'>,
  { path, delivery, first, steps }: Placed,
): Route {
  const { inEachDelivery: _, before: __, checks: ___, isCodeRequired: ____, answers, ...told } = others
  const describes = { ...told, answers: typeof answers === 'function' ? answers(delivery) : answers }
  const before = [...first, ...(limit === undefined ? [] : [routeRateLimit(ctx, limit)]), ...steps]
  const route = { method, path, describes, before, ...(delivers && { delivers }), ...(onError && { onError }) }
  if (body) return withBody({ ...route, body, handle: (req, res, given) => handle(req, res, given, delivery) })
  return { ...route, handle: (req, res) => handle(req, res, undefined as Body, delivery) } // without a schema, `Body` is undefined
}

/** In this order, after the cross-site rule of the delivery and the limit. */
function accessSteps<Body>(
  ctx: AuthContext,
  guards: RouteGuards,
  { method, access, before = [], checks = [], isCodeRequired }: Operation<Body>,
): readonly RequestHandler[] {
  const ownSite = method === 'GET' ? [] : [sameSiteWhenByCookie(ctx)]
  const { mfaEnabled } = ctx.settings
  const steps: Record<Access, () => readonly RequestHandler[]> = {
    anyone: () => before,
    'signed in': () => [guards.requireAuth(), ...before],
    'active account': () => [guards.requireUser(), ...before],
    'live session': () => [guards.requireAuth(), ...ownSite, ...before, aliveSession(ctx), ...checks],
    'fresh session': () => [
      ...steps['live session'](),
      codeBeforeFreshness(ctx, { isRequired: isCodeRequired === true }),
      freshSession(ctx),
    ],
    // The guards refuse a store that does not know administrators, so they are made only here.
    administrator: () => [guards.requireAuth(), aliveSession(ctx), guards.requireAdmin(), ...(mfaEnabled ? [guards.requireMfa()] : [])],
    'acting administrator': () => [...steps.administrator(), ...ownSite, freshSession(ctx), ...(mfaEnabled ? [freshSinceFactor(ctx)] : [])],
  }
  return steps[access]()
}
