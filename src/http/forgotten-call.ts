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
 * `app.get('/x', guards.verify)` passes `next`, which nobody would call: the request would wait forever. `server.on('upgrade', guards.verify)`
 * would leave the promise to nobody, and a stranger's rejected upgrade would end the process.
 * @param given the arguments: request, response and `next`; socket and `next`; or request, socket and the first bytes
 * @throws ConfigurationError if the function stands where a handler or a listener does
 */
export function refuseAsHandler(name: string, given: readonly unknown[]): void {
  if (typeof given[1] !== 'function' && typeof given[2] !== 'function' && !Buffer.isBuffer(given[2])) return
  throw new ConfigurationError(
    `${name} is passed as a handler, but it returns a promise of the person, for sockets and workers. Call it in your listener and await it; in a route write guards.requireLiveSession(), which returns a handler. ${seeTroubleshooting('guard-without-parentheses')}`,
  )
}

function isRequest(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ['headers', 'method', 'url', 'socket'].every((name) => name in value)
}
