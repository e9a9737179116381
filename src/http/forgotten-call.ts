import { ConfigurationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'

/**
 * `app.get('/x', guards.requireUser)` lacks the parentheses. Nothing would send a response, and the request would wait forever.
 * @throws ConfigurationError if one of the arguments is a request
 */
export function refuseRequest(maker: string, given: readonly unknown[]): void {
  if (!given.some(isRequest)) return
  const call = `${maker}()`
  throw new ConfigurationError(
    `${maker} is in a route without its parentheses. Write ${call}, which returns the handler. ${seeTroubleshooting('guard-without-parentheses')}`,
  )
}

/**
 * `app.get('/x', guards.verify)` passes `next`, which nobody would call: the request would wait forever.
 * @param given the arguments; Express passes the request, the response and `next`
 * @throws ConfigurationError if the third argument is a function
 */
export function refuseAsHandler(name: string, given: readonly unknown[]): void {
  if (typeof given[2] !== 'function') return
  throw new ConfigurationError(
    `${name} is in a route, but it is no handler: it returns a promise of the person, for sockets and workers. Write guards.requireLiveSession(), which returns a handler. ${seeTroubleshooting('guard-without-parentheses')}`,
  )
}

function isRequest(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ['headers', 'method', 'url', 'socket'].every((name) => name in value)
}
