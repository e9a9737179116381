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

function isRequest(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ['headers', 'method', 'url', 'socket'].every((name) => name in value)
}
